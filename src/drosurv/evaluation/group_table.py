"""Tables of an evaluation: one row for each number, and the group table with the findings of each group.

The group table has the numbers of the findings (:mod:`drosurv.judging`): observed over expected events, the
calibration slope, and gains in log likelihood, each with its adjusted interval and p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, check_mapping
from drosurv.evaluation.catalogue import CATALOGUE, Metric, spread
from drosurv.evaluation.data import Subset
from drosurv.evaluation.evaluator import (
    Count,
    Evaluator,
    Key,
    RowKey,
    most_different,
    warn_of_undefined,
    whose,
)
from drosurv.judging.adjustment import Question, adjust
from drosurv.judging.judged import Horizon
from drosurv.judging.questions import FEWEST_PATIENTS, n_patients, questions, ranking, slopes_of_scores
from drosurv.judging.verdict import PROBLEMS, STATUSES, FindingRow, finding_rows, findings
from drosurv.judging.words import SUBGROUP, adjusted_interval
from drosurv.metrics.concordance import concordance_estimate
from drosurv.metrics.estimates import Interval
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.metrics.scores import warn_undefined
from drosurv.patients.arrays import batches
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.observation import Inference
from drosurv.patients.target import BoolArray, IntArray
from drosurv.presentation import VERSUS, attribute_name, counted, label_name, with_interval

# Names of columns by the question whose number they hold.
_NUMBERS = {"level": "ratio", "slope": "slope", "gain": "gain", "gain over reference": "gain_over_reference"}
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


class Row(NamedTuple):
    """One row of the table of numbers, with the columns of :meth:`~drosurv.evaluation.EvaluationResult.to_frame`."""

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
        """The number with its interval, and whether this is adjusted."""
        number = with_interval(self.value, self.low, self.high)
        return adjusted_interval(number) if self.adjusted else number


def rows_in(table: pd.DataFrame) -> tuple[Row, ...]:
    """Return the rows of a table of numbers."""
    return tuple(map(Row._make, table.itertuples(index=False, name=None)))


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows as a table of numbers."""
    return pd.DataFrame(list(rows), columns=list(Row._fields))


