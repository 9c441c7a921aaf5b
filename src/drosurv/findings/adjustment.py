"""The one adjustment for all tests that were made: Bonferroni's, in a single step.

The error rate, one minus the level, is divided between all tests in proportion to their weights. Adjusted p-values are
p over the test's share of all weights, and intervals have the level that this leaves to the test. So an interval
excludes the right value exactly if its adjusted p-value is below one minus the level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from drosurv.findings.residual_tests import JudgedValue

# Number of tests of a number of events that the search for subgroups counts as. Its p-values are adjusted for all
# subgroups already.
SEARCH_TESTS = 6


class Question(NamedTuple):
    """A question about a group, and its estimate; None, with the reason `why`, if it could not be judged.

    `few_events` says that the reason is a small number of events, which depends on outcomes.

    `status` is what it means if the estimate is not right; a difference from the right value below `least` is not
    visible in what is shown, and is no problem. Only values on one `side` of the right value are a problem: -1 for
    values below it, 0 for both sides. `weight` is its share of the error rate, relative to a test of the number of
    events. `details` are texts for its sentence. `without_one` leaves out the patient who contributes most to the
    estimate, and returns the label of this patient's row and the new estimate; None where this is not known.
    """

    question: str
    attribute: str
    group: str
    estimate: JudgedValue | None
    status: str
    least: float = 0.0
    side: int = 0
    weight: float = 1.0
    why: str = ""
    few_events: bool = False
    details: dict[str, str] = {}  # noqa: RUF012
    without_one: Callable[[], tuple[str, JudgedValue | None]] | None = None


class Adjusted(NamedTuple):
    """A test with its adjusted p-value and interval, and whether it shows a problem."""

    test: Question
    value: float
    low: float
    high: float
    p: float
    wrong: bool


def is_counted(test: Question) -> bool:
    """Whether a test counts in the adjustment.

    One that could not be judged because of few events does, since that depends on outcomes; that of a group with few
    patients does not.
    """
    return test.estimate is not None or test.few_events


def used_weight(weight: float, side: int) -> float:
    """Return the weight that a test uses: half of its own if it can show a problem on one side only."""
    return weight / (1 + abs(side))


def total_weight(tests: Sequence[Question]) -> float:
    """Return the summed weights that tests use."""
    return sum(used_weight(test.weight, test.side) for test in tests if is_counted(test))


def adjust(tests: Sequence[Question], level: float, total: float) -> list[Adjusted]:
    """Return tests with p-values and intervals that are adjusted for tests of this total weight."""
    return [_adjusted(test, level, total) for test in tests]


def decided_by_one(found: Adjusted, level: float, total: float) -> tuple[str, float] | None:
    """Return the row of the one patient without whom there is no problem, and the p-value then; None if there is none.

    The row is the label of the patient's first row in the user's table.
    """
    if not found.wrong or found.test.without_one is None:
        return None
    row, estimate = found.test.without_one()
    without = _adjusted(found.test._replace(estimate=estimate), level, total)
    return None if without.wrong or estimate is None else (row, without.p)


def _adjusted(test: Question, level: float, total: float) -> Adjusted:
    if test.estimate is None:
        return Adjusted(test, np.nan, np.nan, np.nan, np.nan, wrong=False)
    estimate = test.estimate
    times = max(total / test.weight, 1.0)
    p = min(estimate.p * times, 1.0)
    low, high = estimate.interval((1 - level) / times)
    return Adjusted(test, estimate.value, low, high, p, is_wrong(test, estimate, p, level))


def is_wrong(test: Question, estimate: JudgedValue, p: float, level: float) -> bool:
    """Whether an estimate with this adjusted p-value shows a problem."""
    distance = estimate.value - estimate.right
    return p < 1 - level and abs(distance) >= test.least and test.side * distance >= 0
