"""The experts of CN-DPM: a density and a classifier each, later ones leaning on earlier ones."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tame.methods.convolutions import Decoder, Encoder, Picture, Residual
from tame.methods.lateral import Lateral, Lent, widths


class Form(NamedTuple):
    """How large experts are: the first is wide, later ones are narrow and borrow features.

    With a `picture` they are convolutional, and `first` and `later` say nothing.
    """

    inputs: int
    first: int = 64
    later: int = 16
    latent: int = 16
    draws: int = 16
    sigmoid: bool = True
    picture: Picture | None = None


class Density(nn.Module):
    """A variational auto-encoder whose likelihood is a Gaussian of variance one.

    Its encoder borrows features, its decoder, always of the first expert's width, does not.
    """

    def __init__(self, form: Form, number: int) -> None:
        super().__init__()
        self.latent = form.latent
        self.sigmoid = form.sigmoid
        self.encoder, self.decoder = _coder(form, number)

    def forward(self, x: Tensor, noise: Tensor, lent: Lent) -> tuple[Tensor, Lent]:
        """Return each sample's evidence bound, summed over inputs and averaged over the draws.

        `noise` is (samples or 1, draws, latent).
        """
        code, lent = self.encoder(x, lent)
        mean, log_variance = code.split(self.latent, 1)
        drawn = mean[:, None] + (0.5 * log_variance).exp()[:, None] * noise
        decoded = self.decoder(drawn)
        decoded = decoded.sigmoid() if self.sigmoid else decoded
        x = x.flatten(1)
        squares = (x[:, None] - decoded).square().sum(2).mean(1)
        likelihood = -0.5 * (squares + x.shape[1] * math.log(2 * math.pi))
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
        return likelihood - divergence, lent


class Expert(nn.Module):
    """One component of the mixture: p(x) by its density, p(y | x) by its classifier."""

    def __init__(self, form: Form, number: int, slots: int) -> None:
        super().__init__()
        self.density = Density(form, number)
        self.classifier = _classifier(form, number, slots)

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


def judge(experts: list[Expert], x: Tensor, noise: Tensor) -> Judged:
    """Ask every expert of a mixture about samples; each layer's features are computed once."""
    lent: Lent = ()
    shown: Lent = ()
    evidence, labels = [], []
    for expert in experts:
        bound, lent = expert.density(x, noise, lent)
        outputs, shown = expert.classifier(x, shown)
        evidence.append(bound)
        labels.append(F.log_softmax(outputs, 1))
    return Judged(torch.stack(evidence, 1), torch.stack(labels, 1))


@torch.no_grad()
def lend(nets: Iterable[nn.Module], x: Tensor) -> Lent:
    """Return the features that the encoders, or the classifiers, of experts lend to the next."""
    lent: Lent = ()
    for net in nets:
        _, lent = net(x, lent)
    return lent


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


def _coder(form: Form, number: int) -> tuple[nn.Module, nn.Module]:
    """Return an expert's encoder and decoder."""
    if form.picture is not None:
        encoder = Encoder(form.picture, number, 2 * form.latent)
        return encoder, Decoder(form.picture, form.latent)
    width, borrowed = widths(form.first, form.later, number)
    return Lateral(form.inputs, width, borrowed, 2 * form.latent), nn.Sequential(
        nn.Linear(form.latent, form.first),
        nn.ReLU(),
        nn.Linear(form.first, form.first),
        nn.ReLU(),
        nn.Linear(form.first, form.inputs),
    )


def _classifier(form: Form, number: int, slots: int) -> Lateral | Residual:
    if form.picture is not None:
        return Residual(form.picture, number, slots)
    return Lateral(form.inputs, *widths(form.first, form.later, number), slots)
