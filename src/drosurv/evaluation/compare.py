"""Compare models on the same patients by paired differences.

:func:`compare` compares any number of models with the first. :func:`against_plain` compares a model with plain Cox
trained on the same patients. Both draw the same bootstrap replicates for all models (`_drawn`): differences are paired,
and vary less than the numbers of each model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.evaluation.attributes import ALL, EVERYONE, warn_of_undefined, whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluate import MIN_EVENTS, MIN_GROUP, prepare
from drosurv.evaluation.evaluator import BootstrapValues, Evaluator, Key, RowKey
from drosurv.evaluation.from_entry import one_row_each, predict_from_entry, reference_from_entry
from drosurv.evaluation.reference import plain_cox
from drosurv.metrics.inference import Draws, compare_draws, differences_together
from drosurv.metrics.inference.intervals import seed_sequence
from drosurv.observation import Inference, Rows
from drosurv.predictions import Predicted, as_predictions, final_step, prepared
from drosurv.presentation import Statement, Table, sentences, written
from drosurv.presentation.progress import bar
from drosurv.target import parse_target

# Metrics whose lowest value over an attribute's groups is shown.
_WORST = ("concordance_index", "brier_skill", "likelihood_gain")
# Metrics that decide whether a model is better or worse for a group.
COMPARED = ("concordance_index", "integrated_brier_score", "likelihood_gain")
# Groups with fewer events are not compared.
LEAST_EVENTS = 10
# A calibration slope outside of this range is far from 1: log risks would have to be multiplied or divided by 1.5.
SLOPES = (1 / 1.5, 1.5)
_ROUNDING = 1e-6
_COLUMNS = ["attribute", "group", "metric", "model", "plain", "difference", "low", "high", "verdict"]


def compare(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    y_train: Any = None,
    sensitive_features: Any = None,
    X_train: Any = None,
    reference: Any = None,
    entry: Any = None,
    strata: Any = None,
    offset: Any = None,
    id: Any = None,
    sample_weight: Any = None,
    n_bootstrap: int = 500,
    level: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool | None = None,
) -> pd.DataFrame:
    """Compare models on the same patients and the same bootstrap replicates.

    Differences are paired, and vary less than the numbers of each model: models may differ although their intervals
    overlap.

    Parameters
    ----------
    models : mapping
        Name to a fitted model, :class:`~drosurv.evaluation.Predictions`, a pair (times, survival) or an array of risk
        scores; the first is the one that the others are compared with.
    X, y, sensitive_features, X_train, id, sample_weight
        As in :func:`~drosurv.evaluation.evaluate`.
    y_train : structured array or FollowUp, optional
        Training targets, for censoring weights and the null model; by default those that the first model keeps. Not
        with `entry`.
    reference : fitted model, Predictions, or (n,) array, optional
        For the share of likelihood gain; by default the first model, unless it gives survival curves alone.
    entry, strata, offset : (n,) arrays, optional
        As in :func:`~drosurv.evaluation.evaluate`, for fitted models. Entry times are for all of them; strata and
        offset for those that were fitted with them.
    n_bootstrap : int
        Bootstrap replicates; 0 for values alone.
    level, random_state, n_jobs, verbose
        As in :func:`~drosurv.evaluation.evaluate`.

    Returns
    -------
    DataFrame
        One row per model and number: ``model``, ``attribute``, ``metric`` (metrics of everybody, gaps of an
        attribute, and ``worst_group_...``, the lowest value over its groups of at least 50 patients and
        10 events, with that ``group``), ``value``
        with ``low`` and ``high``; ``difference`` from the first model with ``difference_low``,
        ``difference_high`` and the ``p_value`` of no difference, NaN for the first model itself.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.evaluation import compare
    >>> train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    >>> models = {
    ...     "Cox": drosurv.CoxPH().fit(train.X, train.y),
    ...     "DRO-COX": drosurv.DROCox().fit(train.X, train.y),
    ... }
    >>> table = compare(models, test.X, test.y, y_train=train.y, n_bootstrap=20)
    >>> table.query("metric == 'concordance_index'")["model"].tolist()
    ['Cox', 'DRO-COX']
    """
    inference = Inference(level, n_bootstrap, random_state, n_jobs, verbose)
    observed = Rows.parse(
        parse_target(y), entry=entry, strata=strata, offset=offset, id=id, sample_weight=sample_weight
    )
    if not models:
        raise ArgumentError("models", "models is empty: give at least one model by name.")
    patients = one_row_each(y, observed)
    y, observed = patients.y, patients.observed
    X, sensitive_features, reference = map(patients.of, (X, sensitive_features, reference))
    models = {name: patients.of(model) for name, model in models.items()}
    predicted = _predicted(models, X, len(y), observed)
    first = next(iter(predicted.values()))
    reference = first.model if reference is None and first.has_risk else reference
    if y_train is None and entry is None:
        y_train = first.follow_up
    if observed.observed:
        reference = reference_from_entry(reference, X, y, observed, y_train=y_train)
        since_entry = {name: predict_from_entry(one, y, y_train=y_train) for name, one in predicted.items()}
        models = {name: one.predictions for name, one in since_entry.items()}
        y, y_train = (getattr(next(iter(since_entry.values())), part) for part in ("y", "follow_up"))
        predicted = _predicted(models, X, len(y), Rows())
    how: dict[str, Any] = {
        "y_train": y_train,
        "sensitive_features": sensitive_features,
        "X_train": X_train,
        "reference": reference,
        "clusters": observed.id if observed.entry is None else None,
    }
    evaluators = (prepare(one, y, **how) for one in predicted.values())
    rows: list[dict[str, Any]] = []
    # Numbers of the first model. It has no differences itself; those of numbers that it lacks are NaN.
    baseline: dict[Key, Draws] = {}
    unknown_draws = Draws(float("nan"), np.full(inference.n_bootstrap, np.nan))
    undefined: list[str] = []
    with bar("comparing", len(models) * inference.n_bootstrap, shown=verbose, late=True) as advance:
        pairs = _drawn(evaluators, inference, advance)
        for name, (evaluator, drawn) in zip(models, pairs, strict=True):
            numbers, worst = _numbers(evaluator, drawn)
            unknown = [
                f"{metric} of {whose(attribute, group)}"
                for (attribute, group, metric), number in drawn.numbers.items()
                if np.isnan(number.estimate)
            ]
            if unknown:
                undefined.append(f"{name}: {', '.join(unknown)}")
            for key, number in numbers.items():
                interval = number.interval(level)
                from_first = compare_draws(number, baseline.get(key, unknown_draws), level)
                rows.append(
                    {
                        "model": name,
                        "attribute": key[0],
                        "metric": key[1],
                        "group": worst.get(key, ALL),
                        "value": number.estimate,
                        "low": interval.low,
                        "high": interval.high,
                        "difference": from_first.difference.estimate,
                        "difference_low": from_first.difference.low,
                        "difference_high": from_first.difference.high,
                        "p_value": from_first.p_value,
                    }
                )
            baseline = baseline or numbers
    warn_of_undefined(undefined)
    return pd.DataFrame(rows)


def _predicted(models: Mapping[str, Any], X: Any, n: int, observed: Rows) -> dict[str, Predicted]:
    """Return the predictions of each model, which gets the strata and offset that it was fitted with."""
    fitted_with = {name: getattr(final_step(model), "_fitted_with", ()) for name, model in models.items()}
    for what in observed.for_models:
        if not any(what in names for names in fitted_with.values()):
            raise ArgumentError(what, f"none of the models was fitted with {what}: leave it out.")
    found = {
        name: as_predictions(model, X, n, rows=observed.only(fitted_with[name]), name=f"models[{name!r}]")
        for name, model in models.items()
    }
    for name, one in found.items():
        if observed.observed and not one.has_curves:
            raise ArgumentError(
                "models",
                f"models[{name!r}] must be a fitted model with predict_survival_function, which "
                f"{', '.join(observed.observed)} needs, got {one.title}.",
            )
    return found


def _drawn(
    evaluators: Iterable[Evaluator], inference: Inference, advance: Callable[[], None] = lambda: None
) -> Iterator[tuple[Evaluator, BootstrapValues]]:
    """Yield the numbers of each model on the same replicates of the patients."""
    # Made once: without a seed, each model would otherwise draw other replicates.
    same = replace(inference, random_state=seed_sequence(inference.random_state))
    for evaluator in evaluators:
        yield evaluator, evaluator.draw(same, advance=advance)


def _numbers(evaluator: Evaluator, drawn: BootstrapValues) -> tuple[dict[Key, Draws], dict[Key, str]]:
    """Return the numbers of one model by attribute and metric, and the group that has each lowest value."""
    numbers = evaluator.numbers(drawn)
    found = {
        key: number
        for key, number in numbers.items()
        if key[0] == EVERYONE or CATALOGUE[key[1]].of == "attribute"
    }
    worst: dict[Key, str] = {}
    for attribute in evaluator.attributes:
        large = [
            label
            for label in attribute.labels
            if not evaluator.counts[attribute.name, label].is_small(MIN_GROUP, MIN_EVENTS)
        ]
        for metric in _WORST:
            if (attribute.name, metric) in numbers and large:
                values, draws = drawn.groups(attribute.name, large, metric)
                key = attribute.name, f"worst_group_{metric}"
                found[key] = Draws(float(np.fmin.reduce(values)), np.fmin.reduce(draws, axis=1))
                worst[key] = large[int(np.nanargmin(values))] if np.isfinite(values).any() else ALL
    return found, worst


@dataclass(frozen=True, eq=False, repr=False)
class AgainstPlain:
    """Comparison of a model with plain Cox trained on the same patients.

    Parameters
    ----------
    table : DataFrame
        One row per group and metric: ``attribute``, ``group``, ``metric``, the values of the ``model`` and of
        ``plain`` Cox, their ``difference`` (above 0 if the model is better) with the simultaneous interval ``low`` to
        ``high``, and the ``verdict``: "better", "worse" or "".
    slope, slope_low, slope_high : float
        Calibration slope of the model, with its interval.
    plain_slope : float
        Calibration slope of plain Cox.
    reference : str
        Name of the model that is compared with, by default plain Cox.
    recalibrated : bool
        Whether the model was recalibrated in training.
    can_recalibrate : bool
        Whether the model can be recalibrated; models that predict times, for example, cannot.
    """

    table: pd.DataFrame
    slope: float
    slope_low: float
    slope_high: float
    plain_slope: float
    reference: str = "plain Cox"
    recalibrated: bool = False
    can_recalibrate: bool = True

    def served(self, attribute: str, group: str) -> Literal["better", "not shown", "worse", "too few"]:
        """Whether the model is better or worse for a group than plain Cox; worse if any metric is worse."""
        rows = self.table[(self.table["attribute"] == attribute) & (self.table["group"] == group)]
        if rows.empty:
            return "too few"
        found = set(rows["verdict"])
        return "worse" if "worse" in found else "better" if "better" in found else "not shown"

    def _groups(self, verdict: str) -> tuple[str, ...]:
        rows = self.table[self.table["verdict"] == verdict]
        return tuple(dict.fromkeys(map(whose, rows["attribute"], rows["group"])))

    @property
    def better(self) -> tuple[str, ...]:
        """Groups for which the model is significantly better than plain Cox."""
        return self._groups("better")

    @property
    def worse(self) -> tuple[str, ...]:
        """Groups for which the model is significantly worse than plain Cox."""
        return self._groups("worse")

    @property
    def dominated(self) -> bool:
        """Whether plain Cox is better for some group and the model for none."""
        return bool(self.worse) and not self.better

    @property
    def slope_is_far(self) -> bool:
        """Whether the calibration slope is far from 1, and its interval excludes 1."""
        return is_far_from_1(self.slope, self.slope_low, self.slope_high)

    @property
    def same(self) -> bool:
        """Whether both models predict the same, apart from rounding."""
        return not self.table.empty and bool(self.table["difference"].abs().max() < _ROUNDING)

    @property
    def only_alike(self) -> bool:
        """Whether the models differ, but significantly for no group."""
        return not (self.table.empty or self.same or self.better or self.worse)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The comparison in sentences; a concern if the model should not be used as it is."""
        if self.same:
            return (Statement("against_plain", f"The model predicts the same as {self.reference}."),)
        numbers = {verdict: self._clearest_number(verdict) for verdict in ("better", "worse")}
        compared = sentences.comparison_statement(
            self.better, self.worse, numbers, self.reference, known=not self.table.empty
        )
        if not self.slope_is_far:
            return (compared,)
        interval = self.slope_low, self.slope_high
        return compared, sentences.slope_statement(
            self.slope,
            interval,
            self.plain_slope,
            self.reference,
            recalibrated=self.recalibrated,
            can_recalibrate=self.can_recalibrate,
        )

    def __str__(self) -> str:
        return "\n".join(statement.text for statement in self.statements)

    def to_table(self) -> Table:
        """Return a table of both models' numbers for everybody and every group, with the sentences as caption."""
        return Table.of_frame(self.table, str(self), "against_plain")

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def _clearest_number(self, verdict: str) -> str:
        """Return the metric with the largest difference, relative to its interval, and both values, as text."""
        rows = self.table[self.table["verdict"] == verdict]
        if rows.empty:
            return ""
        # Relative, because metrics have different scales.
        row = rows.iloc[int((rows["difference"].abs() / (rows["high"] - rows["low"])).argmax())]
        label = CATALOGUE[str(row["metric"])].label
        return f"{label} {written(float(row['model']))}; {self.reference}: {written(float(row['plain']))}"


