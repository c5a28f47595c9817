"""Two ideas about the joint decision, tried on finished learners: neither is in the library.

    python benchmarks/refusing.py PRESET --data DIR [--seeds 3] [--epochs 20] [--out FILE]

*Outside*: every expert gets one more output for what is not its own, and is trained on, inside its
mask, on all of the selector's reservoir, with the selector's augmentation; what it gives to that
output it takes from its labels. *Fitted*: each expert's log-probabilities, each expert's score and
the selector's word on labels are weighed by factors, and experts have offsets, all fitted by
likelihood on one half of the held-back samples and judged on the other, and the other way round.
Judged on a tenth of the training data held back in each segment.
"""

import argparse
import copy
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import variants
from torch import Tensor, nn

from tame import TAME
from tame.bench.preparation import prepare
from tame.config import assignment
from tame.core.class_router import KnowsLabels
from tame.core.class_selector import ClassSelector
from tame.engine.fitting import Job, Samples, fit
from tame.engine.randomness import torch_generator

Row = dict[str, Any]


class Heard(NamedTuple):
    """What all say of some samples: of experts, and of labels given each expert."""

    experts: Tensor  # (samples, experts), the router's
    own: Tensor  # (samples, experts, labels), the experts'
    told: Tensor  # (samples, experts, labels), the router's
    truth: Tensor  # the column of the right label
    segment: Tensor


class Weights(nn.Module):
    """How much each opinion counts, and an offset for each expert."""

    def __init__(self, experts: int, trust: float) -> None:
        super().__init__()
        self.expert = nn.Parameter(torch.ones(()))
        self.own = nn.Parameter(torch.full((experts, 1), trust))
        self.told = nn.Parameter(torch.tensor(1 - trust))
        self.offset = nn.Parameter(torch.zeros(experts))

    def forward(self, heard: Heard) -> Tensor:
        """Return the score of each label: that of its best pair."""
        experts = self.expert * heard.experts + self.offset
        pairs = experts.unsqueeze(2) + self.own * heard.own + self.told * heard.told
        best: Tensor = pairs.logsumexp(1) if self.training else pairs.amax(1)
        return best


def learned(preset: str, changes: list[Row]) -> tuple[TAME, list[Any]]:
    """Return a learner that has seen its whole stream, and the held-back parts."""
    experiment = variants.held_back(preset, changes)
    prepare(experiment)
    stream, learner = experiment.open_stream(), experiment.learner()
    for batch in stream.batches():
        learner.observe(batch)
    learner.consolidate()
    return learner, list(stream.held_out())


def widened(net: nn.Module, outputs: int) -> nn.Module:
    """Return a copy of a network with `outputs` outputs, the last of them fresh."""
    made = copy.deepcopy(net)
    name, last = [pair for pair in made.named_modules() if isinstance(pair[1], nn.Linear)][-1]
    wide = nn.Linear(last.in_features, outputs)
    with torch.no_grad():
        wide.weight[: last.out_features] = last.weight
        wide.bias[: last.out_features] = last.bias
    parent, _, place = name.rpartition(".")
    setattr(made.get_submodule(parent), place, wide)
    return made


def refusing(learner: TAME, epochs: int) -> list[nn.Module]:
    """Train every expert to tell what is not its own."""
    pool, selector, step = learner._pool, learner._selector, learner._intake.ready  # noqa: SLF001
    if pool is None or not isinstance(selector, ClassSelector):
        raise SystemExit("needs a preset whose selector is `classes`, which keeps labels")
    raw, slots, owner = selector._reservoir.columns()  # noqa: SLF001
    labels, made = len(learner.model.labels), []
    for number in learner.expert_ids:
        expert = pool.open(number)
        source = expert.compact or expert.network
        net = widened(source.net, labels + 1)
        masks = {}
        for name, mask in source.masks.items():
            more = dict(net.named_parameters())[name].shape[0] - mask.shape[0]
            masks[name] = torch.cat([mask, mask.new_ones(more, *mask.shape[1:])])
        target = torch.where(owner == number, slots.long(), labels)
        samples = Samples(raw, target, step.prepare, labels + 1)
        recipe = replace(selector.training, epochs=epochs, rate=0.05)
        fit([Job(net, samples, torch_generator(number), masks)], recipe)
        made.append(net)
    return made


