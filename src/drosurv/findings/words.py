"""One sentence for each status: what was found, for whom, with the number, its interval and the adjusted p-value."""

from __future__ import annotations

from collections.abc import Callable

from drosurv.findings.adjustment import Adjusted
from drosurv.presentation import first_upper, group_name, p_text, with_interval, written

#: Attribute and group of all patients in tables.
EVERYONE, ALL = "overall", "all"
ALL_PATIENTS = "all patients"


def who(attribute: str, group: str) -> str:
    """Return the name of a group with its attribute.

    >>> who("overall", "all"), who("sex", "f")
    ('all patients', 'sex f')
    """
    return ALL_PATIENTS if attribute == EVERYONE else group_name(attribute, group)


def sentence(status: str, found: Adjusted) -> str:
    """Return the sentence about a test with a status."""
    test = found.test
    name = who(test.attribute, test.group)
    if status == "too_few":
        return f"{first_upper(name)}: not judged ({test.why})."
    if status == "clear":
        return f"{first_upper(name)}: {_CLEAR[test.question]} {_number(found)}."
    return _SENTENCES[status, test.question](name, found)


def _number(found: Adjusted) -> str:
    return with_interval(found.value, found.low, found.high)


def _times(found: Adjusted) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f}) times"


def _p(found: Adjusted) -> str:
    return f"adjusted {p_text(found.p)}"


def _level(name: str, found: Adjusted) -> str:
    until = found.test.details.get("until", "")
    return f"{first_upper(name)} had {_times(found)} the predicted events{until} ({_p(found)})."


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
    if found.test.details.get("trained"):
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
    "level": "events agree with the predictions, observed/expected",
    "shape in time": "the timing of events agrees with the predictions, largest ratio of a part",
    "spread": "differences between patients agree with the predictions, calibration slope",
    "ranking": "ranked no worse than by chance, c-index",
    "gain": "predictions are better than one curve for everybody, gain per patient",
    "gain over reference": "not predicted worse than by the reference, gain over it per patient",
    "above threshold": "events above the threshold agree with the predictions, observed/expected",
    "below threshold": "events below the threshold agree with the predictions, observed/expected",
}


def percent(share: float) -> str:
    """Return a probability in percent, such as "30 %"."""
    return f"{written(100 * share, 'time')} %"
