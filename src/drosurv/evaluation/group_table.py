"""Tables of an evaluation: one row for each number, and the group table with the findings of each group.

The group table has the numbers of the findings (:mod:`drosurv.findings`): observed over expected events, the
calibration slope, and gains in log likelihood, each with its adjusted interval and p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, check_mapping
from drosurv.evaluation.attributes import ALL, EVERYONE, Attribute, Count, warn_of_undefined, whose
from drosurv.evaluation.catalogue import CATALOGUE, Metric
from drosurv.evaluation.data import Horizon, Subset
from drosurv.evaluation.evaluator import BootstrapValues, Evaluator, Key, RowKey, sample_of
from drosurv.findings.adjustment import Question, is_counted, total_weight
from drosurv.findings.questions import FEWEST_PATIENTS, n_patients, questions, ranking
from drosurv.findings.verdict import PROBLEMS, STATUSES, FindingRow, findings
from drosurv.findings.words import SUBGROUP
from drosurv.metrics import d_calibration
from drosurv.metrics.calibration import beside_observed
from drosurv.metrics.inference import Draws, Gap, judge_gaps
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.metrics.scores import warn_undefined
from drosurv.observation import Inference
from drosurv.presentation import VERSUS, attribute_name, counted, label_name, with_interval
from drosurv.target import BoolArray, FloatArray, IntArray, batches

# Names of columns by the question whose number they hold.
_NUMBERS = {
    "level": "ratio",
    "slope": "slope",
    "gain": "gain",
    "gain over reference": "gain_over_reference",
}
_ENDS = ("", "_low", "_high", "_p")
# Curves of so many patients are computed at once.
_PATIENTS_AT_ONCE = 20_000
#: Why a group is not judged if the model has only risk scores.
NO_CURVES = "no survival curves"
_COLUMNS = (
    *("attribute", "group", "patients", "observed", "expected"),
    *(f"ratio{end}" for end in _ENDS),
    *(f"slope{end}" for end in _ENDS),
    *("horizon", "survival_observed", "survival_predicted", "c_index", "c_index_low", "c_index_high"),
    *(f"gain{end}" for end in _ENDS),
    *(f"gain_over_reference{end}" for end in _ENDS),
    *("judged", "why", "status"),
)

Kind = Literal["overall", "group", "gap"]
# Gaps of these metrics are tested only between groups that are large enough.
JUDGED_GAPS = (
    "concordance_imparity",
    "concordance_index",
    "brier_skill",
    "likelihood_gain",
    "calibration_difference",
)


class Row(NamedTuple):
    """One row of the table of numbers, :meth:`~drosurv.evaluation.EvaluationResult.to_frame`.

    Its `kind` is "overall" for everybody, "group" for one group, or "gap" between groups. Intervals are NaN without
    bootstrap and if all replicates are equal. Only gaps have tests; their columns are NaN otherwise. `adjusted` says
    whether the interval is adjusted for multiple tests: the interval of a gap for all attributes in which the metric
    is compared, the intervals of likelihood gain and calibration slope, which are those of the findings, for all tests.
    """

    attribute: str
    group: str
    metric: str
    kind: Kind
    better: str
    value: float
    low: float
    high: float
    standard_error: float
    p: float
    test: str
    patients: int
    events: int
    censoring: float
    status: str
    adjusted: bool = False

    @property
    def whose(self) -> str:
        """The group with its attribute, or "everybody"; for a gap, the two groups or the attribute."""
        if self.kind != "gap" or self.attribute == EVERYONE:
            return whose(self.attribute, self.group)
        if self.group == ALL:
            return attribute_name(self.attribute)
        return f"{attribute_name(self.attribute, self.group)}: {label_name(self.attribute, self.group)}"

    @property
    def text(self) -> str:
        """The number with its interval."""
        return with_interval(self.value, self.low, self.high)


def rows_in(table: pd.DataFrame) -> tuple[Row, ...]:
    """Return the rows of a table of numbers."""
    return tuple(map(Row._make, table.itertuples(index=False, name=None)))


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as a table of numbers."""
    return pd.DataFrame(list(rows), columns=list(Row._fields))


