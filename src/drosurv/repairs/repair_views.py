"""Repairs as tables, sentences and a figure, and the hazard ratios of a repaired linear model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.pipeline import Pipeline

from drosurv.errors import InputError, call
from drosurv.judging.rules import Condition
from drosurv.judging.words import estimated_events
from drosurv.patients.target import FloatArray
from drosurv.predictions.any_model import final_step
from drosurv.presentation import Column, Table, axes_or_new, first_upper, moment, ratio_text, written
from drosurv.repairs.effect_columns import EffectColumns
from drosurv.repairs.periods import Periods
from drosurv.repairs.repair import HeldOutNumber, Repair
from drosurv.repairs.repair_search import LARGEST_REPAIR
from drosurv.repairs.repaired_predictions import is_proportional
from drosurv.tables.columns import CategoryColumn
from drosurv.tables.encoder import TableEncoder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    Column("who", "for"),
    Column("patients", "patients", "count"),
    Column("events", "events", "count"),
    Column("changed", "what was changed"),
    Column.measured("before", "observed / expected before"),
    Column.measured("after", "after"),
    Column("slope_before", "slope before", "value"),
    Column("slope_after", "after", "value"),
    Column.measured("gain", "gain there"),
    Column.measured("gain_outside", "gain elsewhere"),
    Column("e", "e-value", "value"),
)
CHANGED = {
    "full": "effects there and of everyone",
    "own": "effects there",
    "level": "level",
}
CHANGED_BY_PERIOD = {"own": "effect of the score and hazard by period", "level": "hazard by period"}
NOTE = (
    "All numbers except patients and events come from patients not used to find or fit the repair. Slope: calibration "
    "slope, 1 is right. Gain: log likelihood per patient."
)


def corrected_groups(repairs: Sequence[Repair]) -> tuple[str, ...]:
    """Name the groups for whom repairs correct the predictions beyond chance."""
    rules = [repair.rule for repair in repairs if repair.helps]
    return tuple(dict.fromkeys("all patients" if rule is None else f"patients with {rule}" for rule in rules))


def repair_table(repairs: Sequence[Repair]) -> Table:
    """Return a table with one row for each repair."""
    columns = [
        replace(column, label="rows")
        if column.key == "patients" and any(one.in_rows for one in repairs)
        else column
        for column in COLUMNS
    ]
    return Table("repairs", "Repairs", tuple(columns), tuple(_row(repair) for repair in repairs), (NOTE,))


def _row(repair: Repair) -> dict[str, Any]:
    """Return the row of a repair in the table of repairs."""
    half = "" if repair.strength == 1 else f", times {repair.strength:g}"
    row: dict[str, Any] = {
        "who": repair.who,
        "kind": repair.kind,
        "version": repair.version,
        "strength": repair.strength,
        "changed": CHANGED_BY_PERIOD[repair.version] if repair.periods else CHANGED[repair.version] + half,
        "patients": repair.patients,
        "events": repair.events,
        "checked": repair.checked,
    }
    row |= repair.before.named("before") | repair.after.named("after")
    row |= repair.gain_inside.named("gain") | repair.gain_outside.named("gain_outside")
    row |= {"slope_before": repair.slope_before, "slope_after": repair.slope_after}
    return row | {"e": repair.e, "overlap": repair.overlap}


def repair_frame(repairs: Sequence[Repair]) -> pd.DataFrame:
    """Return one row for each repair, with intervals as ``_low`` and ``_high``."""
    rows = [_row(repair) for repair in repairs]
    keys = [key for column in COLUMNS for key in column.keys]
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else keys)


def plot_repairs(repairs: Sequence[Repair], ax: Axes | None = None) -> Axes:
    """Draw observed over expected events of each repaired group, before and after, of patients not used for it."""
    ax = axes_or_new(ax)
    for position, repair in enumerate(reversed(repairs)):
        for ratio, shift, color, label in (
            (repair.before, 0.12, "C3", "before"),
            (repair.after, -0.12, "C0", "after the repair"),
        ):
            y = position + shift
            ax.plot([ratio.low, ratio.high], [y, y], color=color)
            ax.plot(ratio.value, y, "o", color=color, label=label if position == 0 else None)
    ax.axvline(1, color="0.3", linewidth=0.8)
    # A dollar sign in a name does not start a formula.
    ax.set_yticks(range(len(repairs)), [repair.who for repair in reversed(repairs)], parse_math=False)
    ax.set_xlabel("events observed / expected, on patients not used for the repair")
    ax.set_title("Repairs" if repairs else "Nothing to repair was found")
    if repairs:
        ax.legend()
    return ax


# Summed gain in log likelihood of a group with a wrong level that is found in four of five simulated samples.
NEEDED_GAIN = 27.0
# Share of the patients in the example of a group that would have been found.
TENTH = 0.1
# Changes of a slope or of a log hazard in a period are mentioned if one of them is as large.
LEAST_PERIOD = 0.05
# A smaller ratio would be printed as 0.0.
LEAST_SAID = 0.05


def status(repairs: Sequence[Repair], events: int, min_group: int, model: str = "the model") -> str:
    """Say in one or two sentences what was found about a model, which is called `model`."""
    if repairs:
        return first_upper(f"{model} was corrected for {'; '.join(repair.who for repair in repairs)}.")
    nothing = (
        f"Nothing was repaired: no correction of {model}, for all patients or for a group of at least {min_group}, "
        "was confirmed by patients not used to find it."
    )
    low, high = detectable(TENTH * events)
    if not np.isfinite(high):
        return nothing
    # Enough digits that the ratio is not printed as 1.
    digits = max(1, int(np.ceil(-np.log10(high - 1))))
    fewer = f" (or at most {low:.{digits}f} times)" if low >= LEAST_SAID else ""
    return (
        f"{nothing} A correction for a tenth of the patients with at least {high:.{digits}f} times as many events as "
        f"predicted{fewer} would probably have been found."
    )


def detectable(expected: float) -> tuple[float, float]:
    """Return the observed / expected below which, and above which, the search finds a group with E expected events.

    A group with rho times the expected events gains E (rho log rho - rho + 1) in log likelihood. The result is 0, and
    infinity, if no ratio is far enough from 1.
    """

    def missing(rho: float) -> float:
        return float(expected * (rho * np.log(rho) - rho + 1) - NEEDED_GAIN)

    if expected <= 0:
        return 0.0, np.inf
    low = brentq(missing, 1e-9, 1.0) if missing(1e-9) > 0 else 0.0
    return float(low), float(brentq(missing, 1.0, 1.0 + 10 * NEEDED_GAIN / min(expected, 1.0)))


def in_words(repair: Repair, *, frozen: bool, unit: str = "") -> str:
    """Say what the model predicted, what the repair changed, and its effect on patients not used for it.

    Hazards by period are named for a `frozen` model only: the baseline of any other model was estimated again. `unit`
    is that of times.
    """
    if repair.periods is not None:
        return _periods_in_words(repair, repair.periods, frozen, unit)
    people = "rows" if repair.in_rows else "patients"
    whom = (
        f"all {repair.patients:,} {people}"
        if repair.rule is None
        else f"the {repair.patients:,} {people} with {repair.rule}"
    )
    sentences = []
    events = _count(repair.events)
    happened = f"{events} events were observed"
    if repair.by is not None:
        happened = estimated_events(events, moment(repair.by, unit))
    counts = (
        f"{happened}; {'the model' if frozen else 'models fitted without these patients'} predicted "
        f"{repair.predicted:,.1f} without the repair and {repair.predicted_after:,.1f} with it."
    )
    if repair.moves_away:
        sentences.append(
            f"For {whom}, the repair improves the predictions of single patients, not their total: {counts}"
        )
    else:
        sentences.append(f"For {whom}, {counts}")
    if frozen and repair.version == "level":
        factor = float(np.exp(repair.strength * repair.correction.own[0]))
        half = ": half of the fitted correction, since the gain of the whole was smaller or less certain"
        sentences.append(
            f"The repair multiplies their hazards by {ratio_text(factor)}{half if repair.strength < 1 else ''}."
        )
    if repair.changes:
        changed = (
            f"{change.label!r} is {change.inside:.2f} there and {change.outside:.2f} elsewhere"
            f"{change.contrast and f' ({change.contrast})'}"
            for change in repair.changes
        )
        sentences.append(f"The hazard ratio of {', of '.join(changed)}.")
    if repair.linear_in:
        sentences.append(
            f"A nonlinear effect of {repair.linear_in!r}, which is linear in the base model, would look the same: "
            f"compare with the base model CoxPHCV ({call('repair(CoxPHCV(), X, y)', 'drosurv repair --model cox-cv')})."
        )
    before, after, gain = repair.before, repair.after, repair.gain_inside
    if repair.version != "level" and before.low <= 1 <= before.high:
        sentences.append(
            "Their number of events was right within chance: the repair changes which of them have a high risk."
        )
    group = "" if repair.rule is None else " in the groups that were found without them"
    gained = "likelihood per patient" if repair.by is None else "score per patient at the predicted times"
    sentences.append(
        f"Checked on the {repair.checked:,} {people}{group}: they had {ratio_text(before.value)} times the predicted "
        f"events, after the repair {ratio_text(after.value)} times ({ratio_text(after.low)} to "
        f"{ratio_text(after.high)}); the gain in log {gained} is {_gain(gain)}."
    )
    # Equal predictions have no slope.
    if repair.version != "level" and np.isfinite(repair.slope_after):
        before_repair = f" was {repair.slope_before:.2f} and" if np.isfinite(repair.slope_before) else ""
        sentences.append(
            f"Their calibration slope{before_repair} is {repair.slope_after:.2f} after the repair (1 is right)."
        )
    if frozen and repair.rule is not None and repair.version == "full":
        others = repair.gain_outside
        sentences.append(
            f"The predictions of all other patients are corrected too: their gain is {_gain(others)}."
        )
    return " ".join(sentences)


def _gain(gain: HeldOutNumber) -> str:
    return f"{gain.value:.3f} ({gain.low:.3f} to {gain.high:.3f})".replace("-", "−")


def _periods_in_words(repair: Repair, periods: Periods, frozen: bool, unit: str) -> str:
    """Say how the effect of the predicted risk, and the hazard, differ from the model's in periods of the follow-up."""
    slopes, levels = 1 + periods.slopes, np.exp(periods.levels)
    sentences = []
    if abs(periods.slopes).max() >= LEAST_PERIOD:
        by_period = _by_period(slopes, periods.cuts, unit)
        sentences.append(f"The effect of the score (log hazard ratio) {_change(slopes)}: {by_period}.")
    if frozen and abs(periods.levels).max() >= LEAST_PERIOD:
        by_period = _by_period(levels, periods.cuts, unit)
        sentences.append(f"The hazard of a patient of average risk is {by_period} the predicted hazard.")
    gain, people = repair.gain_inside, "rows" if repair.in_rows else "patients"
    sentences.append(
        f"Checked on all {repair.checked:,} {people}, each with a repair that was fitted without them: the gain in log "
        f"likelihood per patient, beyond that of one slope for all times, is {_gain(gain)}."
    )
    return " ".join(sentences)


