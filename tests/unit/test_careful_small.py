"""The careful conduct and the small learner's parts go together, by the whole contract."""

from dataclasses import replace

import pytest
from test_careful import careful, part
from test_class_selector import BY_NETWORK, BY_RULE
from test_gradual import PACED
from worlds import feed

from tame.checks import learner_checks
from tame.core.joint import Joint
from tame.core.prune import count_nonzero

CHECKS = dict(learner_checks())
NONZERO = 200


def small(seed: int = 0, selector=BY_NETWORK):
    return careful(
        seed, selector=selector, pruner=replace(PACED, nonzero=NONZERO), decision=Joint()
    )


@pytest.mark.parametrize("selector", [BY_RULE, BY_NETWORK], ids=["rule", "network"])
@pytest.mark.parametrize("check", CHECKS)
def test_contract(check: str, selector):
    CHECKS[check](lambda seed=0: small(seed, selector))


def test_an_expert_put_back_in_time_goes_on_being_thinned():
    learner = small()
    feed(learner, part(0, 120, 0) + part(1, 120, 1) + part(0, 40, 2))
    assert learner.expert_ids == (0, 1)
    learner.consolidate()
    kept = [count_nonzero(expert.answers) for expert in learner._pool.awake]
    assert max(kept) <= NONZERO
