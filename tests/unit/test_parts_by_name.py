"""Every part can take the default's place by its name alone, and comes with its own values."""

import pytest

from tame.bench.experiment import resolve
from tame.config import assignment
from tame.core.conduct import Conduct
from tame.core.errand import Workers
from tame.core.matcher import Matcher
from tame.core.prune import Pruner
from tame.core.routed import Decision
from tame.core.selector import Selector
from tame.errors import ConfigError
from tame.registry import (
    AUGMENTS,
    CONDUCTS,
    DECISIONS,
    DETECTORS,
    MATCHERS,
    PRUNERS,
    SELECTORS,
    WORKERS,
    Registry,
)

KINDS = {
    "detector": DETECTORS,
    "matcher": MATCHERS,
    "conduct": CONDUCTS,
    "selector": SELECTORS,
    "pruner": PRUNERS,
    "decision": DECISIONS,
    "workers": WORKERS,
}
FORMS = {  # detectors have a contract of their own
    "matcher": Matcher,
    "conduct": Conduct,
    "selector": Selector,
    "pruner": Pruner,
    "decision": Decision,
    "workers": Workers,
}
PARTS = [(kind, name) for kind, registry in KINDS.items() for name in registry]


def default(registry: Registry, name: str):
    """Return a part with the values it has by itself; skip one whose extra is not installed."""
    try:
        return registry.get(name)()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("kind", "name"), [part for part in PARTS if part[0] in FORMS])
def test_a_part_has_everything_its_kind_is_asked_for(kind: str, name: str):
    part = default(KINDS[kind], name)
    assert part is None or isinstance(part, FORMS[kind])


@pytest.mark.parametrize("form", ["{}={}", "{}.name={}"])
@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_a_part_named_anew_has_its_own_values(kind: str, name: str, form: str):
    own = default(KINDS[kind], name)
    packaged = getattr(resolve().settings, kind)
    found = getattr(resolve(None, [assignment(form.format(kind, name))]).settings, kind)
    kept = ".name" in form and type(packaged) is type(own)  # the preset's part, not renamed
    assert found == (packaged if kept else own)


@pytest.mark.parametrize("name", list(AUGMENTS))
def test_an_augment_named_anew_has_its_own_values(name: str):
    found = resolve(None, [assignment(f"pruner.retraining.augment={name}")])
    assert found.settings.pruner.retraining.augment == default(AUGMENTS, name)
