"""A throw-away package with methods of its own: one file each, one line each in a table."""

from pathlib import Path

PARROT = '''
"""Says again what it heard last."""
import os
from tame.methods.finetune import FineTune


class Parrot(FineTune):
    """Learns like plain fine-tuning."""


class Grumble(FineTune):
    """Has had enough at the third batch."""

    def observe(self, batch):
        if self._single.steps == 2:
            raise RuntimeError("enough is enough")
        return super().observe(batch)


class Martyr(FineTune):
    """Takes its process along at the third batch."""

    def observe(self, batch):
        if self._single.steps == 2:
            os.kill(os.getpid(), 9)
        return super().observe(batch)
'''
TABLE = """[tame.methods]
parrot = parrot:Parrot
grumble = parrot:Grumble
martyr = parrot:Martyr
"""


def install(folder: Path) -> Path:
    """Write the package and its entry points as pip would; return what goes on the path."""
    (folder / "parrot.py").write_text(PARROT)
    about = folder / "parrot-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(TABLE)
    return folder
