"""The report: what it says, what it leaves out, and that nothing in a run can break it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from tame.bench.drawing import envelope
from tame.bench.record import read_record
from tame.bench.report import write_report
from tame.errors import RunError, StorageError

NAMES = ("digits 0 and 1", "digits 2 and 3", "digits 4 and 5")
LIMIT = 2_000_000


def event(step: int, loss: float | None, expert: int, **more: Any) -> dict[str, Any]:
    seen: dict[str, Any] = {"step": step, "loss": loss, "smoothed": loss, "threshold": None}
    seen |= {"expert": expert, "change": "none", "since": None, "restarted": False}
    return seen | more


def course(length: int) -> list[dict[str, Any]]:
    """Return three segments of equal length, each learned by its own expert from 2.3 down."""
    events = []
    for step in range(3 * length):
        expert, age = divmod(step, length)
        loss = 0.01 + 2.3 * float(np.exp(-12 * age / length))
        threshold = 3.0 * loss if age > 2 else None
        change = "recruited" if expert and not age else "none"
        events.append(event(step, loss, expert, threshold=threshold, change=change))
    return events


def segment_row(origin: int, name: str) -> dict[str, Any]:
    routed = {str(origin): 97, str((origin + 1) % 3): 3}
    row = {"origin": origin, "name": name, "samples": 100, "strict": 0.9 + origin / 50}
    return row | {"within_segment": 0.961, "oracle": 0.987, "selector": 0.97, "routed": routed}


def outcome(length: int, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    """Return the result that goes with `course`."""
    numbered = list(enumerate(names))
    shift = {"change": "recruited", "since": None}
    return {
        "format": 1,
        "method": "tame",
        "stream": {"name": "split", "batch": 16},
        "preset": "embedded-split",
        "seed": 7,
        "hints": [],
        "accuracy": {"strict": 0.92, "within_segment": 0.961, "oracle": 0.987, "pooled": 0.913},
        "selector_accuracy": 0.97,
        "per_segment": [segment_row(origin, name) for origin, name in numbered],
        "experts": 3,
        "expert_table": [{"id": i, "stands_for": i, "samples": 1234} for i, _ in numbered],
        "segments": [{"origin": i, "name": name, "start": i * length} for i, name in numbered],
        "shifts": [{**shift, "step": i * length, "expert": i} for i, _ in numbered[1:]],
        "detection": {"delays": [0, 1], "false_alarms": 0, "missed": 0},
        "restarts": 0,
        "parameters": {"nonzero": 61_234, "paper_count": 61_706, "dense": 308_530},
        "bytes": {"model": 251_904, "samples": 999, "training_state": 2_468_240, "file": None},
        "samples": 3 * length * 16,
        "samples_kept": 2000,
        "seconds": {"stream": 41.2, "consolidate": 62.9, "evaluate": 0.84},
        "versions": {"torch": "2.11.0"},
        "hardware": {"cpu": "A & B", "threads": 2},
    }


def without_experts(length: int) -> dict[str, Any]:
    """Return what a run of a learner without experts leaves."""
    result = outcome(length)
    result |= {"method": "finetune", "experts": 0, "selector_accuracy": None, "shifts": []}
    result["accuracy"]["oracle"] = None
    result["expert_table"] = [{"id": 0, "stands_for": 0, "samples": 3702}]
    result["detection"] = {"delays": [], "false_alarms": 0, "missed": 2}
    for row in result["per_segment"]:
        row |= {"oracle": None, "selector": None, "routed": {}}
    return result


def folder_with(path: Path, result: Any, events: list[dict[str, Any]]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    lines = "".join(json.dumps(line) + "\n" for line in events)
    (path / "events.jsonl").write_text(lines, encoding="utf-8")
    return path


def report_of(path: Path, result: Any, events: list[dict[str, Any]]) -> str:
    return write_report(folder_with(path, result, events)).read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Collects what a browser would show and refer to; complains about tags that do not match."""

    VOID = frozenset({"meta", "path", "use", "rect", "line", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.shown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            self._note(name, value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def _note(self, name: str, value: str) -> None:
        if name == "id":
            self.ids.append(value)
        if name.endswith(("href", "src")):
            self.references.append(value)
        self.references.extend(f"#{inner}" for inner in re.findall(r"url\(#([^)]*)\)", value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.shown.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.shown).split())


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_says_what_happened_in_one_sentence(tmp_path: Path):
    page = report_of(tmp_path, outcome(40), course(40))
    sentence = (
        "3 segments came unannounced; 3 experts were recruited, 2 of 2 changes noticed, "
        "delays 0 1, no false alarm."
    )
    assert f'<p class="lead">{sentence}</p>' in page


def test_headline_tells_of_misses_alarms_switches_and_restarts(tmp_path: Path):
    result = outcome(40)
    result["detection"] = {"delays": [3], "false_alarms": 2, "missed": 1}
    result["shifts"].append({"step": 99, "change": "switched", "expert": 0, "since": 98})
    result["merged"] = {"3": 2}
    result["budget"] = {"refused": 1, "thinned": 50}
    result["restarts"] = 1
    result["hints"] = ["BOUNDARY"]
    said = read(report_of(tmp_path, result, course(40))).text
    assert (
        "3 segments came announced; 3 experts were kept, 1 switch to a known expert, "
        "1 of 2 changes noticed, delay 3, 2 false alarms, 1 restart, "
        "no room for 1 newcomer, 50 samples an expert left by a cap on bytes." in said
    )
    assert "told beyond the labelled stream boundary" in said


def test_headline_of_a_stream_that_never_changed(tmp_path: Path):
    result = outcome(40)
    result |= {"experts": 1, "segments": result["segments"][:1], "shifts": []}
    result["detection"] = {"delays": [], "false_alarms": 0, "missed": 0}
    said = read(report_of(tmp_path, result, course(40))).text
    assert (
        "1 segment came unannounced; 1 expert was recruited, there was no change to notice, "
        "no false alarm." in said
    )


def test_shows_every_number_by_name(tmp_path: Path):
    said = read(report_of(tmp_path, outcome(40), course(40))).text
    names = ["Strict accuracy 92.0 %", "Within segment 96.1 %", "Oracle routing 98.7 %"]
    names += ["Selector 97.0 %", "Experts 3", "Delays 0 1", "False alarms 0"]
    places = [said.index(name) for name in names]
    assert places == sorted(places)  # strict accuracy comes first
    for expected in ("pooled 91.3 %", "61,234 19.8 %", "61,706 20.0 %", "308,530 100.0 %"):
        assert expected in said
    for expected in ("model 251.9 kB 251,904", "samples kept 999 B 999", "file on disk — —"):
        assert expected in said
    for expected in ("stream 41.2 s", "consolidate 1 min 3 s", "torch 2.11.0", "cpu A & B"):
        assert expected in said


def test_explains_every_number(tmp_path: Path):
    said = read(report_of(tmp_path, outcome(40), course(40))).text
    meanings = ("its own global label", "forgives misrouting", "unweighted mean over segments")
    meanings += ("Dense parameters times the fraction kept", "0 means that very batch")
    meanings += ("handed to the expert that stands for its segment", "not the first in a segment")
    assert [meaning for meaning in meanings if meaning not in said] == []


def test_routing_matrix_frames_the_right_expert_and_counts_each_cell(tmp_path: Path):
    page = report_of(tmp_path, outcome(40), course(40))
    row = page[page.index("digits 2 and 3</th><td class=") :]
    assert re.findall(r'<td class="(cell[^"]*)"[^>]*>([^<]*)</td>', row)[:3] == [
        ("cell none", "0"),
        ("cell own strong", "97"),
        ("cell", "3"),
    ]
    assert "--share:0.970" in row


def test_routing_matrix_sums_up_experts_beyond_the_busiest(tmp_path: Path):
    result = outcome(40)
    crowd = {str(expert): 1 for expert in range(10, 60)}
    result["per_segment"][0]["routed"] = {"0": 50, **crowd}
    result["expert_table"] += [{"id": 61, "stands_for": None, "samples": 0}]
    page = report_of(tmp_path, result, course(40))
    assert "24 others" in read(page).text  # 54 experts, 30 of them with a column
    first = page[page.index("digits 0 and 1</th><td class=") :]
    counts = re.findall(r'<td class="cell[^"]*"[^>]*>(\d+)</td>', first[: first.index("</tr>")])
    assert sum(map(int, counts)) == 100
    cells = [line.count('<td class="cell') for line in page.split("<tr>")]
    assert [count for count in cells if count] == [31, 31, 31]


def test_pictures_are_inline_and_keep_their_text(tmp_path: Path):
    page = report_of(tmp_path, outcome(40), course(40))
    assert page.count("<svg") == 3
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    for expected in ("truth", "experts", "expert 2", "expert 1 recruited", *NAMES):
        assert expected in drawn, expected


def test_is_one_file_that_needs_no_other(tmp_path: Path):
    page = report_of(tmp_path, outcome(40), course(40))
    reader = read(page)
    assert {"script", "link", "img", "iframe"}.isdisjoint(reader.tags)
    namespaces = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")
    for namespace in namespaces:
        page = re.sub(rf'xmlns(:xlink)?="{namespace}"', "", page)
    assert "http" not in page
    assert "@import" not in page
    assert set(reader.references) <= {f"#{name}" for name in reader.ids}


def test_no_id_is_used_twice_and_every_variable_is_defined(tmp_path: Path):
    page = report_of(tmp_path, outcome(40), course(40))
    ids = read(page).ids
    assert len(ids) == len(set(ids))
    defined = set(re.findall(r"(--[a-z]+):", page))
    assert set(re.findall(r"var\((--[a-z]+)", page)) <= defined
    dark = page[page.index("prefers-color-scheme: dark") :]
    light = page[: page.index("prefers-color-scheme: dark")]
    assert set(re.findall(r"(--[a-z]+):", light)) <= set(re.findall(r"(--[a-z]+):", dark))


def test_text_from_the_run_is_never_markup(tmp_path: Path):
    nasty = "<b>&\"'$x$</script>"
    result = outcome(40, (nasty, "<b>", "鬼\u0416 {0}"))
    result |= {
        "method": "<i>m",
        "preset": "<i>p",
        "stream": "<i>s",
        "hints": ["<i>H"],
        "seed": "<i>",
    }
    result["versions"] = {"<i>v": "<i>w"}
    result["hardware"] = {"<i>h": {"<i>": 1}}
    reader = read(report_of(tmp_path, result, course(40)))
    assert "i" not in reader.tags
    assert "script" not in reader.tags
    # Facts of the page's header are bold; nothing else is.
    assert reader.tags.count("b") == 4
    assert reader.text.count(nasty) == 6  # three tables, three pictures
    assert "鬼\u0416 {0}" in reader.text


def test_a_learner_without_experts_has_no_routing(tmp_path: Path):
    events = [event(step, 1.0 + step, 0, smoothed=None) for step in range(120)]
    said = read(report_of(tmp_path, without_experts(40), events)).text
    assert "3 segments came unannounced; finetune is one model without experts." in said
    assert "Strict accuracy 92.0 %" in said
    lowered = said.lower()
    for absent in (
        "oracle",
        "selector",
        "sent right",
        "delay",
        "false alarm",
        "expert 0",
        "threshold",
    ):
        assert absent not in lowered, absent
    assert re.search(r"\b(nan|none|null)\b", lowered) is None


def judged_by_votes(length: int) -> list[dict[str, Any]]:
    """Return `course` as a detector sees it that counts votes: none, and many at a change."""
    events = course(length)
    for seen in events:
        seen |= {"smoothed": 31.0 if seen["change"] != "none" else 0.0, "threshold": 7.0}
    return events


def test_what_is_not_in_units_of_the_loss_stands_below_it_by_its_own_name(tmp_path: Path):
    result = outcome(40) | {"compares": "votes <b>"}
    page = report_of(tmp_path, result, judged_by_votes(40))
    said = read(page).text
    assert "Loss, and votes <b> against threshold" in said
    assert "What the votes <b> must exceed for an alarm" in said
    assert "smoothed" not in said
    assert page.count("step (batches seen)") == 2  # of the losses, and of the timeline
    alone = report_of(tmp_path / "alone", outcome(40), judged_by_votes(40))
    assert heights(page)[0] > heights(alone)[0]
    assert heights(page)[1:] == heights(alone)[1:]


def heights(page: str) -> list[float]:
    """Return how high the pictures of a page are."""
    return [float(found) for found in re.findall(r'viewBox="0 0 [0-9.]+ ([0-9.]+)"', page)]


def test_a_statistic_without_a_threshold_is_drawn_all_the_same(tmp_path: Path):
    events = [seen | {"threshold": None} for seen in judged_by_votes(40)]
    said = read(report_of(tmp_path, outcome(40) | {"compares": "votes"}, events)).text
    assert "Loss of each batch" in said
    assert "votes" in said


@pytest.mark.parametrize("said", [{}, {"compares": None}, {"compares": "smoothed loss"}])
def test_results_of_old_do_not_say_what_is_compared(tmp_path: Path, said: dict[str, Any]):
    text = read(report_of(tmp_path, outcome(40) | said, course(40))).text
    assert "Loss against threshold" in text
    assert "What the smoothed loss must exceed for an alarm" in text


def test_nulls_and_numbers_that_are_none_become_dashes_and_gaps(tmp_path: Path):
    result = outcome(40)
    result["accuracy"]["strict"] = float("nan")
    result["per_segment"][1]["strict"] = None
    result["detection"]["delays"] = [None, 2]
    result["parameters"]["dense"] = 0
    result["seconds"]["evaluate"] = None
    events = course(40)
    for place, loss in ((5, None), (6, float("nan")), (7, float("inf")), (8, 0.0), (9, -1.0)):
        events[place]["loss"] = events[place]["smoothed"] = loss
    page = report_of(tmp_path, result, events)
    said = read(page).text
    assert "Strict accuracy —" in said
    assert "3 batches without a finite loss left out" in said
    assert "1 of 1 change noticed, delay 2" in said
    assert re.search(r"\b(nan|inf|None|null)\b", page) is None


def test_losses_that_are_never_a_number_still_give_a_page(tmp_path: Path):
    events = [event(step, None, 0, restarted=step == 60) for step in range(120)]
    said = read(report_of(tmp_path, outcome(40), events)).text
    assert "120 batches without a finite loss left out" in said
    assert "expert 0 restarted" in said


def test_nothing_observed_and_nothing_held_out_still_give_a_page(tmp_path: Path):
    result = outcome(40) | {"per_segment": [], "segments": [], "shifts": [], "expert_table": []}
    said = read(report_of(tmp_path / "empty", result, [])).text
    assert "No batch was observed." in said
    assert "Nothing was held out." in said
    said = read(report_of(tmp_path / "single", result, course(40)[:1])).text
    assert "batches 1 " in said


def test_stays_small_with_a_hundred_thousand_events(tmp_path: Path):
    length = 34_000
    generator = np.random.default_rng(0)
    events = course(length)
    for line, factor in zip(events, generator.lognormal(0.0, 0.4, len(events)), strict=True):
        line["loss"] *= factor
    path = write_report(folder_with(tmp_path, outcome(length), events))
    assert len(events) > 100_000
    assert path.stat().st_size < LIMIT


def test_stays_small_when_everything_goes_wrong_at_every_step(tmp_path: Path):
    count = 100_000
    events = [event(step, 1.0 + step % 7, step, restarted=True) for step in range(count)]
    result = outcome(40)
    shift = {"change": "recruited", "since": None}
    result["shifts"] = [{**shift, "step": step, "expert": step} for step in range(count)]
    result["segments"] = [{"origin": i % 3, "name": NAMES[i % 3], "start": i} for i in range(count)]
    result["detection"]["delays"] = list(range(count))
    path = write_report(folder_with(tmp_path, result, events))
    assert path.stat().st_size < LIMIT
    assert "delays 0 to 99999 (mean 49999.5)" in path.read_text(encoding="utf-8")


def test_many_segments_are_drawn_from_the_worst_and_all_listed(tmp_path: Path):
    names = tuple(f"part {number:02}" for number in range(50))
    result = outcome(4, names)
    for row in result["per_segment"]:
        row["strict"] = 1.0 - row["origin"] / 100
    page = report_of(tmp_path, result, course(4))
    picture = page[page.index('id="accuracy-') : page.index("</svg>", page.index('id="accuracy-'))]
    assert "part 49" in picture
    assert "part 09" not in picture
    assert "part 09" in read(page).text


def test_thinning_keeps_every_peak_and_gap():
    values = np.sin(np.arange(10_000) / 300.0)
    values[4321] = 50.0
    values[4322] = -50.0
    values[7000:7100] = np.nan
    picked = envelope(values, bins=500)
    assert {4321, 4322} <= set(picked.tolist())
    assert len(picked) <= 1000
    assert np.isnan(values[picked]).any()
    assert (np.diff(picked) > 0).all()
    np.testing.assert_array_equal(envelope(values[:900], bins=500), np.arange(900))


def test_same_run_same_bytes_whatever_the_readers_settings(tmp_path: Path):
    first = write_report(folder_with(tmp_path / "a", outcome(40), course(40))).read_bytes()
    with matplotlib.rc_context({"axes.linewidth": 9.0, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        second = write_report(folder_with(tmp_path / "b", outcome(40), course(40))).read_bytes()
        assert dict(matplotlib.rcParams) == before
    assert first == second


def test_replaces_the_old_report_whole_and_leaves_nothing_else(tmp_path: Path):
    folder = folder_with(tmp_path, outcome(40), course(40))
    (folder / "report.html").write_text("old", encoding="utf-8")
    assert write_report(folder) == folder / "report.html"
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    found = sorted(path.name for path in folder.iterdir())
    assert found == ["events.jsonl", "report.html", "result.json"]


def test_a_report_that_cannot_be_written_is_the_projects_own_error(tmp_path: Path):
    folder = folder_with(tmp_path, outcome(40), course(40))
    (folder / "report.html" / "in the way").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"report\.html"):
        write_report(folder)


@pytest.mark.parametrize("missing", ["result.json", "events.jsonl"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str):
    folder = folder_with(tmp_path, outcome(40), course(40))
    (folder / missing).unlink()
    with pytest.raises(RunError, match=re.escape(missing)):
        write_report(folder)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"accuracy": None}, "'accuracy' should be an object, not None"),
        ({"accuracy": {"strict": 1.0}}, "'accuracy.within_segment' is missing"),
        ({"shifts": [{"step": "3"}]}, "'shifts[0].step' cannot be '3'"),
        ({"segments": {}}, "'segments' should be a list, not {}"),
        ({"format": 2}, "has format 2; this version reads 1"),
    ],
)
def test_a_result_of_another_shape_is_refused_by_key(
    tmp_path: Path, change: dict[str, Any], complaint: str
):
    folder = folder_with(tmp_path, outcome(40) | change, course(40))
    with pytest.raises(RunError, match=re.escape(complaint)) as caught:
        write_report(folder)
    assert "result.json" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff\xfe"])
def test_a_result_that_is_no_object_is_refused(tmp_path: Path, content: bytes):
    folder = folder_with(tmp_path, {}, course(40))
    (folder / "result.json").write_bytes(content)
    with pytest.raises(RunError, match=r"result\.json"):
        write_report(folder)


@pytest.mark.parametrize(
    "line", ['{"step": 0, "lo', "3", "{}", '{"step":0,"loss":"x","smoothed":1,"threshold":1}', "\n"]
)
def test_a_broken_event_is_refused(tmp_path: Path, line: str):
    folder = folder_with(tmp_path, outcome(40), course(40))
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match=r"events\.jsonl"):
        write_report(folder)


def test_a_line_cut_short_is_named_by_its_number(tmp_path: Path):
    folder = folder_with(tmp_path, outcome(40), course(40))
    whole = (folder / "events.jsonl").read_text(encoding="utf-8")
    (folder / "events.jsonl").write_text(whole[:-20], encoding="utf-8")
    with pytest.raises(RunError, match="line 120"):
        read_record(folder)
