"""What an experiment needs before it begins."""

import torch

from tame.bench.experiment import Experiment
from tame.core.given import as_device


def prepare(experiment: Experiment) -> None:
    """Make sure that what the experiment needs is there, and ask torch for its part."""
    as_device(experiment.device)
    workers = getattr(experiment.settings, "workers", None)
    if workers is not None:
        workers.check()
    if experiment.run.threads:
        torch.set_num_threads(experiment.run.threads)
    if experiment.deterministic:
        torch.use_deterministic_algorithms(mode=True)
