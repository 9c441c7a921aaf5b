"""Inference on the coefficients of cause-specific models: the Cox table of each cause."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from drosurv.errors import InputError
from drosurv.estimators.base import SurvivalModel
from drosurv.estimators.coefficient_inference import encoder_notes, initial_findings
from drosurv.estimators.coefficients import CoxTable
from drosurv.estimators.coefficients.summary import (
    BesidePlain,
    Findings,
    bootstrap_coefficients,
    findings_table,
)
from drosurv.estimators.cox import CoxPH
from drosurv.presentation import listing
from drosurv.solvers import TrainingData
from drosurv.target import CompetingTarget, FloatArray, Surv


class CauseInference(SurvivalModel, abstract=True):
    """Inference on the coefficients of cause-specific models.

    It needs the training data, which a robust model stores in memory but does not save.
    """

    # Models of several causes are trained on another target than the others.
    _several_causes: ClassVar[bool] = True
    alpha: float
    coef_: FloatArray
    models_: list[CoxPH]
    worst_case_weights_: FloatArray
    n_features_in_: int
    _row: Callable[[int], int]
    _coefficients: Callable[[TrainingData, CompetingTarget], FloatArray]
    _kept_training: tuple[TrainingData, CompetingTarget] | None = None
    _findings: list[Findings] | None = None

    def summary(
        self,
        cause: int | None = None,
        level: float = 0.95,
        method: str = "auto",
        *,
        n_bootstrap: int = 1000,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
        scale: FloatArray | None = None,
        names: Sequence[str] | None = None,
    ) -> CoxTable:
        """Return the Cox table of one cause, by default of all, with a column ``cause``.

        Other parameters are those of :meth:`drosurv.CoxPH.summary`. If alpha is below 1, the table includes plain Cox
        for the same cause, and standard errors come from a bootstrap of all causes together, which is stored and used
        for every cause.
        """
        wanted = range(1, len(self.coef_) + 1) if cause is None else [self._row(cause) + 1]
        how: dict[str, Any] = {"n_bootstrap": n_bootstrap, "random_state": random_state, "verbose": verbose}
        if self.alpha == 1.0:
            tables = [
                self.models_[k - 1].summary(level, method, **how, n_jobs=n_jobs, scale=scale, names=names)
                for k in wanted
            ]
            for table in tables:
                table.caption = table.caption.replace("CoxPH", "CauseSpecificCox", 1)
        else:
            if method not in ("auto", "bootstrap"):
                raise InputError(
                    f"method={method!r} is defined for plain Cox only: use method='bootstrap', or alpha=1."
                )
            known = self._known()
            if method == "bootstrap":
                draws = np.split(self._bootstrap(**how, n_jobs=n_jobs), len(known), axis=1)
                pairs = zip(known, draws, strict=True)
                known = self._findings = [findings.with_bootstrap(refits) for findings, refits in pairs]
            numbered = [f"x{j}" for j in range(self.n_features_in_)]
            features = names or list(map(str, getattr(self, "feature_names_in_", numbered)))
            used = "bootstrap" if "bootstrap" in known[0].covariances else None
            title = f"CauseSpecificCox (alpha = {self.alpha:g})"
            tables = [
                findings_table(title, features, self.coef_[k - 1], known[k - 1], used, level, scale)
                for k in wanted
            ]
        if cause is None:
            table = _of_all_causes(tables)
        else:
            table = tables[0]
            table.caption = f"Cause {cause}, {table.caption}"
        table.notes = (*table.notes, *encoder_notes(getattr(self, "encoder_", None)))
        return table

    def _known(self) -> list[Findings]:
        """Return the findings of each cause; the first call fits plain Cox."""
        if self._findings is None:
            training, target = self._training_and_causes()
            y = Surv.competing(target.cause, target.time)
            given = training.observation
            rows = {
                "entry": given.entry,
                "strata": given.stratum,
                "offset": given.offset,
                "id": given.patient,
            }
            plain = clone(self).set_params(alpha=1.0)
            with warnings.catch_warnings(action="ignore"):
                # The robust fit has already given these warnings.
                plain.fit(training.X, y, training.weight, **rows)
            weights, self._findings = self.worst_case_weights_[training.kept], []
            for k, coef in enumerate(plain.coef_, start=1):
                findings = initial_findings(replace(training, target=target.of_cause(k)))
                beside = BesidePlain.of(training.X, training.mass, coef, weights)
                self._findings.append(replace(findings, plain=beside))
        return self._findings

    def _bootstrap(self, **how: Any) -> FloatArray:
        """Return coefficients (R, causes * d) of bootstrap refits."""
        training, target = self._training_and_causes()

        def refit(counts: FloatArray) -> FloatArray:
            drawn = target.take(np.flatnonzero(counts))
            return self._coefficients(training.resample(counts), drawn).ravel()

        return bootstrap_coefficients(refit, training.clusters, **how)

    def _training_and_causes(self) -> tuple[TrainingData, CompetingTarget]:
        if self._kept_training is None:
            raise InputError(
                "summary needs the training data, which a saved model does not contain: call it before saving, or fit "
                "again."
            )
        return self._kept_training

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters and fitted attributes, with the findings for summary() and without the training data."""
        if self._kept_training is not None:
            self._known()
        state = dict(super().__getstate__())
        state.pop("_kept_training", None)
        return state


def _of_all_causes(tables: Sequence[CoxTable]) -> CoxTable:
    """Return the tables of causes 1, 2, ... as one; notes that differ say of which cause they are."""
    numbered = list(enumerate(tables, start=1))
    found = CoxTable(pd.concat([pd.DataFrame(table) for table in tables]))
    found.insert(0, "cause", np.repeat([k for k, _ in numbered], [len(table) for table in tables]))
    found.level, found.ratio = tables[0].level, tables[0].ratio
    title, _, size = tables[0].caption.partition(": ")
    events = listing(
        [f"{table.caption.rpartition(', ')[2]} of cause {k}" for k, table in numbered], len(tables)
    )
    found.caption = f"{title}: {size.rpartition(', ')[0]}, {events}"
    common = [note for note in tables[0].notes if all(note in table.notes for table in tables)]
    own = [f"Cause {k}: {note}" for k, table in numbered for note in table.notes if note not in common]
    found.notes = (*common, *own)
    return found
