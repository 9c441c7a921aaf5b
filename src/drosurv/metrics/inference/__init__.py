"""Confidence intervals, tests and adjustment for multiple testing, the same for all metrics.

The functions do not depend on survival analysis: they take values and their bootstrap replicates, or group labels and
a statistic.

**Intervals.** A number with an interval is an :class:`Interval`. A metric of all patients, or of one group, has the
percentile interval of a bootstrap of the patients (`Draws`). A mean of absolute values, which chance makes larger, has
that of a distance. A gap, the largest difference between groups, is biased upward; its interval
is the estimate plus and minus a quantile of the largest error of any difference (`largest_errors` of `Draws`).
Ratios of observed to expected events have exact intervals (`observed_over_expected`). Intervals are cut at the
smallest and largest possible value. A number that is the same in every replicate has no interval.

**Tests.** "No gap" is tested by permuting the group labels; the statistic is the largest difference divided by its
standard error, which keeps the test valid in large samples if groups also differ in other ways (`permutation_test`).
For metrics without a fast standard error, "no gap" is tested by the bootstrap: the p-value is the share of replicates
whose largest error is at least the estimate. Two models are compared on the same replicates (`paired_comparison`,
`compare_draws`).

**Adjustment.** The gaps of one metric over several attributes are one family. Its p-values and intervals are adjusted
by Bonferroni's method (`judge_gaps`, `adjusted_p`, `shared_level`). If the test does not reject, the lower end of the
interval is 0, so that test and interval agree.

**Small groups** get values, but are never named as best or worst. Sentences about a gap use the interval and the test
among large groups only; that test permutes labels among the patients of these groups.
"""

from drosurv.metrics.inference.gaps import (
    Gap,
    adjusted_p,
    compare_draws,
    holm,
    judge_gaps,
    largest_deviation,
    largest_difference,
    paired_comparison,
    permutation_test,
    shared_level,
    studentized_ratio,
)
from drosurv.metrics.inference.intervals import (
    Draws,
    Method,
    Replicates,
    bootstrap,
    observed_over_expected,
)

__all__ = [
    "Draws",
    "Gap",
    "Method",
    "Replicates",
    "adjusted_p",
    "bootstrap",
    "compare_draws",
    "holm",
    "judge_gaps",
    "largest_deviation",
    "largest_difference",
    "observed_over_expected",
    "paired_comparison",
    "permutation_test",
    "shared_level",
    "studentized_ratio",
]