def _change(slopes: FloatArray) -> str:
    """Say whether slopes of the score fade, grow or change; reversals below a quarter of the change are ignored."""
    whole = float(slopes[-1] - slopes[0])
    if np.ptp(slopes) < 2 * LEAST_PERIOD:
        return "is different from the predicted one"
    if max(-np.sign(whole) * np.diff(slopes)) > abs(whole) / 4:
        return "changes"
    return "grows" if whole > 0 else "fades"


def _by_period(values: FloatArray, cuts: FloatArray, unit: str) -> str:
    """Say the value of each period, such as "1.40 times until time 1, 0.80 times after 1"."""
    factors = [f"{ratio_text(value)} times" for value in values]
    parts = [f"{factors[0]} until {moment(cuts[0], unit)}"]
    parts += [
        f"{value} until {written(cut, 'time')}" for value, cut in zip(factors[1:-1], cuts[1:], strict=True)
    ]
    return ", ".join([*parts, f"{factors[-1]} after {written(cuts[-1], 'time')}"])


def _count(events: float) -> str:
    return f"{events:,.0f}" if events == round(events) else f"{events:,.1f}"


# Smaller differences of log hazard ratios are not shown.
LEAST_SHOWN = 0.02
RATIO_COLUMNS = (
    Column("who", "for"),
    Column("effect", "effect of"),
    Column("hazard_ratio", "hazard ratio", "value"),
    Column("everyone", "everyone's", "value"),
)


