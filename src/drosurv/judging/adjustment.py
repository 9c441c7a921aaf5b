"""The adjustment for all tests that were made.

Half of the error rate, one minus the level, belongs to questions about everybody, a quarter to named groups and a
quarter to the search for subgroups, which adjusts its p-values for all subgroups by itself. What was not asked leaves
its share to everybody. Within everybody, and within the groups, p-values and intervals are adjusted jointly, with the
correlations of what each patient contributes to the tests. An adjusted p-value is the smallest error rate of all tests
together at which a test rejects. So an interval excludes the right value exactly if its adjusted p-value is below one
minus the level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from drosurv.judging.residual_tests import JudgedValue
from drosurv.metrics.estimates import joint, spread_out, sums_by_cluster
from drosurv.patients.groups import EVERYONE
from drosurv.patients.target import FloatArray, IntArray

#: Shares of the error rate that belong to named groups, and to the search for subgroups.
GROUPS_SHARE, SEARCH_SHARE = 0.25, 0.25
#: Factor within which a significant ratio is called small, where no other one is given.
RELEVANCE = 1.05


class Kind(NamedTuple):
    """A kind of question, and the sentences about its answers.

    `status` is that of a finding with a wrong answer, `briefly` names it in a few words. `wrong` is the sentence about
    it: a text with the names that :mod:`drosurv.judging.words` gives in braces, or a function of the group's name and
    the test. `clear` is the sentence about a right answer, and `small` that about a significant difference that is too
    small to be a problem, with the same names. A difference from the right value below `least` is not visible in what
    is shown, and only values on one `side` (-1: below) are a problem, unless it is 0. `ask` returns the number of a
    group, None if it has none; kinds that are not asked of every group have no `ask`. `contributions` returns what each
    row (n,) adds to the sum that a number of a group tests. `weight` divides the error rate between the questions about
    everybody, and between those about groups, where it is `group_weight` if given.
    """

    name: str
    status: str
    briefly: str
    wrong: str | Callable[[str, Adjusted], str]
    clear: str = ""
    small: str = ""
    least: float = 0.0
    side: int = 0
    ask: Callable[[Any], JudgedValue | Sequence[JudgedValue] | None] | None = None
    contributions: Callable[[Any, JudgedValue], FloatArray] | None = None
    weight: float = 1.0
    group_weight: float | None = None


class Question(NamedTuple):
    """A question about a group, and its estimate; None, with the reason `why`, if it could not be judged.

    `few_events` says that the reason is a small number of events, which depends on outcomes. `contributions` (n,) are
    what each patient adds to the tested sum. `details` are texts for its sentence.
    """

    kind: Kind
    attribute: str
    group: str
    estimate: JudgedValue | None
    why: str = ""
    few_events: bool = False
    contributions: FloatArray | None = None
    details: dict[str, str] = {}  # noqa: RUF012

    @property
    def question(self) -> str:
        """Name of its kind."""
        return self.kind.name

    @property
    def weight(self) -> float:
        """The weight of its kind, for everybody or for a group; 0 if the test does not count in the adjustment.

        One that could not be judged because of few events does, since that depends on outcomes; that of a group with
        few patients does not.
        """
        if self.estimate is None and not self.few_events:
            return 0.0
        of_group = None if self.attribute == EVERYONE else self.kind.group_weight
        return self.kind.weight if of_group is None else of_group


class Adjusted(NamedTuple):
    """A test with its adjusted p-value and interval.

    It is `significant` if the test rejects the right value on a side that counts, and `wrong`, a problem, if the
    estimate is also beyond the limit of relevance. `alpha` is the error rate of the test alone.
    """

    test: Question
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    wrong: bool = False
    significant: bool = False
    alpha: float = np.nan


def adjust(
    tests: Sequence[Question],
    level: float,
    *,
    searched: bool = False,
    clusters: IntArray | None = None,
    relevance: float = 1.0,
) -> list[Adjusted]:
    """Return tests with adjusted p-values and intervals.

    If subgroups were `searched`, the search has its share of the error rate. Contributions of one of the `clusters`
    (n,) are summed, but those of a group within one. A ratio is a problem only beyond the factor `relevance` from 1, a
    slope beyond `relevance` - 1, a c-index if its odds are beyond that factor.
    """
    of_groups = [test.weight > 0 and test.attribute != EVERYONE for test in tests]
    of_everybody = [test.weight > 0 and test.attribute == EVERYONE for test in tests]
    left = 1 - SEARCH_SHARE * searched
    share = left if not any(of_everybody) else GROUPS_SHARE if any(of_groups) else 0.0
    found: dict[int, Adjusted] = {}
    for family, part in ((of_groups, share), (of_everybody, left - share)):
        places = np.flatnonzero(family).tolist()
        own = [tests[k] for k in places]
        found |= dict(zip(places, _family(own, level, part, clusters, relevance), strict=True))
    return [found.get(k, Adjusted(test)) for k, test in enumerate(tests)]


def _family(
    tests: Sequence[Question], level: float, share: float, clusters: IntArray | None, relevance: float
) -> list[Adjusted]:
    """Adjust tests jointly for each other, and for the share of the error rate that they have together."""
    if not tests:
        return []
    weight = np.array([test.weight for test in tests])
    side = np.array([float(test.kind.side) for test in tests])
    together = joint(_correlations(tests, clusters), weight, side)
    p = np.array([np.nan if test.estimate is None else test.estimate.p for test in tests])
    adjusted = np.minimum(together.adjusted(p) / share, 1.0)
    alphas = together.alphas(1 - share * (1 - level))
    return [
        _adjusted(test, float(own), float(alpha), level, relevance)
        for test, own, alpha in zip(tests, adjusted, alphas, strict=True)
    ]


def _adjusted(test: Question, p: float, alpha: float, level: float, relevance: float) -> Adjusted:
    if test.estimate is None:
        return Adjusted(test, alpha=alpha)
    low, high = test.estimate.interval(alpha)
    significant = is_wrong(test, test.estimate, p, level)
    wrong = significant and is_relevant(test.estimate, relevance)
    return Adjusted(test, test.estimate.value, low, high, p, wrong, significant, alpha)


def _correlations(tests: Sequence[Question], clusters: IntArray | None) -> FloatArray:
    """Return correlations (k, k) of tests; those without known contributions are taken as independent."""
    found = np.eye(len(tests))
    known = [k for k, test in enumerate(tests) if test.contributions is not None]
    if not known:
        return found
    columns = []
    for k in known:
        each = tests[k].contributions
        assert each is not None
        sums = None if clusters is None else sums_by_cluster(each, clusters)
        each = each if sums is None or clusters is None else spread_out(sums, clusters)
        columns.append(each / max(float(np.sqrt(each @ each)), 1e-300))
    matrix = np.column_stack(columns)
    found[np.ix_(known, known)] = matrix.T @ matrix
    np.fill_diagonal(found, 1.0)
    return found


def is_wrong(test: Question, estimate: JudgedValue, p: float, level: float) -> bool:
    """Whether an estimate with this adjusted p-value is not right, on a side that counts and visibly."""
    distance = estimate.value - estimate.right
    return p < 1 - level and abs(distance) >= test.kind.least and test.kind.side * distance >= 0


def is_relevant(estimate: JudgedValue, relevance: float) -> bool:
    """Whether a ratio, or the odds of a c-index, is beyond a factor, or a slope beyond it less 1; gains always are."""
    if estimate.right == 0.5:
        return is_beyond(estimate.value / max(1 - estimate.value, 1e-12), relevance)
    if estimate.right != 1:
        return True
    if not estimate.on_log_scale:
        return abs(estimate.value - 1) > relevance - 1
    return is_beyond(estimate.value, relevance)


def is_beyond(ratio: float, factor: float) -> bool:
    """Whether a ratio differs from 1 by more than a factor."""
    return not 1 / factor <= ratio <= factor
