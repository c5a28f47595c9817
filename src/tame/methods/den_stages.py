"""The stages a task goes through in DEN: selection, expansion, splitting."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from tame.methods.growing import SCALE, Growing
from tame.types import Progress

HEAD_SHARE = 10  # the head alone is trained a tenth as long


class Teaching(NamedTuple):
    """A task's samples, ready for the network, and which of its labels each has."""

    x: Tensor
    targets: Tensor


class Trained(NamedTuple):
    """A tensor and which of its entries a stage trains."""

    tensor: Tensor
    mask: Tensor


def loss_of(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean binary cross-entropy over samples and labels."""
    return F.binary_cross_entropy_with_logits(outputs, targets)


def shrunk(weights: Tensor, by: float) -> Tensor:
    """Return weights nearer to zero by so much, zero where they were nearer than that.

    >>> shrunk(torch.tensor([0.5, -0.25, 1.0]), 0.5)
    tensor([0.0000, -0.0000, 0.5000])
    """
    return weights.sign() * (weights.abs() - by).clamp(min=0)


def group_shrunk(rows: Tensor, by: float) -> Tensor:
    """Return each row shortened by so much, zero where it was shorter than that.

    >>> group_shrunk(torch.tensor([[3.0, 4.0], [0.1, 0.0]]), 2.5)
    tensor([[1.5000, 2.0000],
            [0.0000, 0.0000]])
    """
    length: Tensor = rows.norm(dim=1, keepdim=True)
    share = (1 - by / length.clamp(min=torch.finfo(rows.dtype).tiny)).clamp(min=0)
    return rows * share


def selected(weights: Sequence[Tensor], head: Tensor) -> list[Tensor]:
    """Return for each layer which units a non-zero path joins to the head.

    >>> first, head = torch.tensor([[1.0], [1.0]]), torch.tensor([[0.0, 2.0]])
    >>> selected([first], head)
    [tensor([False,  True])]
    """
    kept = [(head != 0).any(0)]
    for weight in reversed(weights[1:]):
        kept.insert(0, (weight[kept[0][: len(weight)]] != 0).any(0))
    return kept


class Stages:
    """Takes a network through the stages for one task."""

    def __init__(
        self,
        net: Growing,
        task: int,
        settings: Any,
        generator: torch.Generator,
        progress: Progress,
    ) -> None:
        self.net = net
        self.task = task
        self._set = settings
        self._generator = generator
        self._progress = progress

    def first(self, teaching: Teaching) -> None:
        """Train everything."""
        parts = [*self.net.weights, *self.net.biases, *self._head()]
        self._fit(teaching, [Trained(p, torch.ones_like(p)) for p in parts], "training all")

    def later(self, teaching: Teaching) -> None:
        """Select, expand if that did not do, split what drifted, and note the time."""
        before, old = self.net.clone(), self.net.widths
        self._select(teaching)
        if self._loss(teaching) >= self._set.enough and self._set.units:
            self._expand(teaching, old)
        if self._split(before, old):
            self._fit(teaching, self._new_units(old), "training split units")
        self.net.heads[self.task].widths = self.net.widths

    def _head(self) -> list[Tensor]:
        head = self.net.heads[self.task]
        return [head.weight, head.bias]

    def _whole_head(self) -> list[Trained]:
        return [Trained(part, torch.ones_like(part)) for part in self._head()]

    def _select(self, teaching: Teaching) -> None:
        short = max(1, self._set.iterations // HEAD_SHARE)
        self._catch_up()
        self._fit(teaching, self._whole_head(), "training the head", iterations=short)
        kept = selected(self.net.weights, self.net.heads[self.task].weight)
        trained, below = [], None
        for weight, bias, units in zip(self.net.weights, self.net.biases, kept, strict=True):
            mask = units[:, None].expand_as(weight).float()
            trained.append(Trained(weight, mask if below is None else mask * below.float()))
            trained.append(Trained(bias, units.float()))
            below = units
        self._fit(teaching, [*trained, *self._whole_head()], "retraining the selected", drift=True)

    def _catch_up(self) -> None:
        """Let the head of a task that returns listen to units added since."""
        head = self.net.heads[self.task]
        missing = self.net.widths[-1] - head.weight.shape[1]
        self.net.widen(self.task, head.weight.new_zeros(len(head.weight), missing))

    def _expand(self, teaching: Teaching, old: list[int]) -> None:
        count = self._set.units
        for layer, weight in enumerate(self.net.weights):
            wide = self.net.weights[layer].shape[1]
            rows = SCALE * torch.randn(count, wide, generator=self._generator)
            self.net.add_units(layer, rows.to(weight.device), weight.new_zeros(count))
        head = self.net.heads[self.task].weight
        columns = SCALE * torch.randn(len(head), count, generator=self._generator)
        self.net.widen(self.task, columns.to(head.device))
        self._fit(teaching, self._new_units(old), "training added units", group=old)
        self._remove_idle(old)

    def _new_units(self, old: Sequence[int]) -> list[Trained]:
        found = []
        for weight, bias, count in zip(self.net.weights, self.net.biases, old, strict=True):
            mask = torch.zeros_like(weight)
            mask[count:] = 1
            found += [Trained(weight, mask), Trained(bias, mask[:, 0].clone())]
        return [*found, *self._whole_head()]

    def _remove_idle(self, old: Sequence[int]) -> None:
        """Take away added units whose incoming vector is zero."""
        head = self.net.heads[self.task]
        for layer, count in enumerate(old):
            weight = self.net.weights[layer]
            busy = (weight != 0).any(1)
            busy[:count] = True
            self.net.weights[layer], self.net.biases[layer] = (
                weight[busy],
                self.net.biases[layer][busy],
            )
            if layer + 1 < len(old):
                self.net.weights[layer + 1] = self.net.weights[layer + 1][:, busy]
            else:
                head.weight = head.weight[:, busy]
        head.widths = self.net.widths

    def _split(self, before: Growing, old: Sequence[int]) -> bool:
        """Double the units that moved most: the old goes back, its copy keeps what it learned."""
        any_split = False
        for layer, count in enumerate(old):
            now, then = self.net.weights[layer], before.weights[layer]
            moved = (now[:count, : then.shape[1]] - then).norm(dim=1)
            far = moved.argsort(descending=True)[: self._set.units]
            far = far[moved[far] > self._set.split]
            if len(far):
                self._double(layer, far, before)
                any_split = True
        return any_split

    def _double(self, layer: int, units: Tensor, before: Growing) -> None:
        """Add copies of units; units new to this task, and its head, listen to the copies now."""
        weight, bias = self.net.weights[layer], self.net.biases[layer]
        rows, shift = weight[units].clone(), bias[units].clone()
        back = before.weights[layer][units]
        weight[units] = 0
        weight[units, : back.shape[1]] = back
        bias[units] = before.biases[layer][units]
        self.net.add_units(layer, rows, shift)
        if layer + 1 == len(self.net.weights):
            head = self.net.heads[self.task]
            self.net.widen(self.task, head.weight[:, units].clone())
            head.weight[:, units] = 0
        else:
            after = self.net.weights[layer + 1]
            fresh = slice(before.widths[layer + 1], None)
            after[fresh, len(weight) :] = after[fresh, units]
            after[fresh, units] = 0

    @torch.no_grad()
    def _loss(self, teaching: Teaching) -> float:
        return float(loss_of(self.net.outputs(teaching.x, self.task), teaching.targets))

    def _fit(
        self,
        teaching: Teaching,
        trained: Sequence[Trained],
        what: str,
        *,
        iterations: int = 0,
        drift: bool = False,
        group: Sequence[int] | None = None,
    ) -> None:
        """Train the masked entries; shrink them after every step, added units as groups."""
        tensors = [part.tensor.requires_grad_() for part in trained]
        shared = len(tensors) - len(self._head())  # the head comes last, and is anchored to nothing
        anchors = [tensor.detach().clone() for tensor in tensors]
        optimiser = torch.optim.Adam(tensors, lr=self._set.rate)
        total = iterations or self._set.iterations
        for step in range(total):
            rows = torch.randint(
                len(teaching.x), (min(self._set.batch, len(teaching.x)),), generator=self._generator
            )
            optimiser.zero_grad()
            outputs = self.net.outputs(teaching.x[rows], self.task)
            loss = loss_of(outputs, teaching.targets[rows])
            loss = loss + sum(self._set.l2 / 2 * (t * t).sum() for t in tensors)
            if drift:
                pairs = zip(tensors[:shared], anchors, strict=False)
                loss = loss + sum(self._set.drift / 2 * (t - a).square().sum() for t, a in pairs)
            loss.backward()
            optimiser.step()
            self._settle(trained, anchors, group)
            self._progress(what, step + 1, total)
        for tensor in tensors:
            tensor.requires_grad_(False)  # noqa: FBT003 (torch's)

    @torch.no_grad()
    def _settle(
        self, trained: Sequence[Trained], anchors: Sequence[Tensor], group: Sequence[int] | None
    ) -> None:
        """Shrink what is trained, and put everything else back."""
        for (tensor, mask), anchor in zip(trained, anchors, strict=True):
            if tensor.ndim > 1:
                tensor.copy_(shrunk(tensor, self._set.l1))
            tensor.copy_(torch.where(mask > 0, tensor, anchor))
        if group is not None:
            for weight, count in zip(self.net.weights, group, strict=True):
                weight[count:] = group_shrunk(weight[count:], self._set.group)
