"""What a consolidation has come to, in a file of its own, and how it is stopped."""

import pytest

from tame.bench.unfinished import StopRequestedError, Unfinished
from tame.engine.journal import next_note
from tame.types import silent


def test_notes_are_saved_when_it_is_time_and_taken_up_again(tmp_path):
    path = tmp_path / "consolidation.tame"
    with Unfinished(path, 3600.0, lambda: False).kept():
        next_note().reached(lambda: pytest.fail("it is not time"))
    assert not path.exists()
    work = Unfinished(path, 0.0, lambda: False)
    with work.kept():
        next_note().reached(lambda: {"batch": 3})
    assert work.spent == 0
    again = Unfinished(path, 3600.0, lambda: False)
    with again.kept():
        assert next_note().found == {"batch": 3}
        assert next_note().found == {}
    assert again.spent > 0


def test_asked_to_stop_it_saves_first(tmp_path):
    path = tmp_path / "consolidation.tame"
    work = Unfinished(path, 3600.0, lambda: True)
    with pytest.raises(StopRequestedError), work.kept():
        next_note().reached(lambda: {"batch": 4})
    with Unfinished(path, 3600.0, lambda: False).kept():
        assert next_note().found == {"batch": 4}


def test_ranks_that_share_the_work_stop_and_save_nothing(tmp_path):
    work = Unfinished(None, 0.0, lambda: True)
    with pytest.raises(StopRequestedError), work.kept():
        next_note().reached(dict)
    assert not list(tmp_path.iterdir())


def test_work_of_which_nothing_is_noted_stops_where_it_tells_how_far_it_is(tmp_path):
    told = []
    work = Unfinished(tmp_path / "consolidation.tame", 3600.0, lambda: len(told) == 2)
    say = work.watched(lambda *said: told.append(said))
    with work.kept():
        say("stage", 1, 3)
        with pytest.raises(StopRequestedError):
            say("stage", 2, 3)
    assert told == [("stage", 1, 3), ("stage", 2, 3)]


def test_work_that_is_noted_does_not_stop_between_two_notes(tmp_path):
    work = Unfinished(tmp_path / "consolidation.tame", 3600.0, lambda: True)
    with work.kept():
        next_note()
        work.watched(silent)("training", 1, 3)