@torch.no_grad()
def hear(learner: TAME, held: list[Any], outside: list[nn.Module]) -> Heard:
    """Ask everyone about the held-back samples."""
    model, parts = learner.model.eval(), []
    router, labels = model.router, model.labels
    assert isinstance(router, KnowsLabels)  # noqa: S101 (else there is nothing to mix)
    for number, part in enumerate(held):
        for x, y in zip(part.x.split(512), part.y.split(512), strict=True):
            ready = model.step(x)
            experts, pairs = router.opinions(x, ready)
            every = torch.arange(experts.shape[1])
            known = model.seen[:, : len(labels)]
            if outside:
                scores = torch.stack([net(ready) for net in outside], 1)
                hidden = torch.cat([~known, known.new_zeros(len(known), 1)], 1)
                own = scores.masked_fill(hidden, float("-inf")).log_softmax(2)[..., :-1]
            else:
                own = torch.stack([model.consult(int(one), ready) for one in every], 1)
            told = torch.stack(
                [router.labels(pairs, one.expand(len(x)), len(labels)) for one in every], 1
            )
            truth = (labels.unsqueeze(0) == y.unsqueeze(1)).long().argmax(1)
            where = torch.full_like(truth, number)
            parts.append(Heard(floored(experts), floored(own), floored(told), truth, where))
    return Heard(*(torch.cat(column) for column in zip(*parts, strict=True)))


def floored(scores: Tensor) -> Tensor:
    """Give the impossible a number that can be multiplied with."""
    return scores.nan_to_num(nan=-1e4, neginf=-1e4)


def chosen(heard: Heard, rows: Tensor) -> Heard:
    """Return some of the samples."""
    return Heard(*(column[rows] for column in heard))


def right(heard: Heard, weights: Weights) -> Tensor:
    """Say of each sample whether its label is found."""
    with torch.no_grad():
        best: Tensor = weights.eval()(heard).argmax(1)
    return best == heard.truth


def strict(found: Tensor, segment: Tensor) -> float:
    """Return the mean over segments."""
    each = [found[segment == one].double().mean() for one in segment.unique()]
    return float(torch.stack(each).mean())


def fitted(heard: Heard, trust: float) -> Weights:
    """Return the weights under which the right labels are likeliest."""
    weights = Weights(heard.experts.shape[1], trust).train()
    optimiser = torch.optim.LBFGS(weights.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(weights(heard), heard.truth)
        loss.backward()
        return loss

    optimiser.step(closure)
    return weights


def crossed(heard: Heard, trust: float) -> float:
    """Fit on one half and judge on the other, both ways."""
    half = torch.arange(len(heard.truth)) % 2 == 0
    found = torch.empty(len(half), dtype=torch.bool)
    for own in (half, ~half):
        found[~own] = right(chosen(heard, ~own), fitted(chosen(heard, own), trust))
    return strict(found, heard.segment)


def measured(preset: str, changes: list[Row], epochs: int) -> Row:
    """Return the figures of one seed."""
    learner, held = learned(preset, changes)
    trust = learner.settings.decision.trust
    heard = hear(learner, held, [])
    outside = hear(learner, held, refusing(learner, epochs))
    plain = Weights(heard.experts.shape[1], trust)
    return {
        "as it is": round(strict(right(heard, plain), heard.segment), 5),
        "fitted": round(crossed(heard, trust), 5),
        "outside": round(strict(right(outside, plain), heard.segment), 5),
        "outside, fitted": round(crossed(outside, trust), 5),
    }


def main() -> None:
    """Run so many seeds of one preset."""
    options: argparse.ArgumentParser = variants.parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--epochs", type=int, default=20)
    asked = variants.asked(options)
    rows = []
    for seed in range(asked.seeds):
        changes = [{"device": asked.device}, *map(assignment, asked.set), {"seed": seed}]
        rows.append({"seed": seed, **measured(asked.preset, changes, asked.epochs)})
        print(rows[-1], flush=True)
        variants.write(asked, {"epochs": asked.epochs}, rows)


if __name__ == "__main__":
    main()
