"""Compare a trained model with plain Cox on patients that neither was trained on, by one call of `compare`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.pipeline import Pipeline

from drosurv.estimators import CoxPHCV, NullModel
from drosurv.evaluation import compare
from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.reference import plain_cox
from drosurv.findings.words import per_hundred
from drosurv.metrics.inference import adjusted_p
from drosurv.presentation import Statement, sentences, written
from drosurv.report.cross_fit import cross_fitted, cross_fitted_cox, fold_parts
from drosurv.tables import SurvivalTable
from drosurv.workflows.training import EVENTS_PER_FEATURE, Trained

PLAIN, MODEL = "plain Cox", "the model"
# The gain in log likelihood decides; the others are shown beside it.
GAIN, METRICS = "likelihood_gain", ("concordance_index", "likelihood_gain", "calibration_slope")
# Models are not compared on fewer patients.
_FEWEST_PATIENTS = 50
_FOLDS, _LEVEL = 3, 0.95
_REPLICATES = 200
# A smaller difference is rounding.
_ROUNDING = 1e-6
# A calibration slope outside of this range is far from 1: log risks would have to be multiplied or divided by 1.5.
_SLOPES = (1 / 1.5, 1.5)
# Names of the numbers that decide.
_WHO = {GAIN: "everybody", f"worst_group_{GAIN}": "the worst group"}


@dataclass(frozen=True, eq=False)
class PlainComparison:
    """Comparison of a model with plain Cox: the table of :func:`drosurv.compare`, and a description of the `patients`.

    The model is better, or worse, if its gain in log likelihood over no model is, of everybody or of the group with the
    lowest gain: by at least 0.0005, and significantly after adjustment for the two. Whether the model was recalibrated
    in training, and whether it can be, changes what to do.
    """

    table: pd.DataFrame
    patients: str
    recalibrated: bool = False
    can_recalibrate: bool = True

    def _rows(self, model: str) -> dict[str, dict[str, Any]]:
        """Return the rows of everybody, and of the worst group, by metric."""
        rows: list[Any] = self.table.to_dict("records")
        return {row["metric"]: row for row in rows if (row["model"], row["attribute"]) == (model, EVERYONE)}

    def _different(self, sign: int) -> dict[str, str]:
        """Return for whom the model is better (1) or worse (-1), with the gains of both models in words."""
        rows, plain = self._rows(MODEL), self._rows(PLAIN)
        known = [metric for metric in _WHO if metric in rows]
        found = {}
        for metric in known:
            p = adjusted_p(rows[metric]["p"], len(known))
            large = sign * rows[metric]["difference"] >= sentences.LEAST_DIFFERENCE
            if large and p < 1 - _LEVEL:
                gain, of_plain = (written(of[metric]["value"]) for of in (rows, plain))
                found[_WHO[metric]] = f"{self._pairs(metric)}likelihood gain {gain}; {PLAIN}: {of_plain}"
        return found

    def _pairs(self, metric: str) -> str:
        """Say how many of 100 pairs of patients both models rank rightly; empty for a group, or without scores."""
        ranked = [of.get("concordance_index") for of in (self._rows(MODEL), self._rows(PLAIN))]
        if metric != GAIN or ranked[0] is None or ranked[1] is None:
            return ""
        of_model, of_plain = (per_hundred(row["value"], 1.0) for row in ranked if row is not None)
        return f"of 100 pairs of patients it ranks {of_model} in the right order; {PLAIN}: {of_plain}; "

    @property
    def dominated(self) -> bool:
        """Whether plain Cox is better, and the model for nobody."""
        return bool(self._different(-1)) and not self._different(1)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The comparison in sentences; a concern if the model should not be used as it is."""
        rows = self._rows(MODEL)
        if all(abs(rows[metric]["difference"]) < _ROUNDING for metric in _WHO if metric in rows):
            return (Statement("against_plain", f"The model predicts the same as {PLAIN}."),)
        compared = sentences.comparison_statement(self._different(1), self._different(-1), PLAIN)
        # Curves without scores have no slope.
        slope, of_plain = (of.get("calibration_slope") for of in (rows, self._rows(PLAIN)))
        if slope is None or of_plain is None:
            return (compared,)
        value, low, high = slope["value"], slope["low"], slope["high"]
        if _SLOPES[0] <= value <= _SLOPES[1] or low <= 1 <= high:
            return (compared,)
        return compared, sentences.slope_statement(
            value,
            (low, high),
            of_plain["value"],
            PLAIN,
            recalibrated=self.recalibrated,
            can_recalibrate=self.can_recalibrate,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as numbers and text."""
        text = "\n".join(statement.text for statement in self.statements)
        return {"dominated": self.dominated, "statements": text, "patients": self.patients}


def compare_with_plain_cox(
    trained: Trained, held: SurvivalTable | None = None, seed: int = 0
) -> PlainComparison | None:
    """Compare a trained model with plain Cox on patients not trained on.

    Without held-out patients, or if they are too few, both models are compared by cross-validation on the training
    patients. Return None if the model is plain Cox, has no features, or is the default (:class:`CoxPHCV`, which
    ``drosurv audit`` compares); if there are too few patients; or with entry times, strata or competing causes,
    which the comparison does not support.
    """
    known = trained.is_plain or isinstance(trained.estimator, (NullModel, CoxPHCV))
    large = held is not None and len(held) >= _FEWEST_PATIENTS and held.event.sum() >= EVENTS_PER_FEATURE
    on = held if large and held is not None else trained.table
    if known or {"entry", "strata"} & trained.fit_options.keys() or trained.table.columns.causes:
        return None
    if on.event.sum() < EVENTS_PER_FEATURE:
        return None
    X: Any = trained.columns_of(on)
    if on is held:
        words = "On the patients held out"
        models = {
            PLAIN: Pipeline([("table", trained.encoder), ("cox", trained.plain_cox)]),
            MODEL: trained.model,
        }
    else:
        words = f"In {_FOLDS} folds of these patients, by models trained without them"
        unfitted = Pipeline([("table", trained.encoder), ("cox", plain_cox(trained.estimator))])
        parts = fold_parts(on.event, _FOLDS, seed, on.together)
        with warnings.catch_warnings(action="ignore"):
            # Training on all patients has given the same warnings.
            plain = cross_fitted_cox(unfitted, on.X, on.y, parts)
            if plain is None:
                return None
            found = cross_fitted(trained.model, X, on.y, parts, fit_options=trained.fit_options)
        models, X = {PLAIN: plain, MODEL: found.predictions}, None
    table = compare(
        models,
        X,
        on.y,
        y_train=trained.table.y,
        sensitive_features=on.groups,
        **on.judged_rows,
        metrics=METRICS,
        n_bootstrap=_REPLICATES,
        level=_LEVEL,
    )
    able = getattr(trained.estimator, "capabilities", None)
    return PlainComparison(
        table,
        words,
        recalibrated=hasattr(trained.estimator, "recalibration_"),
        can_recalibrate=not getattr(able, "no_recalibration", ""),
    )
