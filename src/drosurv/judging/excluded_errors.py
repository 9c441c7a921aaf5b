"""The last sentence of audits, checks and certificates: which errors could not be excluded.

For subgroups it takes the search of `certify` in formulas: its critical value, its power, and what its bounds exclude.
The formulas were fitted to simulations of the search with independent columns of numbers. So were the
constants of :class:`SubgroupSearch`, by ``python -m experiments.studies.plan`` with ``--what search`` and ``certify``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from drosurv.presentation import counted, first_upper, listing
from drosurv.presentation.wording import end_of_ratio

# Lowest and highest ratio of observed to expected events that cannot be excluded.
Interval = tuple[float | None, float | None]
# Expected events that a group must have to be judged.
LEAST_EVENTS = 10.0
# The largest statistic of all subgroups is distributed like that of so many independent ones, times columns^2 / share.
_INDEPENDENT = 1.25
# The highest bound is that of a subgroup of average risk, whose statistic is the median of the largest among
# a columns^b, or that of the patients at lowest risk, with fewer events, whose statistic has this median.
_SMALL, _POWER, _LOWEST = 1.1, 2.65, 0.9
# A subgroup must deviate by so much more than the critical value, so that the search names it, and not only subgroups
# that share fewer patients with it.
_TO_NAME = 0.2


def excluded_errors(
    patients: int,
    events: float,
    *,
    groups: Mapping[str, float] | None = None,
    intervals: Mapping[str, Interval] | None = None,
    n_columns: int = 10,
    subgroup_share: float = 0.05,
    exclude: float = 1.5,
    level: float = 0.95,
    n_tests: float | None = 1,
    until: str = "",
    design_effect: float = 1.0,
) -> str:
    """Return a sentence on the errors of a model that this number of patients cannot exclude, and how many could.

    Errors are ratios of observed to expected events. Those of everybody and of a group are taken from `intervals`, or
    are exp(-z / sqrt(events)) to exp(z / sqrt(events)), the interval of a ratio of 1; those of a subgroup are the
    bounds of :func:`drosurv.certify` where observed equal expected events, adjusted for its search among the columns.

    Parameters
    ----------
    patients, events : number
        Patients who were judged, and their events.
    groups : mapping of str to number, optional
        Events of each named group that is judged; the sentence is about the group with the fewest.
    intervals : mapping of str to pair of numbers, optional
        Intervals of the ratio for ``"everybody"`` and each group, where an audit has them; None is an unknown end.
    n_columns : int
        Columns that may define subgroups; 0 leaves subgroups out.
    subgroup_share : float
        Smallest share of the patients that makes a subgroup.
    exclude : float
        Ratio, above 1, for which the sentence says how many patients would exclude it for the last of these: a
        subgroup, else the smallest group, else everybody.
    level : float
        Confidence: of all subgroups at once, and of all other tests at once.
    n_tests : float or None
        Number of tests of everybody and of groups between which 1 - level is divided (Bonferroni); None leaves them
        out, and the sentence is about subgroups only.
    until : str
        Time by which events are counted, such as "3 years"; empty for the whole follow-up.
    design_effect : float
        How many times larger variances are than those of independent patients, if patients are in clusters.

    Examples
    --------
    >>> from drosurv.planning import excluded_errors
    >>> print(excluded_errors(1500, 450, groups={"women": 180, "men": 270}, n_columns=8))
    With these 1,500 patients and 450 events, 0.91 to 1.10 times the predicted events cannot be excluded for \