def rows_of(
    evaluator: Evaluator,
    drawn: BootstrapValues,
    p_values: Mapping[Key, float],
    small: Collection[tuple[str, str]],
    level: float,
) -> tuple[Row, ...]:
    """Return all rows: everybody first, then the groups and gaps of each attribute.

    `p_values` are those of permutation tests; `small` groups are given by attribute and label.
    """
    numbers = evaluator.numbers(drawn)
    judged = _judged(numbers, p_values, level)

    def row(key: RowKey, kind: Kind, number: Draws, count: Count, is_small: bool) -> Row:
        gap = None if kind == "group" else judged.get((key[0], key[2]))
        interval = gap or Gap(**vars(number.interval(level)))
        return Row(
            *key,
            kind,
            "lower" if kind == "gap" else CATALOGUE[key[2]].better,
            number.estimate,
            interval.low,
            interval.high,
            interval.standard_error,
            interval.p,
            interval.test,
            count.patients,
            count.events,
            count.censoring,
            "undefined" if np.isnan(number.estimate) else "small group" if is_small else "ok",
            gap is not None and not np.isnan(gap.low),
        )

    everyone = evaluator.count(evaluator.everyone)
    rows = [
        row((EVERYONE, ALL, metric), "overall", number, everyone, (EVERYONE, ALL) in small)
        for (attribute, metric), number in numbers.items()
        if attribute == EVERYONE
    ]
    shown = [metric for metric in evaluator.metrics if metric.label]
    for attribute in evaluator.attributes:
        name = attribute.name
        for label in attribute.labels:
            count, is_small = evaluator.counts[name, label], (name, label) in small
            for metric in shown:
                key = (name, label, metric.name)
                if key in drawn.numbers:
                    rows.append(row(key, "group", drawn.numbers[key], count, is_small))
        count = evaluator.count(evaluator.kept[name])
        for metric in shown:
            if (name, metric.name) in numbers:
                labels = _most_different(drawn, attribute, metric)
                key = (name, VERSUS.join(labels) or ALL, metric.name)
                has_small = any((name, label) in small for label in labels)
                rows.append(row(key, "gap", numbers[name, metric.name], count, has_small))
    return tuple(rows)


def gaps_between_large(
    rows: Sequence[Row],
    evaluator: Evaluator,
    drawn: BootstrapValues,
    p_values: Mapping[Key, float],
    small: frozenset[tuple[str, str]],
    inference: Inference,
) -> tuple[Row, ...]:
    """Return the rows of gaps between groups that are large enough; those of `rows` if all groups are.

    The largest gap between all groups often involves a very small group: then the gap between the large groups is
    computed and tested separately. A concordance fraction, and so its gap and interval, counts pairs with everybody.
    The test counts only pairs within the large groups and permutes only their labels: it tests whether these groups are
    ranked equally well among each other.
    """
    if not small.isdisjoint(evaluator.counts):
        large = evaluator.without(small, JUDGED_GAPS)
        # Computed before the rows and tests that share it.
        _ = large.follow_ups
        changed = [attribute for attribute in large.attributes if attribute not in evaluator.attributes]
        retested = replace(large, attributes=changed).p_values(inference)
        rows = rows_of(large, drawn, {**p_values, **retested}, (), inference.level)
    return tuple(row for row in rows if row.kind == "gap" and row.metric in JUDGED_GAPS)


def _judged(numbers: Mapping[Key, Draws], p_values: Mapping[Key, float], level: float) -> dict[Key, Gap]:
    """Test all gaps; the gaps of one metric in all attributes are adjusted together."""
    gaps: dict[str, dict[Key, Draws]] = {}
    for (attribute, metric), number in numbers.items():
        if number.largest_errors is not None:
            gaps.setdefault(metric, {})[attribute, metric] = number
    judged: dict[Key, Gap] = {}
    for of_metric in gaps.values():
        judged |= judge_gaps(of_metric, level=level, p_values=p_values)
    return judged


