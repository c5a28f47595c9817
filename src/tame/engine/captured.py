"""The training step of one architecture as CUDA graphs, on which networks take turns.

Recorded work holds addresses. So there is one bench, with memory of its own, and the network about
to learn moves in: its tensors are copied there and stand there until another one comes. Measuring,
forward-backward and update are separate graphs, and the host decides before anything of a network
is changed. Where the measuring forward is the training forward, the backward pass is recorded with
it, an event between the two, and runs while the host decides: gradients change nothing, and those
of a batch that surprised are never used. Where it is not, samples are augmented meanwhile, if the
numbers for it came with them. What does not fit a recorded shape (the last batch, new labels) is
stepped eagerly, on the same tensors.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from tame.engine.eager import EagerStep, Manner
from tame.engine.graphs import everything, open_state, practise, record, unchanged
from tame.engine.lesson import Lesson, is_costly
from tame.engine.losses import summarise
from tame.engine.meanwhile import Meanwhile
from tame.engine.moving import Tenant, pairs
from tame.engine.postbox import Postbox
from tame.engine.randomness import PrivateDraws
from tame.types import Reading

ROOM = 8
SIGHTINGS = 2


class Recording:
    """The graphs of one shape of batch, and the places their inputs are read from."""

    def __init__(self, step: EagerStep, masks: dict[str, Tensor], lesson: Lesson) -> None:
        self._step = step
        self._masks = masks
        self._live = lesson.live
        self._inputs = lesson.step
        augment, count, device = step.manner.augment, len(lesson), lesson.device
        self._box = Postbox(lesson, 0 if augment is None else augment.numbers)
        self._losses = torch.empty(count, pin_memory=True)
        self._read = self._losses.numpy()
        self._kept: Tensor | None = None
        self._ready: Tensor | None = None
        self._changed: Tensor | None = None
        self._prepared = False
        self._measured = torch.cuda.Event(external=True)
        self._box.send(lesson, None)
        with unchanged(everything(step.net, step.optimiser), device):
            practise(self._whole)
            self._kept = self._changed = None  # what practice left would tie them to its stream
            step.optimiser.zero_grad(set_to_none=True)
            self._measuring = record(self._open, None)
            pool = self._measuring.pool()
            self._preparing = None if self._once else record(self._prepare, pool)
            self._training = None if self._once else record(self._forward_backward, pool)
            self._updating = record(self._update, pool)
        self._kept = None

    def measure(self, lesson: Lesson, odds: Tensor | None, meanwhile: Meanwhile) -> Reading:
        """Return the loss of a batch; what was sent to the device before is done by then.

        What training on it would need and what changes nothing runs while the host decides.
        """
        self._box.send(lesson, odds)
        self._measuring.replay()
        self._prepared = odds is not None or self._box.odds is None
        if self._preparing is not None and self._prepared:
            self._preparing.replay()
        meanwhile()
        self._measured.synchronize()
        if self._ready is not None:
            lesson.lend(self._ready.clone())
        return summarise(self._read)

    def learn(self, odds: Tensor | None, draws: PrivateDraws | None) -> None:
        """Train on the batch just measured."""
        if self._preparing is not None and self._training is not None:
            if not self._prepared:
                if self._box.odds is not None and odds is not None:
                    self._box.odds.copy_(odds, non_blocking=True)
                self._preparing.replay()
            with draws or nullcontext():
                self._training.replay()
        self._updating.replay()

    @property
    def _once(self) -> bool:
        return self._step.measures_by_training

    def _open(self) -> None:
        """Measure, let the host know, and go on as far as nothing of the network is changed."""
        self._measure()
        self._measured.record()
        if self._once:
            self._forward_backward()

    def _measure(self) -> None:
        step, box = self._step, self._box
        box.fetch()
        ready = self._inputs(box.raw)
        found = step.judge(ready, box.target, self._live, keep=self._once)
        self._losses.copy_(found.detach(), non_blocking=True)
        self._kept = found
        self._ready = ready if is_costly(self._inputs) else None

    def _prepare(self) -> None:
        box = self._box
        self._changed = self._inputs.prepare(box.raw, self._step.manner.augment, box.odds)

    def _forward_backward(self) -> None:
        step, losses = self._step, self._kept
        if self._changed is not None:
            losses = step.train(self._changed, self._box.target, self._live)
        assert losses is not None  # noqa: S101 (measured, or prepared)
        step.backward(losses)

    @torch.no_grad()
    def _update(self) -> None:
        self._step.update()
        parameters = dict(self._step.net.named_parameters())
        for name, mask in self._masks.items():
            parameters[name].mul_(mask)

    def _whole(self) -> None:
        self._measure()
        if not self._once:
            self._prepare()
        self._forward_backward()
        self._update()


class Bench:
    """Steps whichever network has moved in, by graphs where the batch has a known shape."""

    def __init__(
        self, manner: Manner, make_optimiser: Callable[[nn.Module], torch.optim.Optimizer]
    ) -> None:
        self.manner = manner
        self._make_optimiser = make_optimiser
        self._tenant: Tenant | None = None
        self._step: EagerStep | None = None
        self._form: tuple[Any, ...] = ()
        self._rate: Tensor | None = None
        self._told = -1.0
        self._masks: dict[str, Tensor] = {}
        self._recordings: OrderedDict[tuple[Any, ...], Recording] = OrderedDict()
        self._sighted: dict[tuple[Any, ...], int] = {}
        self._current: Recording | None = None

    def measure(
        self, tenant: Tenant, lesson: Lesson, odds: Tensor | None, meanwhile: Meanwhile
    ) -> Reading | None:
        """Return the loss of a batch, or None if it has to be measured eagerly.

        Only if it is measured here is `meanwhile` done.
        """
        self._current = None
        if self._tenant is not tenant:
            self._move_in(tenant)
        recording = self._find(tenant, lesson)
        if recording is None:
            return None
        self._current = recording
        return recording.measure(lesson, odds, meanwhile)

    def learn(self, rate: float, odds: Tensor | None, draws: PrivateDraws | None) -> bool:
        """Train on the batch just measured; False if it has to be done eagerly."""
        recording, self._current = self._current, None
        if recording is None or self._rate is None:
            return False
        if rate != self._told:
            self._rate.fill_(rate)
            self._told = rate
        recording.learn(odds, draws)
        return True

    def forget(self) -> None:
        """Drop the batch just measured."""
        self._current = None

    def release(self, tenant: Tenant) -> None:
        """Give a network its own memory back, if it stands on the bench."""
        if self._tenant is tenant:
            self._move_out()

    def remask(self, tenant: Tenant) -> None:
        """Take over a network's masks as they are now, if it stands on the bench."""
        for name, mask in self._masks.items() if self._tenant is tenant else ():
            mask.copy_(tenant.masks.get(name, torch.ones_like(mask)))

    def _move_in(self, tenant: Tenant) -> None:
        self._move_out()
        form = tuple((name, tuple(t.shape)) for name, t in tenant.net.state_dict().items())
        if self._step is None or form != self._form:
            self._furnish(tenant, form)
        assert self._step is not None  # noqa: S101 (furnished)
        for home, guest in pairs(self._step, tenant):
            home.copy_(guest.read())
            guest.write(home)
        self._tenant = tenant
        self.remask(tenant)

    def _move_out(self) -> None:
        if self._tenant is not None and self._step is not None:
            for home, guest in pairs(self._step, self._tenant):
                guest.write(home.clone())
        self._tenant, self._current = None, None

    def _furnish(self, tenant: Tenant, form: tuple[Any, ...]) -> None:
        net = copy.deepcopy(tenant.net)
        optimiser = self._make_optimiser(net)
        open_state(optimiser)
        device = next(net.parameters()).device
        self._rate = torch.zeros((), device=device)
        self._told = -1.0
        for group in optimiser.param_groups:
            group["lr"] = self._rate
        self._step = EagerStep(net, optimiser, self.manner)
        self._masks = {
            name: torch.ones_like(parameter, dtype=torch.bool)
            for name, parameter in net.named_parameters()
        }
        self._form = form
        self._recordings.clear()
        self._sighted.clear()

    def _find(self, tenant: Tenant, lesson: Lesson) -> Recording | None:
        """Return the recording for such a batch; one is made when it has been seen before."""
        masked = bool(tenant.masks)
        raw = lesson.raw
        key = (raw.shape, raw.dtype, raw.is_cuda, lesson.live, masked)
        found = self._recordings.get(key)
        if found is not None:
            self._recordings.move_to_end(key)
            return found
        self._sighted[key] = self._sighted.get(key, 0) + 1
        if self._sighted[key] <= SIGHTINGS or len(lesson) == 1:
            return None
        while len(self._recordings) >= ROOM:
            self._recordings.popitem(last=False)
        assert self._step is not None  # noqa: S101 (a tenant has moved in)
        made = Recording(self._step, self._masks if masked else {}, lesson)
        self._recordings[key] = made
        return made