everybody, 0.86 to 1.16 times for women (the judged group with the fewest events) and 0.32 to 2.07 times for a \
subgroup of 5 % with as many events as predicted. About 5,710 patients would exclude 1.5 times for such a subgroup.
    """
    if patients < 1 or events < 1:
        return "Without events, no error of the model can be excluded."
    z = float(norm.isf((1 - level) / max(n_tests or 1, 1) / 2))
    whom, own, needed = "everybody", float(events) / design_effect, (z / np.log(exclude)) ** 2
    known, not_judged = intervals or {}, ""
    error = known.get(whom, _around_one(z, own))
    errors = {} if n_tests is None else {whom: error}
    if groups:
        whom = min(groups, key=lambda group: groups[group])
        own = float(groups[whom]) / design_effect
        error = known.get(whom, _around_one(z, own))
        errors[f"{whom} (the judged group with the fewest events)"] = error
    if n_columns > 0:
        # As the bounds of certify, which hold for all subgroups at once.
        search = SubgroupSearch(n_columns, subgroup_share, level)
        whom, own = f"a subgroup of {100 * subgroup_share:g} %", subgroup_share * events / design_effect
        error = search.bounds_of_one(subgroup_share * events, design_effect)
        needed = search.events_to_exclude_in_one(exclude)
        if _is_known(error):
            errors[f"{whom} with as many events as predicted"] = error
            whom = "such a subgroup"
        else:
            not_judged = f"{whom} of average risk has fewer than {LEAST_EVENTS:g} events and is not judged."
    if errors:
        adjusted = " (adjusted)" if intervals else ""
        text = f"{excluded_sentence(patients, events, errors, until, adjusted)} {first_upper(not_judged)}".rstrip()
    else:
        text = f"{_start(patients, events, until)} {not_judged}"
    if error[1] is not None and error[1] <= exclude:
        return f"{text} So {exclude:g} times is excluded for {whom}."
    if own < 1 / 2 or needed <= own:
        return text
    # Three digits.
    enough = int(float(f"{patients * needed / own:.3g}"))
    return f"{text} About {enough:,} patients would exclude {exclude:g} times for {whom}."


def excluded_sentence(
    patients: int, events: float, errors: Mapping[str, Interval], until: str = "", adjusted: str = ""
) -> str:
    """Say which ratios of events cannot be excluded; `errors` are their intervals by group, which may be `adjusted`."""
    said = f" the predicted events{adjusted} cannot be excluded"
    known: list[str] = []
    unknown: list[str] = []
    for name, (low, high) in errors.items():
        if low is None or high is None or not _is_known((low, high)):
            unknown.append(name)
        else:
            ratios = f"{end_of_ratio(low)} to {end_of_ratio(high)} times"
            known.append(f"{ratios}{'' if known else said} for {name}")
    text, nothing = (
        _start(patients, events, until),
        f"no wrong number of events can be excluded for {listing(unknown)}.",
    )
    if not known:
        return f"{text} {nothing}"
    text += f" {listing(known)}."
    return f"{text} {first_upper(nothing)}" if unknown else text


def _is_known(interval: Interval) -> bool:
    """Whether both ends of an interval are known, so that it excludes some ratios."""
    low, high = interval
    return low is not None and high is not None and bool(np.isfinite(high))


def _start(patients: int, events: float, until: str) -> str:
    by = f" by {until}" if until else ""
    return f"With these {counted(patients, 'patient')} and {counted(round(events), 'event')}{by},"


def _around_one(z: float, events: float) -> Interval:
    """Return the interval of a ratio of 1."""
    factor = factor_of(z, events)
    return 1 / factor, factor


def factor_of(z: float, events: float) -> float:
    """Return the half-width of the interval of a ratio of 1; infinite without events."""
    return float(np.exp(z / np.sqrt(events))) if events >= 1 else np.inf


@dataclass(frozen=True)
class SubgroupSearch:
    """The search among all subgroups of at least a share of the patients that one or two conditions define.

    `lowest` is the event rate of that share of the patients with the lowest risks, over the rate of all patients.
    """

    n_columns: int
    share: float
    level: float
    lowest: float = 1.0

    @property
    def critical_value(self) -> float:
        """Value that the largest standardised deviation of a subgroup exceeds with probability (1 - level) / 2."""
        return self._exceeded_with((1 - self.level) / 2)

    @property
    def value_to_find(self) -> float:
        """Deviation with which the search names a subgroup; too many events have a third of 1 - level."""
        return self._exceeded_with((1 - self.level) / 3) + _TO_NAME

    def _exceeded_with(self, probability: float) -> float:
        independent = max(_INDEPENDENT * self.n_columns**2 / self.share, 1.0)
        return float(norm.isf(-np.expm1(np.log1p(-probability) / independent)))

    @property
    def _reaches(self) -> tuple[tuple[float, float], ...]:
        """Critical value plus deviation, and events over those of average risk, of subgroups with high bounds."""
        usual = norm.isf(-np.expm1(np.log(0.5) / max(_SMALL * self.n_columns**_POWER, 1.0)))
        return (self.critical_value + float(usual), 1.0), (self.critical_value + _LOWEST, self.lowest)

    def events_for_power(self, ratio: float, power: float) -> float:
        """Expected events of a subgroup that is found with this power if it has `ratio` times as many."""
        return max(events_for_power(ratio, power, self.value_to_find), LEAST_EVENTS)

    def power(self, ratio: float, events: float) -> float:
        """Power to find a subgroup with `ratio` times the expected events; 0 with fewer than 10: it is not judged."""
        return 0.0 if events < LEAST_EVENTS else power_of(ratio, events, self.value_to_find)

    def events_to_exclude_in_one(self, ratio: float) -> float:
        """Expected events with which a ratio above 1 is excluded in a subgroup where observed equal expected events."""
        return max(float((self.critical_value / (2 * (np.sqrt(ratio) - 1))) ** 2), LEAST_EVENTS)

    def bound_of_one(self, events: float) -> float:
        """Bound on observed / expected events of a subgroup where both are equal; infinite with fewer than 10."""
        return self.bounds_of_one(events)[1]

    def bounds_of_one(self, events: float, design_effect: float = 1.0) -> tuple[float, float]:
        """Lower and upper bound on observed / expected events of such a subgroup, if patients are in clusters."""
        if events < LEAST_EVENTS:
            return 0.0, np.inf
        distance = self.critical_value / (2 * np.sqrt(events / design_effect))
        return float(max(1 - distance, 0.0) ** 2), float((1 + distance) ** 2)

    def events_to_exclude(self, ratio: float) -> float:
        """Expected events of a subgroup of average risk with which a ratio is excluded in all, for a right model."""
        root = 2 * (np.sqrt(ratio) - 1)
        needed = [max((reach / root) ** 2, LEAST_EVENTS) / share for reach, share in self._reaches]
        return float(max(needed))

    def bound(self, events: float) -> float:
        """Bound on the ratio in all subgroups of a right model, in the median; `events` are those of average risk."""
        counts = [(reach, max(share * events, LEAST_EVENTS)) for reach, share in self._reaches]
        return float(max((1 + reach / (2 * np.sqrt(count))) ** 2 for reach, count in counts))


def events_for_power(ratio: float, power: float, critical_value: float) -> float:
    """Expected events with which a test finds `ratio` times as many; square roots of counts have variance 1/4."""
    return float(((critical_value + norm.ppf(power)) / (2 * (np.sqrt(ratio) - 1))) ** 2)


def power_of(ratio: float, events: float, critical_value: float) -> float:
    """Power of a test to find `ratio` times the expected events."""
    return float(norm.cdf(2 * np.sqrt(events) * abs(np.sqrt(ratio) - 1) - critical_value))
