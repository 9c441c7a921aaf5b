"""Intervals, tests and adjustment for many tests, the same for every number of the package.

Nothing here is about survival: functions take values and their replicates, or group labels and a statistic.

**Intervals.** A number with an interval is an :class:`Interval`. A number of all patients, or of one group, has the
percentile interval of bootstrap replicates of the patients (`Draws`). A mean of absolute values, which resampling makes
larger, has the basic bootstrap interval. A gap, the largest difference between groups, is biased upward; its interval
is the estimate plus and minus a number that the errors of all differences stay below (`largest_errors` of `Draws`).
Counts of events have exact intervals (`observed_over_expected`). No interval leaves the range of possible values. A
number that is the same in every replicate has none.

**Tests.** "No gap" is tested by permuting the group labels; the statistic is the largest difference divided by its
standard error, which keeps the test right in large samples where groups differ in other ways (`permutation_test`).
Where there is no quick standard error, the bootstrap tests: the p-value is the share of replicates that are off by at
least the estimate. Two models are compared on the same replicates (`paired_comparison`, `compare_draws`); many of their
differences together by simultaneous normal intervals (`differences_together`).

**Adjustment.** The gaps of one metric over several attributes are one family. p-values of a family are adjusted by
Holm's method, intervals are taken at Bonferroni's level (`judge_gaps`, `holm`, `widening`). A :class:`Gap` has both:
`p_value`, `low` and `high` are of the gap alone; `p_adjusted`, `low_adjusted`, `high_adjusted` are adjusted. Show one
of the two, or both with their names. A gap is more than chance if `p_adjusted` is below one minus the level. Where the
test does not find the gap, the lower end of its interval is 0, so that test and interval agree.

**Small groups** have numbers, but are never named as best or worst. Sentences about a gap use the interval and the test
of large groups alone; the test permutes labels among the patients of these groups.
"""

from drosurv.metrics.inference.gaps import (
    Gap,
    GapIntervals,
    PairedComparison,
    PermutationTest,
    compare_draws,
    differences_together,
    gap_intervals,
    holm,
    is_beyond_chance,
    judge_gaps,
    largest_deviation,
    largest_difference,
    largest_gap,
    paired_comparison,
    permutation_test,
    ratio_intervals,
    studentized_ratio,
    widening,
)
from drosurv.metrics.inference.intervals import (
    Draws,
    Interval,
    Method,
    Replicates,
    bootstrap,
    normal_interval,
    observed_over_expected,
)
from drosurv.observation import generator

__all__ = [
    "Draws",
    "Gap",
    "GapIntervals",
    "Interval",
    "Method",
    "PairedComparison",
    "PermutationTest",
    "Replicates",
    "bootstrap",
    "compare_draws",
    "differences_together",
    "gap_intervals",
    "generator",
    "holm",
    "is_beyond_chance",
    "judge_gaps",
    "largest_deviation",
    "largest_difference",
    "largest_gap",
    "normal_interval",
    "observed_over_expected",
    "paired_comparison",
    "permutation_test",
    "ratio_intervals",
    "studentized_ratio",
    "widening",
]
