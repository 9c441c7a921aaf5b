"""One sentence for each status: what was found, for whom, with the number, its interval and the adjusted p-value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from drosurv.findings.adjustment import Adjusted
from drosurv.presentation import first_upper, group_name, moment, p_text, with_interval, written

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


def sentence(status: str, found: Adjusted) -> str:
    """Return the sentence about a test with a status."""
    test = found.test
    name = who(test.attribute, test.group)
    if status == "too_few":
        return f"Not judged: {name} ({test.why})."
    if status == "clear":
        return f"{_CLEAR[test.question].format(name=name)} {_number(found)}."
    return _SENTENCES[status, test.question](name, found)


def _number(found: Adjusted) -> str:
    return with_interval(found.value, found.low, found.high)


def _times(found: Adjusted) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f}) times"


def _p(found: Adjusted) -> str:
    return f"adjusted {p_text(found.p)}"


def _level(name: str, found: Adjusted) -> str:
    until = found.test.details.get("until", "")
    return f"The number of events is wrong for {name}: {_times(found)} the predicted events{until} ({_p(found)})."


def _shape(name: str, found: Adjusted) -> str:
    when = found.test.details.get("when", "in a part of the follow-up")
    return (
        f"The timing of events is wrong for {name}: {when} there were {_times(found)} as many events as the "
        f"predictions and the rest of the follow-up imply ({_p(found)})."
    )


def _spread(name: str, found: Adjusted) -> str:
    slope = (
        f"calibration slope {found.value:.2f} ({found.low:.2f} to {found.high:.2f}), 1 is right; {_p(found)}"
    )
    if found.value >= 1:
        return f"Predicted risks of {name} differ too little ({slope})."
    if found.test.details.get("trained") and name == ALL_PATIENTS and found.value > 0:
        return (
            f"Predicted risks of {name} differ too much, as after overfitting ({slope}): recalibrate the model, or fit "
            "it with more penalty or to more patients."
        )
    return f"Predicted risks of {name} differ too much ({slope})."


def _decisions(name: str, found: Adjusted) -> str:
    side = "at least" if found.test.question == "above threshold" else "below"
    threshold, by = found.test.details.get("threshold", "the threshold"), found.test.details.get("by", "")
    whom = "Patients" if name == ALL_PATIENTS else f"Patients of {name}"
    risk = f"a predicted risk of {side} {threshold}{by}"
    return f"{whom} with {risk} had {_times(found)} the predicted events ({_p(found)})."


def _harm(name: str, found: Adjusted) -> str:
    return (
        f"For {name}, predictions are worse than one curve for everybody: gain {_number(found)} per patient."
    )


def _reference(name: str, found: Adjusted) -> str:
    reference = found.test.details.get("reference", "the reference")
    return f"{first_upper(reference)} predicts {name} better: gain of this model over it {_number(found)} per patient."


def _ranked(name: str, found: Adjusted) -> str:
    return f"Patients are ranked worse than by chance: c-index {_number(found)}."


def _unclear(name: str, found: Adjusted) -> str:
    return f"The model is not yet shown to predict {name} better than one curve: gain {_number(found)} per patient."


_SENTENCES: dict[tuple[str, str], Callable[[str, Adjusted], str]] = {
    ("miscalibrated", "level"): _level,
    ("miscalibrated", "shape in time"): _shape,
    ("miscalibrated", "spread"): _spread,
    ("harm", "gain"): _harm,
    ("harm", "ranking"): _ranked,
    ("dominated", "gain over reference"): _reference,
    ("worse_for_some", "gain over reference"): _reference,
    ("wrong_decisions", "above threshold"): _decisions,
    ("wrong_decisions", "below threshold"): _decisions,
    ("unclear", "gain"): _unclear,
}
_CLEAR = {
    "level": "Events agree with the predictions for {name}: observed/expected",
    "shape in time": "The timing of events agrees with the predictions for {name}: ratio in the most extreme part",
    "spread": "Differences between patients agree with the predictions for {name}: calibration slope",
    "ranking": "Patients are ranked no worse than by chance: c-index",
    "gain": "The model predicts {name} better than one curve: gain per patient",
    "gain over reference": "The other model is not shown to predict {name} better: gain over it per patient",
    "above threshold": "Events above the threshold agree with the predictions for {name}: observed/expected",
    "below threshold": "Events below the threshold agree with the predictions for {name}: observed/expected",
}


#: Problems in a few words, by question.
BRIEFLY = {
    "level": "wrong number of events",
    "shape in time": "wrong timing of events",
    "spread": "wrong differences between patients",
    "gain": "worse than one curve for everybody",
    "gain over reference": "predicted better by the other model",
    "above threshold": "wrong number of events above the threshold",
    "below threshold": "wrong number of events below the threshold",
    "ranking": "ranked worse than by chance",
}


def percent(share: float) -> str:
    """Return a probability in percent, such as "30 %"."""
    return f"{written(100 * share, 'time')} %"


def period(since: float | None, until: float | None, unit: str = "") -> str:
    """Return when a part of the follow-up was; without a beginning it is the whole, and without an end the last.

    >>> period(0.0, 2.0, "years"), period(2.0, 3.0, "years"), period(3.0, None, "years"), period(None, None)
    ('by 2 years', 'from 2 to 3 years', 'after 3 years', '')
    """
    if pd.isna(since):
        return ""
    if pd.isna(until):
        return f"after {moment(since, unit)}"
    if since == 0:
        return f"by {moment(until, unit)}"
    return f"from {written(since, 'time')} to {moment(until, unit)}"


def subgroup_events(row: Mapping[str, Any], unit: str = "") -> str:
    """Return the events of a significant subgroup and those that were predicted, with the ratio, in words."""
    when = period(row["since"], row["until"], unit)
    observed, expected, events = (
        f"{row[name]:,.1f}".removesuffix(".0") for name in ("observed", "expected", "events")
    )
    if when:
        return f"{observed} of {events} events came {when}, where the model puts {expected} ({row['ratio']:.2f} times"
    # Cumulative hazards may exceed the number of patients.
    of = "cumulative hazards of " if row["expected"] > row["patients"] else ""
    return f"{observed} events where {of}{expected} were predicted ({row['ratio']:.2f} times"
