"""How much of each opinion to take: a finished run's decision, tried over on what it held out.

    python benchmarks/mixing.py RUN --out FILE [--device cpu]

RUN is a folder of `tame run PRESET --set stream.data=held-back:DATA`, so that what is held out are
training samples and anything may be chosen by these figures. Nothing is trained: `selector.share`
(network against statistics; a selector without it stays as it is) and `decision.trust` (expert's
labels against selector's) are set anew, and all is asked again.
"""

import argparse
import itertools
import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tame import TAME, load
from tame.bench.experiment import from_table

SHARES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
TRUSTS = (0.01, 0.25, 0.5, 0.75)


def variants(learner: TAME) -> Iterator[tuple[dict[str, float], TAME]]:
    """Go through the learner with other weights of its opinions."""
    selector, decision = learner.settings.selector, learner.settings.decision
    shares = SHARES if hasattr(selector, "share") else (None,)
    for share, trust in itertools.product(shares, TRUSTS):
        mixed = selector if share is None else replace(selector, share=share)
        settings = replace(
            learner.settings, selector=mixed, decision=replace(decision, trust=trust)
        )
        other = TAME(learner.net, settings=settings, seed=learner.seed, device=str(learner.device))
        other.load_state_dict(learner.state_dict())
        yield {"trust": trust} if share is None else {"share": share, "trust": trust}, other


def tried(folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Go through the accuracies on what a run held out."""
    table = tomllib.loads((folder / "run.toml").read_text())
    held = list(from_table(table, table["preset"]).open_stream().held_out())
    (model,) = folder.glob("*.tame")
    for weights, learner in variants(load(model, device=device)):
        shares = [
            (learner.predict(one.x).cpu() == torch.as_tensor(one.y)).double().mean() for one in held
        ]
        yield weights | {"strict": round(float(torch.stack(shares).mean()), 6)}


def main() -> None:
    """Try a run's weights over, and write what each pair gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    rows = []
    for row in tried(asked.run, asked.device):
        rows.append(row)
        print(row, flush=True)
    result = json.loads((asked.run / "result.json").read_text())
    about = {key: result[key] for key in ("preset", "seed")}
    asked.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
