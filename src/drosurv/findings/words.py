"""One sentence for each status: what was found, for whom, with the number, its interval and the adjusted p-value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.findings.adjustment import Adjusted
from drosurv.findings.residual_tests import JudgedValue
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
from drosurv.target import FloatArray, cause_names, has_causes

#: Attribute and group of all patients in tables.
EVERYONE, ALL = "overall", "all"
ALL_PATIENTS = "all patients"
#: Attribute of subgroups that a search found.
SUBGROUP = "subgroup"


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


class Kind(NamedTuple):
    """A kind of question, and the sentences about its answers.

    `status` is that of a finding with a wrong answer, `briefly` names it in a few words. `wrong` is the sentence about
    it: a text with the names of :func:`_fields` in braces, or a function of the group's name and the test. `clear` is
    the sentence about a right answer, with the same names. A difference from the right value below `least` is not
    visible, and only values on one `side` (-1: below) are wrong, unless it is 0. `ask` returns the number of a group,
    None if it has none; kinds that are not asked of every group have no `ask`. `contributions` returns what each row
    (n,) adds to the sum that a number of a group tests. `weight` is that of :class:`Question` for everybody, and
    `group_weight` for a group if it differs.
    """

    status: str
    briefly: str
    wrong: str | Callable[[str, Adjusted], str]
    clear: str = ""
    least: float = 0.0
    side: int = 0
    ask: Callable[[Any], JudgedValue | None] | None = None
    contributions: Callable[[Any, JudgedValue], FloatArray] | None = None
    weight: float = 1.0
    group_weight: float | None = None

    def weight_of(self, attribute: str) -> float:
        """Return the weight of a question about everybody or about a group of an attribute."""
        return self.weight if attribute == EVERYONE or self.group_weight is None else self.group_weight


def sentence(kind: Kind, status: str, found: Adjusted) -> str:
    """Return the sentence about a test with a status."""
    test = found.test
    name = who(test.attribute, test.group)
    if status == "too_few":
        return f"Not judged: {name} ({test.why})."
    if status == "clear":
        return kind.clear.format(**_fields(name, found))
    if status == "unclear":
        gain = f"gain {_number(found)} per patient"
        return f"The model is not yet shown to predict {name} better than one curve: {gain}."
    return kind.wrong(name, found) if callable(kind.wrong) else kind.wrong.format(**_fields(name, found))


def _number(found: Adjusted) -> str:
    return with_interval(found.value, found.low, found.high)


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
        "times": f"{ratio_with_interval(found.value, found.low, found.high)} times",
        "p": _p(found),
        "until": until,
        "when": when,
        "threshold": details.get("threshold", "the threshold"),
        "reference": first_upper(reference),
    }


def slope(name: str, found: Adjusted) -> str:
    """Return the sentence about a wrong calibration slope."""
    shown = ratio_with_interval(found.value, found.low, found.high)
    number = f"calibration slope {shown}, 1 is right; {_p(found)}"
    if found.value >= 1:
        return f"Predicted risks of {name} differ too little ({number})."
    if found.test.details.get("trained") and name == ALL_PATIENTS and found.value > 0:
        return (
            f"Predicted risks of {name} differ too much, as after overfitting ({number}): recalibrate the model, or "
            "fit it with more penalty or to more patients."
        )
    return f"Predicted risks of {name} differ too much ({number})."


def per_hundred(events: float, patients: float) -> str:
    """Return events per 100 patients as a whole number, or with one digit below 10.

    >>> per_hundred(18, 100), per_hundred(7, 300), per_hundred(0, 50)
    ('18', '2.3', '0')
    """
    share = 100 * events / patients
    text = f"{share:.1f}" if 0 < share < 9.95 else f"{share:.0f}"
    return text.removesuffix(".0")


def counts_sentence(
    patients: float,
    expected: float,
    observed: float,
    *,
    whom: str = "",
    event: str = "the event",
    by: str = "",
    several: bool = False,
) -> str:
    """Say how many of 100 patients were expected to have an event, and how many had one.

    `by` is the time until which events are counted, and `several` whether patients have several events.

    >>> counts_sentence(50, 3, 9, whom="age infants", event="a relapse")
    'Of 100 patients of age infants the model expects 6 to have a relapse; 18 had it.'
    """
    of = f" of {whom}" if whom else ""
    counts = [per_hundred(events, patients) for events in (expected, observed)]
    until = f" by {by}" if by else ""
    if several or max(expected, observed) > patients:
        return f"Per 100 patients{of} the model expects {counts[0]} events{until}; {counts[1]} were observed."
    return f"Of 100 patients{of} the model expects {counts[0]} to have {event}{until}; {counts[1]} had it."


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
    observed, expected, events = (
        f"{row[name]:,.1f}".removesuffix(".0") for name in ("observed", "expected", "events")
    )
    if when:
        some = "none" if observed == "0" else observed
        return (
            f"{some} of their {events} events came {when}; the predicted timing implies {expected} "
            f"({ratio_text(row['ratio'])} times"
        )
    # Cumulative hazards may exceed the number of patients.
    of = "cumulative hazards of " if row["expected"] > row["patients"] else ""
    return f"{observed} events where {of}{expected} were predicted ({ratio_text(row['ratio'])} times"
