"""How sure a number is: one policy for every interval, every test and every adjustment.

The room knows nothing of survival. It takes values and their replicates, or labels and a statistic, and
says how sure they are. Whoever shows a number takes its interval and its p-value from here, so that the
same gap has the same ones everywhere.

**Which interval.** A number of all patients, or of one group, has the percentile interval of bootstrap
replicates of the patients (`Draws`). A mean of absolute values, which resampling alone makes larger, has
the basic one, which mirrors the replicates at the estimate. A gap is the largest difference between groups,
and biased upward; its interval is the estimate and what all differences at once lie within of theirs
(`Extreme`). No interval leaves the range of possible values: give `lowest` and `highest`, or `largest` for
a gap. A number that is the same in every replicate has none.

**Which test.** "No gap" is tested by permuting the group labels; the statistic is the largest difference in
its standard errors, which keeps the test right for large samples when groups differ in other ways
(`permutation_test`). Where no quick standard error exists, the bootstrap tests: the share of replicates
that are off by at least the estimate. Two models are compared on the same replicates, with the bootstrap
test (`paired_comparison`, `compare_draws`); where many of their differences are judged together, by normal intervals
that all hold at once (`differences_together`).

**Which adjustment.** The gaps of one metric over several attributes are one family, as are the groups of
which it is said that no model would serve them better. p-values of a family are adjusted by Holm's method;
its intervals are taken at Bonferroni's level, so that all of them hold together (`judge_gaps`, `holm`,
`widening`).

**What goes beside what.** `judge_gaps` makes a :class:`Gap` with both: `p_value` with `low` and `high` is
the gap on its own; `p_adjusted` with `low_adjusted` and `high_adjusted` allows for the family. Show one
pair, or both with their names; never mix them. A gap is called beyond chance if `p_adjusted` is below one
less the level (`Gap.beyond_chance`). Where a test does not find the gap, the lower end beside it is 0, so
that words and interval agree.

**Who may be named.** Groups below the least size have numbers, but are never called the best or the worst
served. A sentence about a gap is about groups that are large enough, with the interval and the test of these alone.
The test permutes their labels among their own patients: pairs with patients of small groups, which a concordance
imparity counts, have no part in it.
"""

from drosurv.metrics.inference.gaps import (
    Extreme,
    Gap,
    GapIntervals,
    Number,
    PairedComparison,
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
    ratio_intervals,
    widening,
)
from drosurv.metrics.inference.interval import Interval, normal_interval, observed_over_expected
from drosurv.metrics.inference.permutation import (
    PermutationTest,
    permutation_test,
    studentized_ratio,
)
from drosurv.metrics.inference.resampling import Draws, Method, Replicates, bootstrap, generator

__all__ = [
    "Draws",
    "Extreme",
    "Gap",
    "GapIntervals",
    "Interval",
    "Method",
    "Number",
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
