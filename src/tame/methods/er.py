"""Experience replay: every batch is learned together with samples of what came before.

Chaudhry et al., "On Tiny Episodic Memories in Continual Learning" (2019), with the reservoir of
Vitter (1985) as memory: every sample ever seen is equally likely to be in it. A step follows the
gradient of the mean cross-entropy over the batch and as many samples drawn from the memory; then
the batch is offered to the memory. It is told nothing.
"""

from typing import ClassVar

from torch import Tensor

from tame.engine.lesson import Lesson
from tame.engine.losses import sample_losses
from tame.methods.rehearsal import RehearsingLearner
from tame.methods.replay import ReplaySettings
from tame.methods.stepping import joined


class ER(RehearsingLearner[ReplaySettings]):
    """One network and a uniform sample of the stream.

    >>> from tame.types import Batch
    >>> learner = ER(net="mlp")
    >>> learner.observe(Batch([[0.0, 1.0]], [5])).expert, learner.predict([[0.0, 1.0]])
    (0, tensor([5]))
    >>> learner.sizes().samples
    1
    """

    settings_type: ClassVar[type] = ReplaySettings

    def _rehearse(self, lesson: Lesson) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        past, _ = self._replay.draw(lesson)
        judged, trained = self._stepping.forward(lesson, past)
        form = self.settings.training.output
        losses = sample_losses(trained, joined(lesson, past).target, form)
        return judged, losses.mean(), ()