def hazard_ratio_table(base: Any, columns: EffectColumns, repairs: Sequence[Repair]) -> Table:
    """Return hazard ratios of a linear model per unit of a feature: for everyone, then where they differ in a group.

    The base is a linear Cox model, or a Pipeline of a :class:`~drosurv.tables.TableEncoder` and one.
    """
    coefficients = linear_effects(base)
    if coefficients is None:
        raise InputError(
            f"{type(base).__name__} has no coefficients that are log hazard ratios of its columns, and so no table of "
            "them; to_frame() lists the repairs of every model."
        )
    for_all = [repair.strength * repair.correction.everywhere for repair in repairs]
    for_all += [repair.strength * repair.correction.own for repair in repairs if repair.rule is None]
    everyone = _changed(coefficients, columns, for_all)
    rows = [_ratio("everyone", name, value) for name, value in everyone.items()]
    for repair in repairs:
        if repair.rule is None:
            continue
        effects = repair.strength * repair.correction.own
        there = _changed(coefficients, columns, [*for_all, effects])
        rows.append(_ratio(repair.who, "being in the group, for an average patient", effects[0], 0.0))
        rows += [
            _ratio(repair.who, name, value, everyone.get(name, 0.0))
            for name, value in there.items()
            if abs(value - everyone.get(name, 0.0)) >= LEAST_SHOWN
        ]
    notes = (
        "Per unit of the feature. A repair is constant beyond the 1 and 99 % quantiles of a feature and of the risk, "
        f"and multiplies no hazard by more than {np.exp(LARGEST_REPAIR):.0f}.",
    )
    return Table("hazard_ratios", "Hazard ratios", RATIO_COLUMNS, tuple(rows), notes if repairs else ())


