"""A training step divided over ranks: each computes its rows, and all decide and change alike.

Every rank has the whole batch and the same network. The losses of all rows are gathered before
anything is decided; the gradients are added up, so that they are those of the mean over the whole
batch. A batch of fewer rows than ranks is computed whole by every rank.
"""

from contextlib import AbstractContextManager, nullcontext
from zlib import crc32

import torch
from torch import Tensor

from tame.engine.eager import EagerStep
from tame.engine.lesson import Lesson
from tame.engine.losses import read
from tame.engine.meanwhile import Meanwhile, nothing
from tame.engine.randomness import derive, seeded
from tame.engine.shared_norm import SharedNorm
from tame.engine.world import Share, World
from tame.errors import WorldError
from tame.types import Reading

HEADING = 2
ROOM = 256
ALIKE = 1e-5


class ParallelStep:
    """Measures and trains one network together with the other ranks."""

    def __init__(self, step: EagerStep, world: World) -> None:
        self._step = step
        self._world = world
        self._pending: Tensor | None = None
        self._compared = False

    def measure(
        self, lesson: Lesson, *, keep: bool = True, meanwhile: Meanwhile = nothing
    ) -> Reading:
        """Return the loss of the whole batch in evaluation mode; `keep` this rank's graph."""
        step, share = self._step, self._world.share(len(lesson))
        part = lesson.rows(share.begin, share.end)
        keep = keep and step.measures_by_training
        with self._norms(share):
            losses = step.judge(part.ready, part.target, part.live, keep=keep)
        self._pending = losses if keep else None
        meanwhile()
        return read(self._collect(losses.detach().cpu(), lesson))

    def learn(self, lesson: Lesson, odds: Tensor | None = None) -> None:
        """Train on a batch: the one just measured and kept, or any other."""
        share = self._world.share(len(lesson))
        losses, self._pending = self._pending, None
        if losses is None:
            losses = self._train(lesson, odds, share)
        self._step.optimiser.zero_grad(set_to_none=True)
        (losses.sum() / (share.rows * share.copies)).backward()
        self._add_up_gradients()
        self._step.update()
        if not self._compared:
            self._compare_networks()

    def forget(self) -> None:
        """Drop what measuring kept: the batch will not be learned."""
        self._pending = None

    def _train(self, lesson: Lesson, odds: Tensor | None, share: Share) -> Tensor:
        step, part = self._step, lesson.rows(share.begin, share.end)
        x = part.ready
        if odds is not None:
            x = part.changed(step.manner.augment, odds[:, share.begin : share.end])
        training = step.manner.one_faced or share.rows > 1  # no statistics of one sample
        with self._chance(x.device), self._norms(share):
            return step.losses(x, part.target, part.live, training=training)

    def _norms(self, share: Share) -> AbstractContextManager[object]:
        """Share batch norm's statistics, in networks that may have such layers."""
        if self._step.manner.one_faced:
            return nullcontext()
        return SharedNorm(self._world, share.copies)

    def _chance(self, device: torch.device) -> AbstractContextManager[None]:
        """Draw differently on every rank, from a state that is the same on all of them."""
        if self._step.draws is None:
            return nullcontext()
        with self._step.draws:
            number = int(torch.randint(2**62, ()))
        return seeded(derive(number, "rank", self._world.rank), device)

    def _collect(self, losses: Tensor, lesson: Lesson) -> Tensor:
        """Return the losses of the whole batch, once it is sure that all ranks have the same one.

        The first message has a fixed length, since ranks that disagree would disagree on any other.
        """
        world, count = self._world, len(lesson)
        heading = [count, _checksum(lesson)]
        said = torch.zeros(HEADING + ROOM, dtype=torch.float64)
        said[:HEADING] = torch.tensor(heading, dtype=torch.float64)
        head, rest = losses[:ROOM], losses[ROOM:]
        said[HEADING : HEADING + len(head)] = head
        heard = world.gather(said)
        self._compare_batches(heard)
        shares = [world.share(count, rank) for rank in range(world.size)]
        longest = max(share.end - share.begin for share in shares)
        parts = [part[HEADING:] for part in heard]
        if longest > ROOM:
            more = torch.zeros(longest - ROOM, dtype=torch.float64)
            more[: len(rest)] = rest
            parts = [torch.cat(pair) for pair in zip(parts, world.gather(more), strict=True)]
        found = [part[: s.end - s.begin] for part, s in zip(parts, shares, strict=True)]
        return found[0] if shares[0].copies > 1 else torch.cat(found)

    def _compare_batches(self, heard: list[Tensor]) -> None:
        """Refuse to go on when the ranks were not given the same batch."""
        counts, sums = torch.stack(heard)[:, :HEADING].unbind(1)
        if counts.unique().numel() > 1 or sums.unique().numel() > 1:
            raise WorldError(
                f"rank {self._world.rank}: the ranks were given different batches ("
                f"{', '.join(f'{int(count)}' for count in counts)} samples); "
                "each must be given the whole batch, and takes its rows itself"
            )

    @torch.no_grad()
    def _compare_networks(self) -> None:
        """Refuse to go on when one step has not led to the same network everywhere."""
        values = self._step.net.state_dict().values()
        own = torch.stack([value.double().norm().cpu() for value in values])
        for other in self._world.gather(own):
            if not torch.allclose(own, other, rtol=ALIKE, atol=0, equal_nan=True):
                raise WorldError(
                    f"rank {self._world.rank}: after a step the network is not the same on all "
                    "ranks; its maker must draw from torch's generators alone, and no layer but "
                    "batch norm may keep what it sees of a batch"
                )
        self._compared = True

    @torch.no_grad()
    def _add_up_gradients(self) -> None:
        """Make every gradient the sum over the ranks; one that no sample reached stays none.

        With the gradients goes how many ranks have each, since samples may take different ways
        through a network.
        """
        own = [p for p in self._step.net.parameters() if p.requires_grad]
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in own]
        have = torch.tensor([float(p.grad is not None) for p in own], device=grads[0].device)
        flat = self._world.add_up(torch.cat([*(grad.reshape(-1) for grad in grads), have]))
        *pieces, have = flat.split([*(p.numel() for p in own), len(own)])
        for place, (parameter, grad, piece) in enumerate(zip(own, grads, pieces, strict=True)):
            grad.copy_(piece.view(grad.shape))
            if parameter.grad is None and have[place] > 0:
                parameter.grad = grad


def _checksum(lesson: Lesson) -> int:
    """Return a number that tells batches apart: from all labels, the first and the last sample."""
    ends = lesson.raw[:: max(1, len(lesson) - 1)].contiguous().cpu()
    return crc32(ends.view(torch.uint8).numpy().tobytes(), crc32(lesson.slots.numpy().tobytes()))
