"""What studies of a preset and its variants have in common: their options, and their file."""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from tame.bench.experiment import Experiment, resolve
from tame.bench.machine import hardware, versions
from tame.config import assignment


def parser(about: str | None) -> argparse.ArgumentParser:
    """Return the options every study has."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("preset")
    made.add_argument("--data", type=Path)
    made.add_argument("--device", default="cpu")
    made.add_argument("--out", type=Path)
    made.add_argument("--set", action="append", default=[])
    made.add_argument("--try", action="append", default=[], dest="tries")
    return made


def asked(options: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the command line; the data it names are those of the whole process."""
    found = options.parse_args()
    if found.data:
        os.environ["TAME_DATA"] = str(found.data)
    return found


def changes(text: str) -> list[dict[str, Any]]:
    """Return the changes KEY=VALUE[;KEY=VALUE] of one variant."""
    return [assignment(one) for one in text.split(";") if one]


def held_back(preset: str, changes: list[dict[str, Any]]) -> Experiment:
    """Return an experiment on the same stream less a tenth of its training data."""
    data = resolve(preset, changes).stream.data
    less = f"held-back:{data}" if isinstance(data, str) else [f"held-back:{one}" for one in data]
    return resolve(preset, [*changes, {"stream": {"data": less}}])


def told(settings: list[str]) -> list[str]:
    """Return what was set, but for the place where weights lie: it changes nothing."""
    return [one for one in settings if not one.partition("=")[0].endswith(".weights")]


def write(found: argparse.Namespace, heading: dict[str, Any], rows: Any) -> None:
    """Write a study's rows to its file, if it was given one."""
    if not found.out:
        return
    about = {"preset": found.preset, **heading, "set": told(found.set)}
    about |= {"hardware": hardware(found.device), "versions": versions()}
    found.out.parent.mkdir(parents=True, exist_ok=True)
    found.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
