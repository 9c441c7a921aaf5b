"""The last sentence of audits, checks and certificates: which errors could not be excluded."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.stats import norm

from drosurv.metrics.inference.gaps import shared_level
from drosurv.planning.subgroup_search import LEAST_EVENTS, SubgroupSearch
from drosurv.presentation import counted, first_upper, listing


def excluded_errors(
    patients: int,
    events: float,
    *,
    groups: Mapping[str, float] | None = None,
    factors: Mapping[str, float] | None = None,
    n_columns: int = 10,
    subgroup_share: float = 0.05,
    exclude: float = 1.5,
    level: float = 0.95,
    n_tests: float | None = 1,
) -> str:
    """Return a sentence on the errors of a model that this number of patients cannot exclude, and how many could.

    Errors are factors between observed and expected events. That of everybody and of a group is taken from `factors`,
    or is exp(z / sqrt(events)), the half-width of the interval of a ratio of 1; that of a subgroup is the bound of
    :func:`drosurv.certify` where observed equal expected events, adjusted for its search among the columns.

    Parameters
    ----------
    patients, events : number
        Patients who were judged, and their events.
    groups : mapping of str to number, optional
        Events of each named group that is judged; the sentence is about the group with the fewest.
    factors : mapping of str to number, optional
        Largest errors inside the intervals of ``"everybody"`` and of each group, where an audit has such intervals.
    n_columns : int
        Columns that may define subgroups; 0 leaves subgroups out.
    subgroup_share : float
        Smallest share of the patients that makes a subgroup.
    exclude : float
        Error, above 1, for which the sentence says how many patients would exclude it for the last of these: a
        subgroup, else the smallest group, else everybody.
    level : float
        Confidence: of all subgroups at once, and of all other tests at once.
    n_tests : float or None
        Number of tests of everybody and of groups between which 1 - level is divided (Bonferroni); None leaves them
        out, and the sentence is about subgroups only.

    Examples
    --------
    >>> from drosurv.planning import excluded_errors
    >>> print(excluded_errors(1500, 450, groups={"women": 180, "men": 270}, n_columns=8))
    With these 1,500 patients and 450 events, an error of the expected events by a factor of up to 1.10 cannot be \
excluded for everybody, 1.16 for women (the group with the fewest events) and 2.07 for a subgroup of 5 %. About 5,710 \
patients would exclude 1.5 for a subgroup of 5 %.
    """
    events = float(events)
    if patients < 1 or events < 1:
        return "Without events, no error of the model can be excluded."
    z = float(norm.ppf((1 + shared_level(level, n_tests or 1)) / 2))
    whom, own, needed = "everybody", events, (z / np.log(exclude)) ** 2
    known, not_judged = factors or {}, ""
    error = known.get(whom, factor_of(z, events))
    errors = {} if n_tests is None else {whom: error}
    if groups:
        name = min(groups, key=lambda group: groups[group])
        whom, own = f"{name} (the group with the fewest events)", float(groups[name])
        error = errors[whom] = known.get(name, factor_of(z, own))
    if n_columns > 0:
        # As the bounds of certify, which hold for all subgroups at once.
        search = SubgroupSearch(n_columns, subgroup_share, level)
        whom, own = f"a subgroup of {100 * subgroup_share:g} %", subgroup_share * events
        error, needed = search.bound_of_one(own), search.events_to_exclude_in_one(exclude)
        if np.isfinite(error):
            errors[whom] = error
        else:
            not_judged = f"{whom} of average risk has fewer than {LEAST_EVENTS:g} events and is not judged."
    if errors:
        text = f"{excluded_sentence(patients, events, errors)} {first_upper(not_judged)}".rstrip()
    else:
        text = f"{_start(patients, events)} {not_judged}"
    if error <= exclude:
        return f"{text} So {exclude:g} is excluded for {whom}."
    if own < 1 / 2 or needed <= own:
        return text
    # Three digits.
    enough = int(float(f"{patients * needed / own:.3g}"))
    return f"{text} About {enough:,} patients would exclude {exclude:g} for {whom}."


def excluded_sentence(patients: int, events: float, errors: Mapping[str, float]) -> str:
    """Return a sentence on the named errors that cannot be excluded; an infinite error means that none can."""
    known = [f"{error:.2f} for {name}" for name, error in errors.items() if np.isfinite(error)]
    unknown = [name for name, error in errors.items() if not np.isfinite(error)]
    text = _start(patients, events)
    nothing = f"no error can be excluded for {listing(unknown)}."
    if not known:
        return f"{text} {nothing}"
    known[0] = known[0].replace(" for ", " cannot be excluded for ", 1)
    text += f" an error of the expected events by a factor of up to {listing(known)}."
    return f"{text} {first_upper(nothing)}" if unknown else text


def largest_error(low: float | None, high: float | None) -> float:
    """Return the largest factor, up or down, inside an interval of observed over expected events."""
    return np.inf if low is None or high is None or low <= 0 else float(max(high, 1 / low))


def _start(patients: int, events: float) -> str:
    return f"With these {counted(patients, 'patient')} and {counted(round(events), 'event')},"


def factor_of(z: float, events: float) -> float:
    """Return the half-width of the interval of a ratio of 1; infinite without events."""
    return float(np.exp(z / np.sqrt(events))) if events >= 1 else np.inf
