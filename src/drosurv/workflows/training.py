"""From a table of patients to a trained model and its file."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from drosurv.audit.cross_fit import cross_fitted, cross_fitted_cox
from drosurv.errors import Argument, ArgumentError, ArgumentWarning
from drosurv.estimators import CoxPH
from drosurv.evaluation import AgainstPlain, against_plain, beside
from drosurv.persistence import save
from drosurv.tables import SurvivalTable, TableEncoder, find_leaks
from drosurv.workflows.opened_model import fingerprint

# With fewer events for each feature, coefficients are mostly chance.
_EVENTS_PER_FEATURE = 10
_FEWEST_JUDGES = 50
# A log hazard per standard deviation that only an outcome in disguise gives.
_ENDLESS = 8.0
# So many times keep a curve well enough to be averaged.
_CURVE_TIMES = 200


@dataclass(frozen=True, eq=False)
class Trained:
    """A model with the preparation of its table.

    Attributes
    ----------
    pipeline : Pipeline
        A :class:`TableEncoder` and an estimator, fitted.
    table : SurvivalTable
        The patients trained on.
    leaks : dict
        Columns used that may give the outcome away, with the reason.
    """

    pipeline: Pipeline
    table: SurvivalTable
    leaks: dict[str, str]

    @property
    def encoder(self) -> TableEncoder:
        """What makes features of the table."""
        encoder: TableEncoder = self.pipeline[0]
        return encoder

    @property
    def estimator(self) -> Any:
        """What takes the features."""
        return self.pipeline[-1]

    def save(self, path: Path, data: Path, *, force: bool = False) -> None:
        """Write the model to a file, with what the commands that use it need besides it; no row of the table.

        Parameters
        ----------
        path : Path
            The file.
        data : Path
            The table trained on, whose fingerprint is noted.
        force : bool
            Save even a model that tells the outcome from a column that gives it away.
        """
        if self.leaks and self._separates() and not force:
            raise ArgumentError(
                f"the model is not saved: column {next(iter(self.leaks))!r} gives the outcome away, and with it "
                "patients are told apart perfectly. Name it in ",
                Argument("drop"),
                ", or pass ",
                Argument("force"),
                " if it is known beforehand.",
            )
        target = {name: value for name, value in asdict(self.table.columns).items() if value is not None}
        features = self.encoder.transform(self.table.X)
        notes = {
            "target": target,
            "trained_on": fingerprint(data),
            **_plain_cox(features, self.table.y),
        }
        save(self.pipeline, path, notes=notes)

    def _separates(self) -> bool:
        """Whether the model tells patients apart perfectly, or as good as that."""
        largest = np.abs(getattr(self.estimator, "coef_", 0.0)).max()
        return bool(getattr(self.estimator, "status_", "") == "separated" or largest > _ENDLESS)

    def against_plain(self, held: SurvivalTable) -> AgainstPlain | None:
        """The model beside plain Cox trained on the same patients, judged on others.

        None where there is nothing to tell: the model is plain Cox, or too few patients are there to judge by.
        """
        if not self._comparable(held):
            return None
        return against_plain(self.pipeline, self.table.X, self.table.y, held.X, held.y, _groups_of(held))

    def against_plain_in_folds(self, folds: int, seed: int = 0) -> AgainstPlain | None:
        """The same where nobody was kept away: both models are trained anew without each fold, and judged on it.

        None also for a model that is trained with groups or entry times, which folds do not hand on.
        """
        own = _fit_options(self.estimator, self.table)
        if own or not self._comparable(self.table):
            return None
        X, y = self.table.X, self.table.y
        parts = self.table.folds(folds, seed)
        plain = cross_fitted_cox(self.pipeline, X, y, parts, seed)
        if plain is None:
            return None
        model = cross_fitted(self.pipeline, X, y, parts, seed)
        return beside((model, None), (plain, None), y, _groups_of(self.table), y_train=y)

    def _comparable(self, judges: SurvivalTable) -> bool:
        enough = len(judges) >= _FEWEST_JUDGES and judges.y[judges.columns.event].sum() >= _EVENTS_PER_FEATURE
        plain = type(self.estimator) is CoxPH and self.estimator.l2 == 0
        return bool(enough and not plain and hasattr(self.estimator, "solver"))

    def summary(self) -> dict[str, Any]:
        """The model in numbers and words."""
        columns, y = self.table.columns, self.table.y
        return {
            "estimator": type(self.estimator).__name__,
            "parameters": self.estimator.get_params(),
            "event": f"{columns.event_value!r} of column {columns.event!r}",
            "time": columns.time_name,
            "patients": self.estimator.n_patients_,
            "events": self.estimator.n_events_,
            "training_c_index": self.pipeline.score(self.table.X, y),
            "objective": getattr(self.estimator, "objective_", None),
            "status": getattr(self.estimator, "status_", "solved"),
            "recalibration": getattr(self.estimator, "recalibration_", None),
            "coefficients": _coefficients(self.estimator),
        }


def train(
    table: SurvivalTable,
    estimator: Any,
    *,
    categorical: Sequence[str] = (),
    unseen: str = "reference",
    observed: Mapping[str, str] | None = None,
    bootstrap: int = 0,
    verbose: bool = False,
) -> Trained:
    """Train a model on a table.

    Parameters
    ----------
    table : SurvivalTable
        The patients. Their groups go to estimators that are trained with groups.
    estimator : estimator
        Not fitted.
    categorical, unseen
        As in :class:`TableEncoder`; columns of codes that name groups are categories anyway.
    observed : mapping, optional
        Columns of the table that say how rows were observed, by the argument of ``fit`` they go to: ``entry``,
        ``strata``, ``clusters``, ``id``.
    bootstrap : int
        Refits for the standard errors of the model's ``summary``; 0 for none.
    verbose : bool
        Whether an estimator that can tell of its progress does.
    """
    encoder = table_encoder(table, categorical, unseen)
    pipeline = Pipeline([("table", encoder), ("model", estimator)])
    talks = "verbose" in estimator.get_params()
    if talks:
        estimator.set_params(verbose=verbose)
    columns = {f"model__{name}": table.frame[column] for name, column in (observed or {}).items()}
    pipeline.fit(table.X, table.y, **_fit_options(estimator, table), **columns)
    if bootstrap:
        estimator.summary(method="bootstrap", n_boot=bootstrap)
    if talks:
        estimator.set_params(verbose=False)
    _warn_of_few_events(estimator, len(encoder.get_feature_names_out()))
    used = [column.name for column in encoder.columns_ if column.features]
    return Trained(pipeline, table, find_leaks(table.X[used], table.y))


def table_encoder(
    table: SurvivalTable, categorical: Sequence[str], unseen: str = "reference"
) -> TableEncoder:
    """The encoder of a table, for which codes that name groups are categories."""
    codes = [name for name in table.codes if name in table.X.columns]
    return TableEncoder(categorical=tuple(dict.fromkeys([*categorical, *codes])), unseen=unseen)


def _groups_of(table: SurvivalTable) -> pd.DataFrame | None:
    return table.sensitive_features if table.sensitive_features.shape[1] else None


def _fit_options(estimator: Any, table: SurvivalTable) -> dict[str, Any]:
    """What the table holds for training besides features and target."""
    taken = signature(estimator.fit).parameters
    options: dict[str, Any] = {}
    if getattr(estimator, "_compares_groups", None) is not None and table.sensitive_features.shape[1]:
        options["model__sensitive_features"] = table.sensitive_features
    if table.entry is not None:
        if "entry" not in taken:
            raise ArgumentError(
                Argument("entry"), f" is not understood by {type(estimator).__name__}: choose another model."
            )
        options["model__entry"] = table.entry
    return options


def _warn_of_few_events(estimator: Any, n_features: int) -> None:
    if estimator.n_events_ < _EVENTS_PER_FEATURE * n_features and hasattr(estimator, "solver"):
        warnings.warn(
            ArgumentWarning(
                f"{estimator.n_events_:,} events for {n_features:,} features are fewer than {_EVENTS_PER_FEATURE} "
                "each: coefficients are unsteady and risks too extreme. Use fewer columns, or a penalty such as ",
                Argument("l2", 0.1),
                ".",
            ),
            stacklevel=3,
        )


def _plain_cox(features: pd.DataFrame, y: NDArray[Any]) -> dict[str, Any]:
    """Plain Cox on the same features, which a model is held against: coefficients, and the hazard of a mean patient."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = CoxPH().fit(features, y)
    if not plain.converged_:
        return {"plain_cox": None}
    mean = features.mean(axis=0).to_frame().T
    times = np.quantile(plain.unique_times_, np.linspace(0, 1, _CURVE_TIMES), method="nearest")
    hazard = plain.predict_cumulative_hazard_function(mean, times=np.unique(times))[0]
    return {
        "plain_cox": plain.coef_.tolist(),
        "plain_cox_baseline": {
            "log_risk": float(plain.predict(mean)[0]),
            "times": np.unique(times).tolist(),
            "cumulative_hazard": hazard.tolist(),
        },
    }


def _coefficients(estimator: Any) -> dict[str, float] | None:
    if not hasattr(estimator, "coef_"):
        return None
    return dict(zip(estimator.feature_names_in_.tolist(), estimator.coef_.tolist(), strict=True))