def is_far_from_1(slope: float, low: float, high: float) -> bool:
    """Whether a calibration slope is far from 1, and its interval excludes 1."""
    return not SLOPES[0] <= slope <= SLOPES[1] and (low > 1 or high < 1)


def against_plain(
    model: Any,
    X_train: Any,
    y_train: Any,
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    n_bootstrap: int = 200,
    level: float = 0.95,
    min_group: int = 50,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> AgainstPlain:
    """Compare a fitted model with plain Cox trained on the same rows, on patients neither has seen.

    The model is better, or worse, for a group if its c-index, Brier score or likelihood is significantly better, or
    worse, adjusted for all groups and metrics, and by at least 0.0005. Both models are evaluated on the same bootstrap
    replicates.

    Parameters
    ----------
    model : fitted model or Pipeline
        Model to evaluate, or a finished search. The first steps of a Pipeline prepare the features of both models.
    X_train, y_train : (m, d) array or DataFrame, structured array
        Training patients of the model.
    X, y : (n, d) array or DataFrame, structured array
        Patients to compare on.
    groups : DataFrame, Series, mapping, (n,) or (n, J) labels, optional
        Groups of these patients; without groups, only everybody is compared.
    n_bootstrap : int
        Number of bootstrap replicates for standard errors.
    level : float
        Simultaneous confidence level of all intervals.
    min_group : int
        Groups with fewer patients, or fewer than 10 events, are not judged.
    random_state, n_jobs
        As in :func:`~drosurv.evaluation.evaluate`.

    Returns
    -------
    AgainstPlain

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.evaluation import against_plain
    >>> train, test = make_hidden_minority(600, random_state=0), make_hidden_minority(600, random_state=1)
    >>> shrunken = drosurv.CoxPH(l2=3.0).fit(train.X, train.y)
    >>> found = against_plain(shrunken, train.X, train.y, test.X, test.y, n_bootstrap=20)
    >>> found.dominated, found.slope_is_far
    (True, True)
    """
    plain = plain_cox(model).fit(prepared(model, X_train), y_train)
    return beside(
        (model, X),
        (plain, prepared(model, X)),
        y,
        groups,
        y_train=y_train,
        n_bootstrap=n_bootstrap,
        level=level,
        min_group=min_group,
        random_state=random_state,
        n_jobs=n_jobs,
        recalibrated=is_recalibrated(model),
    )


def is_recalibrated(model: Any) -> bool:
    """Whether a model's scores were recalibrated on patients it was not trained on."""
    return hasattr(final_step(model), "recalibration_")


def beside(
    model: tuple[Any, Any],
    plain: tuple[Any, Any],
    y: Any,
    groups: Any = None,
    *,
    y_train: Any,
    n_bootstrap: int = 200,
    level: float = 0.95,
    min_group: int = 50,
    random_state: Any = 0,
    n_jobs: int | None = None,
    name: str = "plain Cox",
    recalibrated: bool = False,
) -> AgainstPlain:
    """Compare two fitted models; otherwise as :func:`against_plain`.

    Parameters
    ----------
    model, plain : pair of fitted model, Predictions or (n,) array, and its features (None for predictions)
        The model to evaluate, and the one to compare with.
    y_train : structured array or FollowUp
        Training target, for censoring weights and the null model.
    name : str
        Name of the second model in sentences.
    recalibrated : bool
        Whether the first model was recalibrated in training.
    """
    how: dict[str, Any] = {"y_train": y_train, "sensitive_features": groups}
    predicted = [as_predictions(*one, len(y)) for one in (model, plain)]
    evaluators = [prepare(one, y, wanted=(*COMPARED, "calibration_slope"), **how) for one in predicted]
    inference = Inference(level, n_bootstrap, random_state, n_jobs)
    first, second = (drawn.numbers for _, drawn in _drawn(evaluators, inference))
    keys = _compared(evaluators[0], first, second, min_group)
    pairs = [(first[key], second[key]) for key in keys]
    rows = []
    for key, pair, found in zip(keys, pairs, differences_together(pairs, level), strict=True):
        # Differences above 0 mean that the model is better.
        sign = 1.0 if CATALOGUE[key[2]].better == "higher" else -1.0
        low, high = sorted([sign * found.low, sign * found.high])
        alike = abs(found.estimate) < sentences.LEAST_DIFFERENCE
        verdict = "" if alike else "better" if low > 0 else "worse" if high < 0 else ""
        rows.append((*key, pair[0].estimate, pair[1].estimate, sign * found.estimate, low, high, verdict))
    # Curves without scores have no slope.
    slope, unknown = (EVERYONE, ALL, "calibration_slope"), Draws(float("nan"), np.empty(0))
    interval = first.get(slope, unknown).interval(level)
    return AgainstPlain(
        pd.DataFrame(rows, columns=_COLUMNS),
        interval.estimate,
        interval.low,
        interval.high,
        second.get(slope, unknown).estimate,
        name,
        recalibrated,
        # Estimators whose curves do not come from log hazards refuse to be recalibrated.
        not getattr(getattr(final_step(model[0]), "capabilities", None), "no_recalibration", ""),
    )


def _compared(
    evaluator: Evaluator, first: Mapping[RowKey, Draws], second: Mapping[RowKey, Draws], min_group: int
) -> list[RowKey]:
    """Return what is compared: the metrics of everybody and of large groups that are defined for both models."""
    large = [key for key, count in evaluator.counts.items() if not count.is_small(min_group, LEAST_EVENTS)]
    keys = [(*who, metric) for who in [(EVERYONE, ALL), *large] for metric in COMPARED]
    return [key for key in keys if all(key in of and np.isfinite(of[key].estimate) for of in (first, second))]