def _most_different(drawn: BootstrapValues, attribute: Attribute, metric: Metric) -> tuple[str, ...]:
    """Return the two groups that differ most, the higher value first; empty if fewer than two have a value."""
    compared = metric.reads if metric.of == "attribute" else (metric.name,)
    if len(compared) != 1:
        return ()
    values, _ = drawn.groups(attribute.name, attribute.labels, compared[0])
    ascending = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    return (attribute.labels[ascending[-1]], attribute.labels[ascending[0]]) if len(ascending) > 1 else ()


def without_intervals(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return a note if a group's number has no interval although there are replicates."""
    resampled = (
        row for row in rows if row.kind == "group" and row.better and CATALOGUE[row.metric].resampled
    )
    if any(np.isnan(row.low) and not np.isnan(row.value) for row in resampled):
        return ("numbers without an interval were the same in every bootstrap replicate.",)
    return ()


def warn_of_undefined_rows(rows: Sequence[Row]) -> None:
    """Warn of undefined metrics by group, and of a reference without a likelihood gain; one warning each."""
    undefined: dict[str, list[str]] = {}
    gain = next((row for row in rows if row.metric == "gain_over_null"), None)
    # If the model's gain is defined, there are events, and the share is undefined because the reference has no gain.
    no_gain = gain is not None and gain.status != "undefined"
    for row in rows:
        if no_gain and row.metric == "share_of_gain" and row.status == "undefined":
            warn_undefined(
                "the share of the reference's gain is undefined (NaN): the reference predicts these patients no better "
                "than no model does."
            )
        elif row.status == "undefined" and row.kind != "gap":
            who = f"{row.whose} ({counted(row.patients, 'patient')}, {counted(row.events, 'event')})"
            undefined.setdefault(who, []).append(row.metric)
    warn_of_undefined([f"{who}: {', '.join(metrics)}" for who, metrics in undefined.items()])


# Metrics whose number is that of a question.
_JUDGED_METRICS = {"likelihood_gain": "gain", "calibration_slope": "slope"}


def with_findings(rows: Sequence[Row], found: Sequence[FindingRow]) -> tuple[Row, ...]:
    """Replace numbers and intervals by those of the findings where both have them, so that they never differ."""
    known = _by_metric(found)

    def as_found(row: Row) -> Row:
        one = known.get((row.attribute, row.group, row.metric))
        if one is None or row.kind == "gap":
            return row
        return row._replace(value=one.value, low=one.low, high=one.high, adjusted=True)

    return tuple(map(as_found, rows))


def judged_numbers(evaluator: Evaluator, level: float, *, with_reference: bool) -> dict[RowKey, FindingRow]:
    """Return the findings of likelihood gains and calibration slopes, by attribute, group and metric.

    They equal those of an evaluation of the model, which asks about the reference only if one was given.
    """
    data = evaluator.everyone.data
    if not data.is_judged or not any(metric.name in _JUDGED_METRICS for metric in evaluator.metrics):
        return {}
    judged = data.judged if with_reference else replace(data.judged, over_reference=None)
    masks = _masks({(EVERYONE, ALL): evaluator.everyone, **evaluator.members}, len(evaluator.everyone))
    found = _by_metric(findings(questions(judged, masks), level))
    return {
        key: one for key, one in found.items() if key[2] != "calibration_slope" or not data.slope_of_scores
    }


def _by_metric(found: Sequence[FindingRow]) -> dict[RowKey, FindingRow]:
    """Return findings with a number by attribute, group and metric."""
    metrics = {question: metric for metric, question in _JUDGED_METRICS.items()}
    return {
        (one.attribute, one.group, metrics[one.question]): one
        for one in found
        if one.question in metrics and not np.isnan(one.value)
    }


def _masks(patients: Mapping[Key, Subset], n: int) -> dict[Key, BoolArray]:
    """Return who (n,) is in each group."""
    masks = {key: np.zeros(n, np.bool_) for key in patients}
    for key, subset in patients.items():
        masks[key][slice(None) if subset.rows is None else subset.rows] = True
    return masks


class JudgedGroups(NamedTuple):
    """The group table, the findings it was made from, and the number and total weight of the tests of both."""

    table: pd.DataFrame
    findings: list[FindingRow]
    n_tests: int
    total_weight: float


def group_table(
    evaluator: Evaluator,
    numbers: Sequence[Row],
    at: Horizon,
    inference: Inference,
    *,
    subgroups: Mapping[str, Any] | None = None,
    reference: str = "plain Cox",
) -> JudgedGroups:
    """Judge everybody and every group; return one row for each, serious problems first.

    C-indices are those of the table of `numbers`. `subgroups` are masks (n,) of the patients of subgroups that were
    found, by name; `reference` is a name for sentences. Intervals are simultaneous.
    """
    everyone = evaluator.everyone
    rows_of_subgroups = parse_subgroups(subgroups, len(everyone))
    patients = {(EVERYONE, ALL): everyone, **evaluator.members}
    patients |= {(SUBGROUP, name): everyone.take(rows) for name, rows in rows_of_subgroups.items()}
    masks = _masks(patients, len(everyone))
    c_index = {
        (row.attribute, row.group): row
        for row in numbers
        if row.metric == "concordance_index" and row.kind != "gap"
    }
    asked = []
    if everyone.data.is_judged:
        how: dict[str, Any] = {"threshold": at.threshold, "reference": reference, "time_unit": at.time_unit}
        asked = questions(everyone.data.judged, masks, **how)
    elif (EVERYONE, ALL) in c_index:
        ranked = c_index[EVERYONE, ALL]
        asked = [ranking(ranked.value, ranked.standard_error)]
    found = findings(asked, inference.level, inference.further_tests)
    rows = [_row(key, subset, masks[key], c_index.get(key), asked, found) for key, subset in patients.items()]
    rows.sort(key=_place)
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    n_tests, weight = sum(map(is_counted, asked)), total_weight(asked)
    return JudgedGroups(table, found, n_tests + inference.further_tests, weight + inference.further_tests)


def _row(
    key: Key,
    patients: Subset,
    mask: BoolArray,
    c_index: Row | None,
    asked: list[Question],
    found: list[FindingRow],
) -> dict[str, Any]:
    """Return the row of one group."""
    row: dict[str, Any] = dict.fromkeys(_COLUMNS, float("nan"))
    row |= {"attribute": key[0], "group": key[1], "patients": len(patients), "status": ""}
    row["observed"] = patients.target.n_events
    if c_index is not None:
        row |= {"c_index": c_index.value, "c_index_low": c_index.low, "c_index_high": c_index.high}
    if key[0] == SUBGROUP and patients.data.predicted.has_risk:
        row["c_index"] = patients.harrell.concordance(np.ones(len(patients)))
    why = [one.why for one in asked if (one.attribute, one.group) == key and one.estimate is None]
    row["why"] = why[0] if why else ""
    if not patients.data.is_judged:
        row["why"] = NO_CURVES
        if len(patients) < FEWEST_PATIENTS:
            row["why"] = f"fewer than {FEWEST_PATIENTS} patients"
    elif len(patients):
        row |= _curve_columns(patients, mask)
    row["judged"] = not row["why"]
    own = [one for one in found if (one.attribute, one.group) == key]
    for one in own:
        if one.question in _NUMBERS:
            ends = zip(_ENDS, (one.value, one.low, one.high, one.p), strict=True)
            row |= {f"{_NUMBERS[one.question]}{end}": value for end, value in ends if not np.isnan(value)}
    row["status"] = min((one.status for one in own), key=STATUSES.index, default="")
    return row


def _curve_columns(patients: Subset, mask: BoolArray) -> dict[str, Any]:
    """Return the columns that need survival curves."""
    data, inside = patients.data, mask & patients.data.judged.inside
    copies = data.judged.cohort.copies[inside]
    observed, expected = data.judged.events(mask)
    gains = {"gain": data.judged.gains, "gain_over_reference": data.judged.over_reference}
    known = {name: one[inside] for name, one in gains.items() if one is not None and inside.any()}
    return {
        **{name: np.average(one, weights=copies) for name, one in known.items()},
        "patients": round(n_patients(data.judged, mask)),
        "observed": observed,
        "expected": expected,
        "ratio": observed / expected if expected > 0 else float("nan"),
        "horizon": data.horizon,
        **dict(zip(("survival_observed", "survival_predicted"), _at_horizon(patients, mask), strict=True)),
    }


def _at_horizon(patients: Subset, mask: BoolArray) -> tuple[float, float]:
    """Return the share of patients without the event by the horizon, observed and predicted.

    The observed share is the estimate of Kaplan-Meier, or of Aalen-Johansen with competing causes. Of predictions at
    few times, it is weighted for censoring as the observed events are.
    """
    if patients.data.judged.few_times:
        return patients.data.judged.survival_from_start(mask)
    observed = KaplanMeier.of(patients.target).at(np.array([patients.data.horizon]))
    return float(observed[0]), float(patients.survival_at_horizon.mean())


def _place(row: dict[str, Any]) -> tuple[bool, int, bool, float]:
    """Sort rows: everybody first, then by problem, judged before not judged, and |observed - expected| per patient."""
    distance = abs(row["observed"] - row["expected"]) / max(row["patients"], 1)
    problem = PROBLEMS.index(row["status"]) if row["status"] in PROBLEMS else len(PROBLEMS)
    return row["attribute"] != EVERYONE, problem, not row["judged"], -float(np.nan_to_num(distance))


def parse_subgroups(subgroups: Any, n: int) -> dict[str, IntArray]:
    """Return the rows of the patients of each subgroup, from masks (n,) by name."""
    found = {}
    subgroups = {} if subgroups is None else subgroups
    check_mapping("subgroups", subgroups, "{'above 65': X['age'] > 65}")
    for name, mask in subgroups.items():
        inside = np.asarray(mask)
        if inside.shape != (n,) or inside.dtype != bool:
            raise ArgumentError(
                "subgroups",
                f"subgroups[{name!r}] must hold True or False for each of the {n} patients, got shape {inside.shape} "
                f"of {inside.dtype}.",
            )
        found[str(name)] = np.flatnonzero(inside)
    return found


def group_tables(evaluator: Evaluator, drawn: BootstrapValues, level: float) -> dict[str, Any]:
    """Return the tables of an evaluation by name; those of survival curves are empty for a model without curves."""
    horizons, times = evaluator.everyone.data.calibration_times, evaluator.everyone.data.curve_times

    def calibration(subset: Subset) -> dict[Any, Any]:
        """Kaplan-Meier against mean predicted survival at every horizon; the difference has a bootstrap interval."""
        observed = KaplanMeier.of(subset.target, clusters=evaluator.clusters_of(subset))
        mean = subset.curves.survival(horizons).mean(axis=0)
        table = beside_observed(mean, observed, horizons, level, subset.target.time)
        some = sample_of(subset, evaluator.clusters)
        predicted = some.curves.survival(horizons)

        def difference(weight: FloatArray) -> FloatArray:
            if not weight.any():
                return np.full(len(horizons), np.nan)
            mean: FloatArray = weight @ predicted / weight.sum()
            return mean - KaplanMeier.of(some.target, weight).at(horizons)

        weights = (evaluator.drawn_weight(weight, some).astype(np.float64) for weight in drawn.weights)
        draws = np.array([difference(weight) for weight in weights])
        if some is not subset and len(draws):
            deviations = draws - difference(np.ones(len(some)))
            draws = np.asarray(table["difference"]) + np.sqrt(len(some) / len(subset)) * deviations
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
        observed = KaplanMeier.of(subset.target, clusters=evaluator.clusters_of(subset))
        low, high = observed.interval(times, level)
        some = (subset.curves.take(rows) for rows in batches(len(subset), _PATIENTS_AT_ONCE))
        return {
            "time": times,
            "predicted": np.sum([curves.survival(times).sum(axis=0) for curves in some], axis=0)
            / len(subset),
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
    for attribute in evaluator.attributes if evaluator.everyone.data.predicted.has_risk else ():
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
