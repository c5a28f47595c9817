"""The metrics of the accuracy matrix, by hand, and how a stream is followed to get it."""

import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from tame.bench import matrix
from tame.bench.agreement import adjusted_rand
from tame.bench.calibration import calibration_error, expected_error
from tame.bench.course import Course, Followed, chances, summarise
from tame.bench.effort import macs_per_prediction
from tame.methods.finetune import FineTune
from tame.types import Batch, HeldOut, Truth

# Three segments, each new:            after 0: after 1: after 2, a column an origin
ROWS = [[0.9, 0.2, 0.1], [0.6, 0.8, 0.3], [0.7, 0.5, 1.0]]
FIRST = [0, 1, 2]


def test_the_papers_square_matrix_by_hand():
    assert matrix.average_accuracy(ROWS) == pytest.approx((0.7 + 0.5 + 1.0) / 3)
    assert matrix.backward_transfer(ROWS, FIRST) == pytest.approx((-0.2 - 0.3) / 2)
    chance = [0.0, 0.1, 0.1]
    assert matrix.forward_transfer(ROWS, FIRST, chance) == pytest.approx((0.1 + 0.2) / 2)
    assert matrix.forgetting(ROWS, FIRST) == pytest.approx((0.2 + 0.3) / 2)
    anytime = (0.9 + (0.6 + 0.8) / 2 + (0.7 + 0.5 + 1.0) / 3) / 3
    assert matrix.average_anytime(ROWS, FIRST) == pytest.approx(anytime)


def test_forgetting_takes_the_best_of_all_earlier_rows_and_may_be_negative():
    rows = [[0.5, 0.0], [0.9, 0.4], [0.8, 0.7]]
    # the first origin was best in the middle; the second came in row 1 and grew
    assert matrix.forgetting(rows, [0, 1]) == pytest.approx(((0.9 - 0.8) + (0.4 - 0.7)) / 2)


def test_a_return_is_no_new_origin():
    rows = [[0.9, 0.1], [0.3, 0.8], [0.9, 0.6]]  # a b a
    assert matrix.backward_transfer(rows, [0, 1]) == pytest.approx((0.0 - 0.2) / 2)
    assert matrix.forward_transfer(rows, [0, 1], [0.0, 0.0]) == pytest.approx(0.1)


def test_one_segment_has_no_transfer():
    assert matrix.backward_transfer([[0.9]], [0]) is None
    assert matrix.forward_transfer([[0.9]], [0], [0.0]) is None
    assert matrix.forgetting([[0.9]], [0]) is None


def test_dip_is_the_deepest_fall_or_none():
    assert matrix.worst_dip(0.9, [0.7, 0.4, 0.8]) == pytest.approx(0.5)
    assert matrix.worst_dip(0.5, [0.6]) == 0.0
    assert matrix.worst_dip(None, [0.6]) is None


def test_chance_guesses_among_the_labels_seen():
    labels = {0: torch.tensor([0, 1]), 1: torch.tensor([2, 1, 1, 1])}
    truth = Truth((0, 1), (0, 5), {}, {}, lambda _: {})
    assert chances(truth, labels) == [0.0, 0.75 / 2]


@pytest.mark.parametrize(
    "counts",
    [{0: {0: 3, 1: 1}, 1: {1: 4, 0: 2}}, {0: {0: 5}, 1: {0: 2, 1: 3}, 2: {2: 4}}],
)
def test_agreement_is_the_adjusted_rand_index(counts):
    experts = [e for e, row in counts.items() for n in row.values() for _ in range(n)]
    origins = [o for row in counts.values() for o, n in row.items() for _ in range(n)]
    assert adjusted_rand(counts) == pytest.approx(adjusted_rand_score(origins, experts))


def test_calibration_error_by_hand():
    # bins of width 1/15: 0.97 twice (one right), 0.55 twice (both wrong)
    found = expected_error(torch.tensor([0.97, 0.97, 0.55, 0.55]), torch.tensor([1, 0, 0, 0]))
    assert found == pytest.approx(0.5 * abs(0.5 - 0.97) + 0.5 * 0.55, abs=1e-6)


class Steady:
    """Answers 0 until it has learned something, then whatever it learned last."""

    hints = FineTune.hints

    def __init__(self) -> None:
        self.label = 0

    def predict(self, x, when="ever"):  # noqa: ARG002
        return torch.full((len(x),), self.label)


class TwoSegments:
    """Label 0 for four batches of one, then label 1."""

    def __len__(self) -> int:
        return 8

    def truth(self):
        labels = {0: (0,), 1: (1,)}
        return Truth((0, 1), (0, 4), {0: "a", 1: "b"}, labels, lambda step: {int(step >= 4): 1})

    def held_out(self):
        x = torch.zeros(3, 1)
        return [HeldOut(o, "ab"[o], x, torch.full((3,), o)) for o in (0, 1)]


def test_following_a_stream_gives_matrix_prequential_and_dip():
    learner, stream = Steady(), TwoSegments()
    course = Course(stream, Followed())
    for step in range(8):
        label = int(step >= 4)
        course.before(learner, step, Batch(torch.zeros(1, 1), [label]))
        learner.label = label
        if course.due(step + 1):
            course.add_row(learner)
        assert not course.due(step + 1)
    assert course.found.rows == [[1.0, 0.0], [0.0, 1.0]]
    assert course.found.early == [[4, 4], [3, 4]]  # the first batch of label 1 was not expected
    assert course.found.known == [[], [1.0, 0.0]]  # at the shift, and one batch later
    found = course.summary()
    assert found["backward_transfer"] == -1.0
    assert found["prequential"] == 7 / 8
    assert found["worst_dip"] == 1.0
    assert course.found.shares == [1.0] * 4 + [0.0] + [1.0] * 3
    assert found["recoveries"] == [{"start": 4, "returned": False, "batches": 1}]
    assert course.asked() == {key: found[key] for key in ("prequential", "recoveries")}
    kept = Followed(**course.found.to_json())
    assert summarise(kept, stream.truth(), stream.held_out()) == found


def test_macs_and_calibration_of_a_known_network():
    learner = FineTune(net={"name": "mlp", "hidden": [16]})
    learner.observe(Batch(torch.eye(8), list(range(8))))
    held = [HeldOut(0, "a", torch.eye(8), torch.arange(8))]
    assert macs_per_prediction(learner, held) == 8 * 16 + 16 * 10
    error = calibration_error(learner, held)
    assert error is not None
    assert 0.0 < error < 1.0
    assert calibration_error(Steady(), held) is None
