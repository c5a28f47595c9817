"""All tables and figures of the paper, written into one folder."""

from pathlib import Path

from tame.bench.paper.accuracy import table_1, table_2, table_3
from tame.bench.paper.canvas import Absent, Plate, save
from tame.bench.paper.curves import capacity_plate, tasks_plate
from tame.bench.paper.headline import headline
from tame.bench.paper.inventory import inventory
from tame.bench.paper.layout import section
from tame.bench.paper.losses import returns_plate, smoothing_plate, supplement_plate, switch_plate
from tame.bench.paper.results import Results, read_results
from tame.bench.paper.rivals import Rivals, read_rivals
from tame.bench.paper.studies import (
    gap_tables,
    hyper_table,
    returns_table,
    smoothing_table,
    twin_table,
)
from tame.bench.store import write_text

FIGURES = "figures"
_DRAWN_BY = (
    switch_plate,
    smoothing_plate,
    tasks_plate,
    capacity_plate,
    returns_plate,
    supplement_plate,
)
_TOP = (
    "First what our own presets reach, then the paper's tables and figures made anew by its own "
    "learner (`paper/...` presets) and by the methods it is compared with."
)
_ABOUT = (
    "Made by `tame paper` from the files `NAME-seedN.json` of one folder (`read from` names them), "
    "and from the cells of grids kept by `tame bench --results`. "
    "Every number of ours is a mean over n runs that differ in their seed alone, ± the half width "
    "of its 95 % interval (Student's t; none for a single run). A dash means that there is no such "
    "result. What is called the paper's was published in it."
)


def write_paper(results: Path, out: Path, grids: Path | None = None) -> Path:
    """Write `results.md` and its figures from folders of results; return the page's path."""
    found, rivals = read_results(results), read_rivals(grids)
    plates = [build(found) for build in _DRAWN_BY]
    for plate in plates:
        if isinstance(plate, Plate):
            save(plate, out / FIGURES)
    page = out / "results.md"
    write_text(page, _page(found, rivals, plates))
    return page


def _page(results: Results, rivals: Rivals, plates: list[Plate | Absent]) -> str:
    parts = [
        section("Results", _TOP, level=1),
        headline(rivals),
        section("The paper's tables and figures, made anew", _ABOUT, results.remark),
        table_1(results, rivals),
        table_2(results, rivals),
        table_3(results),
        hyper_table(),
        gap_tables(results),
        twin_table(results),
        returns_table(results),
        smoothing_table(results),
        section("Figures", *(_shown(plate) for plate in plates)),
        inventory(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(plate: Plate | Absent) -> str:
    if isinstance(plate, Absent):
        return section(plate.title, f"Left out: {plate.reason}.", level=3)
    picture = f"![{plate.title}]({FIGURES}/{plate.name}.png)"
    vector = f"([SVG]({FIGURES}/{plate.name}.svg))"
    return section(plate.title, picture, f"{plate.caption} {vector}", level=3)
