"""The group table: observed against expected events, and gain over no model, for everybody and every group.

The verdict on a group uses only two columns of its row:

- observed against expected events, with the exact interval and test of Poisson counts. If the number of training events
  is known, the interval also contains the estimation error of the expected events: a linear model estimates them from
  all training events, any other model from those of the group.
- the gain in log likelihood per patient over no model and over plain Cox, with normal intervals.

All of these tests in one table are adjusted together (Bonferroni). An interval excludes 1, or 0, exactly if its p-value
is below one minus the level.

A group is judged if it has enough patients, and enough events either expected or observed: many events where few were
expected are the worst failure. So the choice of judged groups depends on observed events, and therefore the adjustment
counts every group with enough patients, judged or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.evaluation.attributes import ALL, EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.data import Subset
from drosurv.evaluation.evaluator import BootstrapValues, Evaluator
from drosurv.evaluation.training_weights import estimation_share, linear_columns
from drosurv.metrics import d_calibration, decisions
from drosurv.metrics.calibration import beside_observed
from drosurv.metrics.inference import Draws, normal_interval, observed_over_expected
from drosurv.metrics.inference.gaps import shared_level
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.observation import Inference
from drosurv.presentation.sentences import LEAST_DIFFERENCE
from drosurv.target import FloatArray, IntArray

#: Attribute of subgroups that a search found.
FOUND = "subgroup"
#: Concerns about a group, the most serious first.
CONCERNS = ("calibration", "worse than no model", "")
# A smaller distance of observed/expected from 1 is not visible in two decimals.
_LEAST_RATIO = 0.005
_ROUNDING = 1e-6
_COLUMNS = (
    *(
        "attribute",
        "group",
        "patients",
        "observed",
        "expected",
        "ratio",
        "ratio_low",
        "ratio_high",
        "ratio_p",
    ),
    *("horizon", "survival_observed", "survival_predicted", "c_index", "c_index_low", "c_index_high"),
    *("gain", "gain_low", "gain_high", "gain_p"),
    *("gain_over_reference", "gain_over_reference_low", "gain_over_reference_high", "gain_over_reference_p"),
    *("judged", "why", "concern"),
)
_GAINS = ("gain", "gain_over_reference")


def group_table(
    evaluator: Evaluator,
    c_index: Mapping[tuple[str, str], tuple[float, float, float]],
    *,
    subgroups: Mapping[str, IntArray] | None = None,
    level: float = 0.95,
    min_group: int = 50,
    min_events: int = 10,
    further_tests: int = 0,
) -> tuple[pd.DataFrame, int]:
    """Return one row for everybody and one per group, serious concerns first, and the number of tests adjusted for.

    Parameters
    ----------
    evaluator : Evaluator
        The patients and their groups.
    c_index : mapping
        C-index and the ends of its interval, by attribute and group.
    subgroups : mapping, optional
        Rows of the patients of subgroups that were found, by name.
    level : float
        Simultaneous confidence level of all intervals of the table.
    min_group, min_events : int
        Groups with fewer patients, or fewer events both expected and observed, are shown and not judged.
    further_tests : int
        Further tests of the same patients, for which the table is adjusted too.
    """
    named = {(EVERYONE, ALL): evaluator.everyone, **evaluator.members}
    found = {(FOUND, name): evaluator.everyone.take(rows) for name, rows in (subgroups or {}).items()}
    rows: list[dict[str, Any]] = []
    columns, expected = None, np.empty(0)
    if evaluator.everyone.data.has_curves:
        columns = linear_columns(evaluator.everyone.data.predicted)
        expected = evaluator.everyone.expected_events[1]
    for (attribute, group), patients in {**named, **found}.items():
        row: dict[str, Any] = dict.fromkeys(_COLUMNS, float("nan"))
        row |= {"attribute": attribute, "group": group, "patients": len(patients), "concern": ""}
        row["observed"] = patients.target.n_events
        row |= dict(
            zip(("c_index", "c_index_low", "c_index_high"), c_index.get((attribute, group), ()), strict=False)
        )
        if (attribute, group) in found and evaluator.everyone.data.has_risk:
            row["c_index"] = patients.harrell.concordance(np.ones(len(patients)))
        if evaluator.everyone.data.has_curves and len(patients):
            row |= _curve_columns(patients)
            row["trained"] = estimation_share(columns, expected, _sums(patients, columns))[0]
        row["why"] = _reason_not_judged(row, min_group, min_events)
        row["judged"] = not row["why"]
        rows.append(row)
    large = [row for row in rows if row["patients"] >= min_group and not np.isnan(row["expected"])]
    # The p-values of gains are standard errors here.
    tests = len(large) + sum(bool(row[f"{name}_p"] > 0) for row in large for name in _GAINS) + further_tests
    trained = evaluator.everyone.data.follow_up.training_events
    tested = sorted([_tested(row, tests, level, trained) for row in rows], key=_place)
    return pd.DataFrame(tested, columns=list(_COLUMNS)), tests


def parse_subgroups(subgroups: Any, n: int) -> dict[str, IntArray]:
    """Return the rows of the patients of each subgroup, from masks (n,) by name."""
    found = {}
    for name, mask in dict(subgroups or {}).items():
        inside = np.asarray(mask)
        if inside.shape != (n,) or inside.dtype != bool:
            raise ArgumentError(
                "subgroups",
                f"subgroups[{name!r}] must hold True or False for each of the {n} patients, got shape {inside.shape} "
                f"of {inside.dtype}.",
            )
        found[str(name)] = np.flatnonzero(inside)
    return found


def decision_table(evaluator: Evaluator, threshold: float, inference: Inference) -> pd.DataFrame:
    """Return measures of decisions at a threshold and the horizon, for everybody and every group, and their gaps."""
    everyone = evaluator.everyone
    resampling = {
        name: getattr(inference, name) for name in ("level", "n_bootstrap", "random_state", "n_jobs")
    }
    at: dict[str, Any] = {"threshold": threshold, "horizon": everyone.data.horizon, **resampling}
    tables = [
        decisions(everyone.target, 1 - everyone.survival_at_horizon, **at).table.assign(attribute=EVERYONE)
    ]
    for attribute in evaluator.attributes:
        kept = evaluator.kept[attribute.name]
        groups = replace(attribute.kept_groups, labels=attribute.labels)
        found = decisions(kept.target, 1 - kept.survival_at_horizon, groups=groups, **at)
        tables.append(found.table.assign(attribute=attribute.name))
        tables.append(found.gaps.assign(attribute=attribute.name, group="gap"))
    table = pd.concat(tables, ignore_index=True).rename(columns={"lower": "low", "upper": "high"})
    table["group"] = table["group"].astype(str)
    columns = ["attribute", "group", "metric", "value", "low", "high", "p", "patients", "positives", "reason"]
    return table.reindex(columns=columns)


def _curve_columns(patients: Subset) -> dict[str, Any]:
    """Return the columns that need survival curves."""
    horizon = patients.data.horizon
    observed, expected = patients.total_events
    gains = patients.gains
    row = {
        "observed": int(observed),
        "expected": float(expected),
        "ratio": observed / expected if expected > 0 else float("nan"),
        "horizon": horizon,
        "survival_observed": float(KaplanMeier.of(patients.target).at(np.array([horizon]))[0]),
        "survival_predicted": float(patients.survival_at_horizon.mean()),
        "gain": float(gains.mean()),
        # Here standard errors; `_tested` replaces them by p-values, when the number of tests is known.
        "gain_p": _standard_error(gains),
    }
    if patients.reference_gains is not None:
        over_cox = gains - patients.reference_gains
        row |= {
            "gain_over_reference": float(over_cox.mean()),
            "gain_over_reference_p": _standard_error(over_cox),
        }
    return row


def _sums(patients: Subset, columns: FloatArray | None) -> FloatArray:
    """Return the sums (1, p) over patients of the columns of a linear model (else of ones) times expected events."""
    expected = patients.expected_events[1]
    if columns is None:
        return np.array([[expected.sum()]])
    sums: FloatArray = expected @ (columns if patients.rows is None else columns[patients.rows])
    return sums[None]


def _standard_error(values: FloatArray) -> float:
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    # Two fits of one model differ in their last digits only, which must not be tested.
    return error if error > _ROUNDING else float("nan")


def _reason_not_judged(row: dict[str, Any], min_group: int, min_events: int) -> str:
    """Say why a group is not judged; empty if it is."""
    if row["patients"] < min_group:
        return f"fewer than {min_group:,} patients"
    if np.isnan(row["expected"]):
        return "no survival curves"
    if max(row["expected"], row["observed"]) < min_events:
        return f"fewer than {min_events:,} events, expected and observed"
    return ""


def _tested(row: dict[str, Any], tests: int, level: float, training_events: float | None) -> dict[str, Any]:
    """Fill in intervals, p-values and the concern of a judged row, adjusted for the number of tests."""
    found, each = {}, shared_level(level, tests)
    if row["judged"]:
        trained = None if training_events is None else max(round(training_events * row["trained"]), 1)
        found["ratio"] = observed_over_expected(
            row["observed"], row["expected"], level=each, training_events=trained
        )
        for name in _GAINS:
            if row[f"{name}_p"] > 0:
                found[name] = normal_interval(row[name], row[f"{name}_p"], level=each)
    for name in ("ratio", *_GAINS):
        ends = (np.nan, np.nan, np.nan)
        if name in found:
            ends = found[name].low, found[name].high, min(found[name].p * tests, 1.0)
        row |= dict(zip((f"{name}_low", f"{name}_high", f"{name}_p"), ends, strict=True))
    wrong = row["ratio_p"] < 1 - level and abs(row["ratio"] - 1) >= _LEAST_RATIO
    harmed = row["gain_high"] < 0 and abs(row["gain"]) >= LEAST_DIFFERENCE
    return row | {"concern": CONCERNS[0] if wrong else CONCERNS[1] if harmed else ""}


def _place(row: dict[str, Any]) -> tuple[bool, int, bool, float]:
    """Sort rows: everybody first, then by concern, judged before not judged, and |observed - expected| per patient."""
    distance = abs(row["observed"] - row["expected"]) / max(row["patients"], 1)
    return (
        row["attribute"] != EVERYONE,
        CONCERNS.index(row["concern"]),
        not row["judged"],
        -float(np.nan_to_num(distance)),
    )


def group_tables(evaluator: Evaluator, drawn: BootstrapValues, level: float) -> dict[str, Any]:
    """Return the tables of an evaluation by name; those of survival curves are empty for a model without curves."""
    horizons, times = evaluator.everyone.data.calibration_times, evaluator.everyone.data.curve_times

    def calibration(subset: Subset) -> dict[Any, Any]:
        """Kaplan-Meier against mean predicted survival at every horizon; the difference has a bootstrap interval."""
        predicted = subset.curves.survival(horizons)
        observed = KaplanMeier.of(subset.target)
        table = beside_observed(predicted.mean(axis=0), observed, horizons, level, subset.target)

        def difference(weight: FloatArray) -> FloatArray:
            if not weight.any():
                return np.full(len(horizons), np.nan)
            mean: FloatArray = weight @ predicted / weight.sum()
            return mean - KaplanMeier.of(subset.target, weight).at(horizons)

        rows: Any = slice(None) if subset.rows is None else subset.rows
        draws = np.array([difference(weight[rows].astype(np.float64)) for weight in drawn.weights])
        bounds = CATALOGUE["calibration_difference"].bounds
        intervals = [
            Draws(value, replicates, *bounds).interval(level)
            for value, replicates in zip(table["difference"], draws.reshape(-1, len(horizons)).T, strict=True)
        ]
        ends = np.array([(one.low, one.high) for one in intervals])
        # Before the first event survival is 1 in every replicate, which gives no interval.
        ends[~(table["low"] < table["high"])] = np.nan
        return {**table, "difference_low": ends[:, 0], "difference_high": ends[:, 1]}

    def shares_at_event(subset: Subset) -> dict[Any, Any]:
        """Share of patients in each tenth of predicted survival at the event; a tenth in each if calibrated."""
        shares = d_calibration(subset.target, subset.curves).shares
        edges = np.arange(len(shares) + 1) / len(shares)
        return {"bin_low": edges[:-1], "bin_high": edges[1:], "share": shares}

    def curves(subset: Subset) -> dict[Any, Any]:
        """Mean predicted survival and, until the last follow-up time, Kaplan-Meier."""
        observed = KaplanMeier.of(subset.target)
        low, high = observed.interval(times, level)
        return {
            "time": times,
            "predicted": subset.curves.survival(times).mean(axis=0),
            "observed": observed.at(times),
            "low": low,
            "high": high,
            "at_risk": len(subset) - np.searchsorted(np.sort(subset.target.time), times, side="left"),
        }

    return {
        "calibration": _by_group(evaluator, calibration),
        "d_calibration": _by_group(evaluator, shares_at_event),
        "survival": _by_group(evaluator, curves),
        "cross_group": _cross_group(evaluator),
    }


def _cross_group(evaluator: Evaluator) -> pd.DataFrame:
    """Return the concordance of pairs between groups, by the group with the earlier event and the other group."""
    rows = []
    for attribute in evaluator.attributes if evaluator.everyone.data.has_risk else ():
        patients = evaluator.kept[attribute.name]
        codes = attribute.kept_groups.codes
        sums = patients.harrell.harrell_between(codes, len(attribute.labels), np.ones(len(patients)))
        for a, first in enumerate(attribute.labels):
            for b, other in enumerate(attribute.labels):
                pairs = float(sums.denominator[a, b])
                value = float(sums.numerator[a, b]) / pairs if pairs else float("nan")
                rows.append((attribute.name, first, other, value, int(pairs)))
    return pd.DataFrame(rows, columns=["attribute", "event_first", "other", "value", "pairs"])


def _by_group(evaluator: Evaluator, columns: Callable[[Subset], dict[Any, Any]]) -> pd.DataFrame:
    """Return a table of everybody and of every group that has patients; empty without survival curves."""
    if not evaluator.everyone.data.has_curves:
        return pd.DataFrame()
    found = {
        key: columns(patients)
        for key, patients in {(EVERYONE, ALL): evaluator.everyone, **evaluator.members}.items()
        if len(patients)
    }
    names = list(next(iter(found.values())))
    # One table of joined columns: a table for each group takes most of the time where there are few patients.
    joined = {name: np.concatenate([part[name] for part in found.values()]) for name in names}
    sizes = [len(part[names[0]]) for part in found.values()]
    attributes, groups = (np.repeat(np.array(part, dtype=object), sizes) for part in zip(*found, strict=True))
    return pd.DataFrame({"attribute": attributes, "group": groups, **joined})
