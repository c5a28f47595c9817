"""The experts of CN-DPM: a density and a classifier each, later ones leaning on earlier ones."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Lent = tuple[Tensor, Tensor]


class Form(NamedTuple):
    """How large experts are: the first is wide, later ones are narrow and borrow features."""

    inputs: int
    first: int = 64
    later: int = 16
    latent: int = 16
    draws: int = 16
    sigmoid: bool = True


class Lateral(nn.Module):
    """Two hidden layers that see, beside their own, the hidden features earlier experts lend.

    No gradient reaches the lender.

    >>> one, two = Lateral(4, 3, 0, 2), Lateral(4, 5, 3, 2)
    >>> _, lent = one(torch.zeros(1, 4), nothing_lent(torch.zeros(1, 4)))
    >>> outputs, lent = two(torch.zeros(1, 4), lent)
    >>> outputs.shape, lent[0].shape
    (torch.Size([1, 2]), torch.Size([1, 8]))
    """

    def __init__(self, inputs: int, width: int, borrowed: int, outputs: int) -> None:
        super().__init__()
        self.one = nn.Linear(inputs, width)
        self.two = nn.Linear(borrowed + width, width)
        self.out = nn.Linear(borrowed + width, outputs)

    def forward(self, x: Tensor, lent: Lent) -> tuple[Tensor, Lent]:
        one = torch.cat([lent[0], F.relu(self.one(x))], 1)
        two = torch.cat([lent[1], F.relu(self.two(one))], 1)
        return self.out(two), (one.detach(), two.detach())


def nothing_lent(x: Tensor) -> Lent:
    """Return what the first expert borrows."""
    return x.new_zeros(len(x), 0), x.new_zeros(len(x), 0)


class Density(nn.Module):
    """A variational auto-encoder whose likelihood is a Gaussian of variance one.

    Its encoder borrows features, its decoder, always of the first expert's width, does not.
    """

    def __init__(self, form: Form, number: int) -> None:
        super().__init__()
        width, borrowed = widths(form, number)
        self.latent = form.latent
        self.sigmoid = form.sigmoid
        self.encoder = Lateral(form.inputs, width, borrowed, 2 * form.latent)
        self.decoder = nn.Sequential(
            nn.Linear(form.latent, form.first),
            nn.ReLU(),
            nn.Linear(form.first, form.first),
            nn.ReLU(),
            nn.Linear(form.first, form.inputs),
        )

    def forward(self, x: Tensor, noise: Tensor, lent: Lent) -> tuple[Tensor, Lent]:
        """Return each sample's evidence bound, summed over inputs and averaged over the draws.

        `noise` is (samples or 1, draws, latent).
        """
        code, lent = self.encoder(x, lent)
        mean, log_variance = code.split(self.latent, 1)
        drawn = mean[:, None] + (0.5 * log_variance).exp()[:, None] * noise
        decoded = self.decoder(drawn)
        decoded = decoded.sigmoid() if self.sigmoid else decoded
        squares = (x[:, None] - decoded).square().sum(2).mean(1)
        likelihood = -0.5 * (squares + x.shape[1] * math.log(2 * math.pi))
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
        return likelihood - divergence, lent


class Expert(nn.Module):
    """One component of the mixture: p(x) by its density, p(y | x) by its classifier."""

    def __init__(self, form: Form, number: int, slots: int) -> None:
        super().__init__()
        self.density = Density(form, number)
        self.classifier = Lateral(form.inputs, *widths(form, number), slots)

    @torch.no_grad()
    def grow(self, slots: int) -> None:
        """Give the classifier more outputs; those it had keep their weights."""
        old = self.classifier.out
        wide = nn.Linear(old.in_features, slots).to(old.weight.device)
        wide.weight[: old.out_features] = old.weight
        wide.bias[: old.out_features] = old.bias
        self.classifier.out = wide


class Judged(NamedTuple):
    """What each expert finds: evidence (samples, experts), log p(y | x) with slots as well."""

    evidence: Tensor
    labels: Tensor


def widths(form: Form, number: int) -> tuple[int, int]:
    """Return the width of an expert's layers and how many features it borrows in each."""
    if number == 0:
        return form.first, 0
    return form.later, form.first + (number - 1) * form.later


def judge(experts: list[Expert], x: Tensor, noise: Tensor) -> Judged:
    """Ask every expert of a mixture about samples; each layer's features are computed once."""
    lent, shown = nothing_lent(x), nothing_lent(x)
    evidence, labels = [], []
    for expert in experts:
        bound, lent = expert.density(x, noise, lent)
        outputs, shown = expert.classifier(x, shown)
        evidence.append(bound)
        labels.append(F.log_softmax(outputs, 1))
    return Judged(torch.stack(evidence, 1), torch.stack(labels, 1))


@torch.no_grad()
def lend(experts: list[Expert], x: Tensor) -> tuple[Lent, Lent]:
    """Return the features experts lend to the next: those of densities and of classifiers."""
    lent, shown = nothing_lent(x), nothing_lent(x)
    for expert in experts:
        _, lent = expert.density.encoder(x, lent)
        _, shown = expert.classifier(x, shown)
    return lent, shown


def chilled(labels: Tensor, target: Tensor, temperature: float) -> Tensor:
    """Return log p(y | x) of the true labels, recomputed at a temperature, for each expert.

    >>> chilled(torch.tensor([[[0.6, 0.4]]]).log(), torch.tensor([1]), 0.5)
    tensor([[-1.1787]])
    """
    cold = F.log_softmax(labels / temperature, -1)
    return of_target(cold, target)


def of_target(labels: Tensor, target: Tensor) -> Tensor:
    """Pick the true label's entry for each sample and expert."""
    places = target[:, None, None].expand(-1, labels.shape[1], 1)
    return labels.gather(2, places).squeeze(2)
