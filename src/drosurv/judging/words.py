"""One sentence for each status: what was found, for whom, with the number, its interval and the adjusted p-value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from drosurv.judging.adjustment import Adjusted
from drosurv.patients.groups import EVERYONE
from drosurv.patients.target import cause_names, has_causes
from drosurv.presentation import (
    cause_in_words,
    first_upper,
    group_name,
    moment,
    p_text,
    ratio_text,
    ratio_with_interval,
    time_span,
    with_interval,
    written,
)

ALL_PATIENTS = "all patients"
#: Attribute of subgroups that a search found.
SUBGROUP = "subgroup"
#: End of the sentence about a significant difference that is no problem.
SMALL = "significant, but small"
#: Why nobody is judged if no patient had an event.
NO_EVENT = "no patient had an event"
#: How patients count at few predicted times who are censored before.
CENSORED_BEFORE = "with those censored before counted like others of their risk"


def who(attribute: str, group: str) -> str:
    """Return the name of a group with its attribute.

    >>> who("overall", "all"), who("sex", "f")
    ('all patients', 'sex f')
    """
    if attribute == SUBGROUP:
        return f"patients with {group}"
    return ALL_PATIENTS if attribute == EVERYONE else group_name(attribute, group)


def event_in_words(y: Any, cause: int | None = None) -> str:
    """Return the event of a target in words: "the event", that of a cause, or an event of any cause.

    >>> from drosurv import Surv
    >>> event_in_words(Surv.competing([1, 2], [3.0, 4.0], names=["cancer", "other death"]), cause=1)
    "the event 'cancer'"
    """
    named = cause is not None and cause_names(y)
    return f"the event {event_name(y, cause)}" if named else event_name(y, cause)


def event_name(y: Any, cause: int | None = None) -> str:
    """Return the event of a target as a name, where a sentence says already that it is an event.

    >>> from drosurv import Surv
    >>> event_name(Surv.competing([1, 2], [3.0, 4.0], names=["cancer", "other death"]), cause=1)
    "'cancer'"
    """
    if cause is None:
        return "an event of any cause" if has_causes(y) else "the event"
    names = cause_names(y)
    return f"{'' if names else 'an event of '}{cause_in_words(cause, names)}"


def sentence(status: str, found: Adjusted) -> str:
    """Return the sentence about a test with a status."""
    test, kind = found.test, found.test.kind
    name = who(test.attribute, test.group)
    if status == "too_few":
        return f"Not judged: {name} ({test.why})."
    if status == "clear":
        if found.significant and kind.small:
            return first_upper(f"{kind.small.format(**_fields(name, found))}: {SMALL}.")
        return kind.clear.format(**_fields(name, found))
    if status == "unclear" and test.question == "level":
        times, until = (
            f"{ratio_text(found.low)} to {ratio_text(found.high)} times",
            _fields(name, found)["until"],
        )
        return f"Cannot tell for {name}: {times} the predicted events{until} (adjusted) cannot be excluded."
    if status == "unclear":
        gain = f"gain {_number(found)} per patient"
        return f"The model is not yet shown to predict {name} better than one curve: {gain}."
    return kind.wrong(name, found) if callable(kind.wrong) else kind.wrong.format(**_fields(name, found))


def _number(found: Adjusted) -> str:
    assert found.test.estimate is not None
    right = found.test.estimate.right
    return adjusted_interval(with_interval(found.value, found.low, found.high, right=right))


def adjusted_interval(number: str) -> str:
    """Say of a number with its interval that this is adjusted for other tests.

    >>> adjusted_interval("1.13 (1.07 to 1.18)"), adjusted_interval("1.13")
    ('1.13 (adjusted 1.07 to 1.18)', '1.13')
    """
    return number.replace(" (", " (adjusted ", 1)


def _p(found: Adjusted) -> str:
    return f"adjusted {p_text(found.p)}"


def _fields(name: str, found: Adjusted) -> dict[str, str]:
    """Return the values that sentences may use: the group, its number, the time, and what was given."""
    details, estimate = found.test.details, found.test.estimate
    assert estimate is not None
    unit, reference = details.get("unit", ""), details.get("reference", "the reference")
    until, when = "", "in a part of the follow-up"
    if np.isfinite(estimate.time):
        end = moment(estimate.time, unit)
        until = f" by {end}"
        when = time_span(estimate.since, estimate.time, unit) if estimate.since > 0 else f"until {end}"
    return {
        "name": name,
        "patients": "Patients" if name == ALL_PATIENTS else f"Patients of {name}",
        "number": _number(found),
        "times": f"{adjusted_interval(ratio_with_interval(found.value, found.low, found.high))} times",
        "difference": _difference(found.value),
        "much": "little" if found.value >= 1 else "much",
        "p": _p(found),
        "until": until,
        "when": when,
        "threshold": details.get("threshold", "the threshold"),
        "reference": first_upper(reference),
    }


def _difference(ratio: float) -> str:
    """Return how far a ratio is from 1, such as "2 % more"."""
    percent = f"{abs(100 * (ratio - 1)):.1f}".removesuffix(".0")
    return f"{percent} % {'more' if ratio >= 1 else 'fewer'}"


def slope(name: str, found: Adjusted) -> str:
    """Return the sentence about a wrong calibration slope."""
    shown = adjusted_interval(ratio_with_interval(found.value, found.low, found.high))
    number = f"calibration slope {shown}, 1 is right; {_p(found)}"
    if found.value >= 1:
        return f"Predicted risks of {name} differ too little ({number})."
    if found.high < 0:
        return f"Predicted risks of {name} are in the reverse order ({number})."
    if found.test.details.get("trained") and name == ALL_PATIENTS and found.value > 0:
        return (
            f"Predicted risks of {name} differ too much, as after overfitting ({number}): recalibrate the model, or "
            "fit it with more penalty or to more patients."
        )
    return f"Predicted risks of {name} differ too much ({number})."


def per_hundred(*shares: float) -> list[str]:
    """Return shares as numbers of 100 patients: whole, or all with one decimal if one of them is below 10.

    >>> per_hundred(0.18, 0.12, 0.244), per_hundred(0.0233, 0.2), per_hundred(0.0)
    (['18', '12', '24'], ['2.3', '20.0'], ['0'])
    """
    digits = 1 if any(0 < 100 * share < 9.95 for share in shares) else 0
    return [f"{100 * share:.{digits}f}" for share in shares]


def of_hundred(observed: float, predicted: float, low: float, high: float) -> tuple[str, str]:
    """Return an observed risk, with its interval where it is known, and a predicted one, as numbers of 100 patients.

    >>> of_hundred(0.31, 0.40, 0.28, 0.34), of_hundred(0.31, 0.40, np.nan, np.nan)
    (('31 (28 to 34)', '40'), ('31', '40'))
    """
    known = (low, high) if np.isfinite([low, high]).all() else ()
    had, expected, *ends = per_hundred(observed, predicted, *known)
    return f"{had} ({' to '.join(ends)})" if ends else had, expected


def risk_sentence(
    predicted: float,
    observed: float,
    low: float = np.nan,
    high: float = np.nan,
    *,
    by: str,
    whom: str = "",
    event: str = "the event",
) -> str:
    """Say how many of 100 patients had the event by a time, with its interval, and how many the model expected.

    >>> risk_sentence(0.40, 0.31, 0.28, 0.34, by="5 years", whom="sex m")
    'By 5 years: of 100 patients of sex m, 31 (28 to 34) had the event; the model expected 40.'
    """
    had, expected = of_hundred(observed, predicted, low, high)
    of = f" of {whom}," if whom else ""
    return f"By {by}: of 100 patients{of} {had} had {event}; the model expected {expected}."


def events_sentence(observed: float, expected: float, *, whom: str = "", by: str = "") -> str:
    """Compare counted events with those that a model expects during follow-up, or events by a time.

    >>> events_sentence(18, 6.2, whom="age infants")
    'Of age infants, 18 events were counted; 6.2 were expected during follow-up.'
    """
    of, counted, predicted = (
        f"Of {whom}, " if whom else "",
        counted_events(observed),
        number_of_events(expected),
    )
    if by:
        estimated = estimated_events(number_of_events(observed), by)
        return first_upper(f"{of}{estimated}; {predicted} were expected.")
    was = "was" if counted == "1 event" else "were"
    return f"{of}{counted} {was} counted; {predicted} were expected during follow-up."


def number_of_events(number: float) -> str:
    """Return a number of events, with one decimal if it is below 100 and not whole.

    >>> number_of_events(6.24), number_of_events(18), number_of_events(1157.8)
    ('6.2', '18', '1,158')
    """
    return f"{number:,.0f}" if number >= 99.95 else f"{number:.1f}".removesuffix(".0")


def counted_events(number: float) -> str:
    """Return a number of events with the noun."""
    shown = number_of_events(number)
    return f"{shown} event{'' if shown == '1' else 's'}"


def compared_events(observed: float, expected: float) -> str:
    """Return observed and expected events, for a cell."""
    return f"{counted_events(observed)}, {number_of_events(expected)} expected"


def estimated_events(number: str, by: str) -> str:
    """Say how many events by one of few predicted times are estimated, in a clause."""
    return f"an estimated {number} events happened by {by}, {CENSORED_BEFORE}"


def percent(share: float) -> str:
    """Return a probability in percent, such as "30 %"."""
    return f"{written(100 * share, 'time')} %"


def period(since: float | None, until: float | None, unit: str = "") -> str:
    """Return when a part of the follow-up was; without a beginning it is the whole, and without an end the last.

    >>> period(0.0, 2.0, "years"), period(2.0, 3.0), period(3.0, None, "years"), period(None, None)
    ('by 2 years', 'from time 2 to 3', 'after 3 years', '')
    """
    if pd.isna(since):
        return ""
    if pd.isna(until):
        return f"after {moment(since, unit)}"
    if since == 0:
        return f"by {moment(until, unit)}"
    return time_span(since, until, unit)


def subgroup_events(row: Mapping[str, Any], unit: str = "") -> str:
    """Return the events of a significant subgroup and those that were predicted, with the ratio, in words."""
    when = period(row["since"], row["until"], unit)
    observed, expected, events = (number_of_events(row[name]) for name in ("observed", "expected", "events"))
    times = f"({ratio_text(row['ratio'])} times"
    if when:
        some = "none" if observed == "0" else observed
        return f"{some} of their {events} events came {when}; the predicted timing implies {expected} {times}"
    # Cumulative hazards may exceed the number of patients.
    of = "cumulative hazards of " if row["expected"] > row["patients"] else ""
    return f"{counted_events(row['observed'])} where {of}{expected} were predicted {times}"