def _ratio(who: str, effect: str, log_ratio: float, usual: float | None = None) -> dict[str, Any]:
    """Return a row of the table: group, feature, hazard ratio in the group, and everyone's."""
    everyone = None if usual is None else float(np.exp(usual))
    return {"who": who, "effect": effect, "hazard_ratio": float(np.exp(log_ratio)), "everyone": everyone}


def linear_effects(base: Any) -> dict[str, float] | None:
    """Return the log hazard ratios per unit of a linear model's features; None for any other model."""
    *steps, final = base if isinstance(base, Pipeline) else [base]
    steps += [final.encoder_] if hasattr(final, "encoder_") else []
    coefficients = np.ravel(getattr(final, "coef_", ()))
    known = len(steps) == 0 or (len(steps) == 1 and isinstance(steps[0], TableEncoder))
    # With splines, coefficients are not those of the columns.
    known = known and not any(len(knots) for knots in getattr(final, "knots_", {}).values())
    if len(coefficients) == 0 or not known or not is_proportional(final):
        return None
    if not steps:
        names = getattr(final, "feature_names_in_", [f"x{j}" for j in range(len(coefficients))])
        return dict(zip(map(str, names), coefficients.tolist(), strict=True))
    encoder, labels = steps[0], []
    for column in encoder.columns_:
        if isinstance(column, CategoryColumn):
            labels += [str(Condition(column.name, "is", level)) for level in column.others]
        elif column.features:
            labels.append(column.name)
    return dict(zip(labels, (coefficients / encoder.scale_).tolist(), strict=True))


def _changed(
    coefficients: dict[str, float], columns: EffectColumns, changes: Sequence[FloatArray]
) -> dict[str, float]:
    """Return coefficients with effects (p,) of scaled columns added; the effect of the risk multiplies all of them."""
    found = dict(coefficients)
    if not changes:
        return found
    total = np.sum(changes, axis=0)
    (risk, stretch), *features = zip(columns.columns, total[1:], strict=True)
    found = {name: value * (1 + stretch / risk.scale) for name, value in coefficients.items()}
    for column, effect in features:
        if effect != 0:
            name, sign = _coefficient(column.label, found)
            found[name] = found.get(name, 0.0) + sign * float(effect / column.scale)
    return found


def _coefficient(label: str, known: dict[str, float]) -> tuple[str, int]:
    """Return the coefficient that a column's effect changes, and its sign; an encoder may have coded False as 1."""
    possible = {label: 1, str(Condition(label, "is", True)): 1, str(Condition(label, "is", False)): -1}
    return next(((name, sign) for name, sign in possible.items() if name in known), (label, 1))


def linear_columns(base: Any) -> frozenset[str]:
    """Return the columns of a model whose effect on the log hazard is linear; empty for models that are not linear."""
    if base is None:
        return frozenset()
    final = final_step(base)
    if hasattr(final, "knots_"):
        names = [str(name) for name in getattr(final, "feature_names_in_", ())]
        return frozenset(name for name in names if len(final.knots_.get(name, ())) == 0)
    return frozenset(linear_effects(base) or ())