def rows_of(
    evaluator: Evaluator, small: Collection[Key], level: float
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return all rows: everybody, then groups and gaps by attribute; and gaps between groups that are not `small`."""
    unknown = Interval(np.nan, np.nan, np.nan, level)
    numbers = evaluator.intervals(level) | {
        key: replace(unknown, estimate=value) for key, value in evaluator.papers_metrics.items()
    }
    tested = evaluator.gaps(level, [key for key in evaluator.counts if key not in small])

    def row(key: RowKey, kind: Kind, number: Interval, count: Count, *groups: Key) -> Row:
        is_small = any(group in small for group in groups)
        return Row(
            *key,
            kind,
            "lower" if kind == "gap" else CATALOGUE[key[2]].better,
            *(number.estimate, number.low, number.high, number.standard_error, number.p),
            *(count.patients, count.events, count.censoring),
            "undefined" if np.isnan(number.estimate) else "small group" if is_small else "ok",
            kind == "gap" and not np.isnan(number.low),
        )

    def gap(attribute: str, metric: Metric, labels: Sequence[str]) -> Row | None:
        """Return the gap of a metric between some groups, all of them or the large ones; None if it has none."""
        # The paper's gap of the shares of rightly ranked pairs is between two groups, that of hazards from all.
        of_groups = "concordance_fraction" if metric.name == "concordance_imparity" else metric.name
        of_label = {label: numbers.get((attribute, label, of_groups), unknown).estimate for label in labels}
        who = most_different(of_label)
        if metric.of == "attribute":
            number = numbers[attribute, ALL, metric.name]
        else:
            if (attribute, metric.name) not in comparisons:
                return None
            number = replace(unknown, estimate=spread(np.array([*of_label.values()])))
            if not any((attribute, label) in small for label in labels):
                number = tested.get((attribute, metric.name), number)
        rows = np.concatenate([evaluator.rows[attribute, label] for label in labels])
        count = evaluator.count(evaluator.everyone.take(rows))
        key = (attribute, VERSUS.join(who) or ALL, metric.name)
        return row(key, "gap", number, count, *((attribute, label) for label in who))

    comparisons = {(key[0], key[2]) for key in evaluator.estimates if not CATALOGUE[key[2]].p_value}
    everybody, everyone = (EVERYONE, ALL), evaluator.count(evaluator.everyone)
    table = [
        row((*everybody, metric.name), "overall", numbers[(*everybody, metric.name)], everyone, everybody)
        for metric in evaluator.metrics
        if (*everybody, metric.name) in numbers
    ]
    between_large: list[Row | None] = []
    for attribute in evaluator.attributes:
        for label in attribute.labels:
            who = (attribute.name, label)
            table += [
                row((*who, metric.name), "group", numbers[(*who, metric.name)], evaluator.counts[who], who)
                for metric in evaluator.metrics
                if metric.of != "attribute" and (*who, metric.name) in numbers
            ]
        large = [label for label in attribute.labels if (attribute.name, label) not in small]
        gaps = [gap(attribute.name, metric, attribute.labels) for metric in evaluator.metrics]
        table += [one for one in gaps if one is not None]
        if len(large) > 1:
            judged = [metric for metric in evaluator.metrics if not metric.is_papers]
            between_large += [gap(attribute.name, metric, large) for metric in judged]
    return tuple(table), tuple(one for one in between_large if one is not None)


def warn_of_undefined_rows(rows: Sequence[Row], reason: str = "") -> tuple[str, ...]:
    """Warn of undefined metrics by group, and of a reference without a likelihood gain; one warning each.

    Return a note that names the metrics. A `reason` for all of them is the warning and the note instead.
    """
    if reason:
        warn_undefined(reason)
        return (reason,)
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
    return warn_of_undefined([f"{who}: {', '.join(metrics)}" for who, metrics in undefined.items()])


# Metrics whose number is that of a question.
_JUDGED_METRICS = {"likelihood_gain": "gain", "calibration_slope": "slope"}


def with_findings(rows: Sequence[Row], found: Sequence[FindingRow]) -> tuple[Row, ...]:
    """Replace numbers and intervals by those of the findings where both have them, so that they never differ."""
    known = _by_metric(found)

    def as_found(row: Row) -> Row:
        one = known.get((row.attribute, row.group, row.metric))
        if one is None or row.kind == "gap":
            return row
        status = "ok" if row.status == "undefined" and np.isfinite(one.value) else row.status
        return row._replace(value=one.value, low=one.low, high=one.high, adjusted=True, status=status)

    return tuple(map(as_found, rows))


def judged_numbers(evaluator: Evaluator, level: float, *, with_reference: bool) -> dict[RowKey, FindingRow]:
    """Return the findings of likelihood gains and calibration slopes, by attribute, group and metric.

    They equal those of an evaluation of the model, which asks about the reference only if one was given.
    """
    data = evaluator.everyone.data
    if not data.is_judged or not any(metric.name in _JUDGED_METRICS for metric in evaluator.metrics):
        return {}
    judged = data.judged if with_reference else replace(data.judged, over_reference=None)
    masks = {key: patients.member for key, patients in evaluator.subsets.items()}
    found = _by_metric(findings(questions(judged, masks), level, clusters=evaluator.clusters))
    left_out = "calibration_slope" if data.slope_of_scores else ""
    return {key: one for key, one in found.items() if key[2] != left_out}


def _by_metric(found: Sequence[FindingRow]) -> dict[RowKey, FindingRow]:
    """Return findings with a number by attribute, group and metric."""
    metrics = {question: metric for metric, question in _JUDGED_METRICS.items()}
    return {
        (one.attribute, one.group, metrics[one.question]): one
        for one in found
        if one.question in metrics and not np.isnan(one.value)
    }


class JudgedGroups(NamedTuple):
    """The group table, the findings it was made from, and the number of their tests.

    The number of events of everybody is adjusted as by Bonferroni's method for `as_many_tests`.
    """

    table: pd.DataFrame
    findings: list[FindingRow]
    n_tests: int
    as_many_tests: float


def group_table(
    evaluator: Evaluator,
    numbers: Sequence[Row],
    at: Horizon,
    inference: Inference,
    *,
    subgroups: Mapping[str, IntArray] | None = None,
    reference: str = "plain Cox",
) -> JudgedGroups:
    """Judge everybody and every group; return one row for each, serious problems first.

    C-indices are those of the table of `numbers`. `subgroups` are rows of the patients of subgroups that were found, by
    name; `reference` is a name for sentences. Intervals are simultaneous.
    """
    everyone = evaluator.everyone
    found_rows = (subgroups or {}).items()
    patients = evaluator.subsets | {(SUBGROUP, name): everyone.take(rows) for name, rows in found_rows}
    masks = {key: some.member for key, some in patients.items()}
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
        asked = [ranking(ranked.value, ranked.standard_error, ranked.events, evaluator.clusters)]
        if everyone.data.scores.has_log_hazards:
            asked += slopes_of_scores(everyone.target, everyone.risk, masks, evaluator.clusters)
    how = {
        "searched": inference.searched,
        "clusters": evaluator.clusters,
        "relevance": inference.relevance,
    }
    adjusted = adjust(asked, inference.level, **how)
    found = finding_rows(adjusted, inference.level)
    rows = [_row(key, subset, masks[key], c_index.get(key), asked, found) for key, subset in patients.items()]
    rows.sort(key=_place)
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    of_everybody = (one for one in adjusted if (one.test.question, one.test.attribute) == ("level", EVERYONE))
    alphas = [one.alpha for one in of_everybody if one.alpha > 0]
    as_many_tests = (1 - inference.level) / min(alphas) if alphas else 1.0
    return JudgedGroups(table, found, sum(test.weight > 0 for test in asked), as_many_tests)


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
    if key[0] == SUBGROUP and patients.data.scores.has_risk:
        row["c_index"] = concordance_estimate(patients.target, patients.risk, order=patients.harrell).value
    why = [one.why for one in asked if (one.attribute, one.group) == key and one.estimate is None]
    row["why"] = why[0] if why else ""
    if not patients.data.is_judged:
        row["why"] = NO_CURVES
        if len(patients) < FEWEST_PATIENTS:
            row["why"] = f"fewer than {FEWEST_PATIENTS} patients"
    elif len(patients):
        row |= _curve_columns(patients, mask)
    row["judged"], own = not row["why"], [one for one in found if (one.attribute, one.group) == key]
    for one in own:
        if one.question in _NUMBERS:
            ends = zip(_ENDS, (one.value, one.low, one.high, one.p), strict=True)
            row |= {f"{_NUMBERS[one.question]}{end}": value for end, value in ends if not np.isnan(value)}
    row["status"] = min((one.status for one in own), key=STATUSES.index, default="")
    return row


def _curve_columns(patients: Subset, mask: BoolArray) -> dict[str, Any]:
    """Return the columns that need survival curves."""
    data, inside = patients.data, mask & patients.data.judged.inside
    observed, expected = data.judged.events(mask)
    gains = {"gain": data.judged.gains, "gain_over_reference": data.judged.over_reference}
    known = {name: one[inside] for name, one in gains.items() if one is not None and inside.any()}
    # Survival is one less the risks in the table of times.
    risk = data.risks.observed(data.risks.horizon, None if mask.all() else np.flatnonzero(mask))
    return {
        **{name: one.mean() for name, one in known.items()},
        "patients": round(n_patients(data.judged, mask)),
        "observed": observed,
        "expected": expected,
        "ratio": observed / expected if expected > 0 else float("nan"),
        "horizon": data.horizon,
        "survival_observed": 1 - risk.value,
        "survival_predicted": 1 - risk.only_predicted,
    }


def _place(row: dict[str, Any]) -> tuple[bool, int, bool, float]:
    """Sort rows: everybody first, then by problem, judged before not judged, and |observed - expected| per patient."""
    distance = abs(row["observed"] - row["expected"]) / max(row["patients"], 1)
    problem = PROBLEMS.index(row["status"]) if row["status"] in PROBLEMS else len(PROBLEMS)
    return row["attribute"] != EVERYONE, problem, not row["judged"], -float(np.nan_to_num(distance))


def parse_subgroups(subgroups: Any, n: int) -> dict[str, IntArray]:
    """Return the rows of the patients of each subgroup, from masks (n,) by name."""
    subgroups = {} if subgroups is None else subgroups
    check_mapping("subgroups", subgroups, "{'above 65': X['age'] > 65}")
    masks = {name: np.asarray(mask) for name, mask in subgroups.items()}
    for name, inside in masks.items():
        if inside.shape != (n,) or inside.dtype != bool:
            raise ArgumentError(
                "subgroups",
                f"subgroups[{name!r}] must hold True or False for each of the {n} patients, got shape {inside.shape} "
                f"of {inside.dtype}.",
            )
    return {str(name): np.flatnonzero(inside) for name, inside in masks.items()}


def calibration_table(evaluator: Evaluator, level: float) -> pd.DataFrame:
    """Return mean predicted and observed survival at every horizon: one less the risks in the table of times."""
    judged = evaluator.everyone.data.risks

    def calibration(subset: Subset) -> dict[Any, Any]:
        horizons = subset.data.calibration_times
        found = [judged.observed(time, subset.rows) for time in horizons.tolist()]
        intervals = (one.estimates([one.observed]).intervals(level)[0] for one in found)
        ends = [(one.low, one.estimate, one.high) for one in intervals]
        low, estimate, high = np.array(ends).reshape(-1, 3).T
        predicted = np.array([one.predicted for one in found])
        return {
            "horizon": horizons,
            "predicted": np.array([1 - one.only_predicted for one in found]),
            "observed": 1 - estimate,
            "difference": estimate - predicted,
            "low": 1 - high,
            "high": 1 - low,
            "at_risk": (subset.target.time[:, None] >= horizons).sum(axis=0),
            "difference_low": low - predicted,
            "difference_high": high - predicted,
        }

    return _by_group(evaluator, calibration)


def group_tables(evaluator: Evaluator, level: float) -> dict[str, Any]:
    """Return the tables of an evaluation by name; those of survival curves are empty for a model without curves."""
    times = evaluator.everyone.data.curve_times

    def shares_at_event(subset: Subset) -> dict[Any, Any]:
        """Share of patients in each tenth of predicted survival at the event; a tenth in each if calibrated."""
        shares = subset.d_calibration.shares
        edges = np.arange(len(shares) + 1) / len(shares)
        return {"bin_low": edges[:-1], "bin_high": edges[1:], "share": shares}

    def curves(subset: Subset) -> dict[Any, Any]:
        """Mean predicted survival and, until the last follow-up time, Kaplan-Meier."""
        alike = evaluator.clusters
        alike = alike if alike is None or subset.rows is None else alike[subset.rows]
        observed = KaplanMeier.of(subset.target, clusters=alike)
        low, high = observed.interval(times, level)
        some = (subset.curves.take(rows) for rows in batches(len(subset), _PATIENTS_AT_ONCE))
        summed = np.sum([curves.survival(times).sum(axis=0) for curves in some], axis=0)
        return {
            "time": times,
            "predicted": summed / len(subset),
            "observed": observed.at(times),
            "low": low,
            "high": high,
            "at_risk": len(subset) - np.searchsorted(np.sort(subset.target.time), times, side="left"),
        }

    return {
        "d_calibration": _by_group(evaluator, shares_at_event),
        "survival": _by_group(evaluator, curves),
        "cross_group": _cross_group(evaluator),
    }


def _cross_group(evaluator: Evaluator) -> pd.DataFrame:
    """Return the concordance of pairs between groups, by the group with the earlier event and the other group."""
    rows = []
    for attribute in evaluator.attributes if evaluator.everyone.data.scores.has_risk else ():
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
    found = {key: columns(patients) for key, patients in evaluator.subsets.items() if len(patients)}
    names = list(next(iter(found.values())))
    # One table of joined columns: a table for each group takes most of the time where there are few patients.
    joined = {name: np.concatenate([part[name] for part in found.values()]) for name in names}
    sizes = [len(part[names[0]]) for part in found.values()]
    attributes, groups = (np.repeat(np.array(part, dtype=object), sizes) for part in zip(*found, strict=True))
    return pd.DataFrame({"attribute": attributes, "group": groups, **joined})
