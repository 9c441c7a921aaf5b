"""From a table of patients to a trained model and its file."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from drosurv.audit.cross_fit import cross_fitted, cross_fitted_cox
from drosurv.errors import Argument, ArgumentError, ArgumentWarning
from drosurv.estimators import CoxPH, NullModel
from drosurv.evaluation import AgainstPlain, against_plain, beside
from drosurv.evaluation.against_plain import is_recalibrated
from drosurv.persistence import save
from drosurv.tables import SurvivalTable, TableEncoder, TableNote, find_leaks
from drosurv.workflows.opened_model import fingerprint, is_plain_cox

# With fewer events for each feature, coefficients are mostly chance.
_EVENTS_PER_FEATURE = 10
_FEWEST_JUDGES = 50
# Two more trainings on two thirds each: cheap, and every patient is a judge.
_FOLDS = 3
# A log hazard per standard deviation that only an outcome in disguise gives.
_ENDLESS = 8.0
# A curve kept at fewer times than it has steps is off, always in the same direction: so few put it off by less than a
# thousandth, which no comparison with it shows.
_CURVE_TIMES = 1000
_CURVE_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted pipeline of a :class:`TableEncoder` and an estimator, and the patients trained on.

    Attributes
    ----------
    fit_options : dict
        What the pipeline was fitted with besides features and target, one entry per patient each.
    observed : mapping
        Columns that said how rows were observed, as in :func:`train`.
    """

    pipeline: Pipeline
    table: SurvivalTable
    fit_options: dict[str, Any]
    observed: Mapping[str, str] = field(default_factory=dict)

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

        The fingerprint of the table `data` is noted. `force` saves even a model that tells the outcome from a column
        that gives it away.
        """
        leaks = find_leaks(self.table.X[self.encoder.used_], self.table.y) if self._separates() else {}
        if leaks and not force:
            raise ArgumentError(
                f"the model is not saved: column {next(iter(leaks))!r} gives the outcome away, and with it "
                "patients are told apart perfectly. Name it in ",
                Argument("drop"),
                ", or pass ",
                Argument("force"),
                " if it is known beforehand.",
            )
        target = {name: value for name, value in asdict(self.table.columns).items() if value}
        features = self.encoder.transform(self.table.X)
        notes = {
            "target": target,
            "trained_on": fingerprint(data),
            **_plain_cox(features, self.table),
            **({"observed": dict(self.observed)} if self.observed else {}),
        }
        save(self.pipeline, path, notes=notes)

    def _separates(self) -> bool:
        """Whether the model tells patients apart perfectly, or as good as that."""
        largest = np.abs(getattr(self.estimator, "coef_", 0.0)).max()
        return bool(getattr(self.estimator, "status_", "") == "separated" or largest > _ENDLESS)

    @property
    def is_plain(self) -> bool:
        """Whether the model is plain Cox."""
        return is_plain_cox(self.estimator)

    def against_plain(
        self, held: SurvivalTable | None = None, seed: int = 0
    ) -> tuple[AgainstPlain | None, str]:
        """The model beside plain Cox trained on the same patients, judged on others, and the words that say on whom.

        Without patients held out, or where they are too few, both models are trained anew without each of a few folds
        of the training patients, and judged on it. None where there is nothing to compare: the model is plain Cox or
        looks at no feature, patients are too few to judge by, or rows were observed in a way that the comparison does
        not hand on (entry times, strata).
        """
        observed = {"model__entry", "model__strata"} & set(self.fit_options)
        if self.is_plain or observed or self.table.columns.causes or isinstance(self.estimator, NullModel):
            return None, "nobody"
        if held is not None and _can_judge(held):
            found = against_plain(self.pipeline, self.table.X, self.table.y, held.X, held.y, held.groups)
            return found, "On the patients held out"
        if not _can_judge(self.table):
            return None, "nobody"
        X, y, parts = self.table.X, self.table.y, self.table.folds(_FOLDS, seed)
        with warnings.catch_warnings():
            # Training on everybody has given these warnings already.
            warnings.simplefilter("ignore")
            plain = cross_fitted_cox(self.pipeline, X, y, parts, seed)
            if plain is None:
                return None, "nobody"
            model = cross_fitted(self.pipeline, X, y, parts, seed, self.fit_options)
        found = beside(
            (model, None),
            (plain, None),
            y,
            self.table.groups,
            y_train=y,
            recalibrated=is_recalibrated(self.pipeline),
        )
        return found, f"In {_FOLDS} folds of these patients, by models trained without them"

    def summary(self) -> dict[str, Any]:
        """The model in numbers and words."""
        columns, y = self.table.columns, self.table.y
        event = "any cause" if columns.causes else repr(columns.event_value)
        # Only patients who are at risk together, in one stratum, are compared.
        wanted = () if columns.causes else ("entry", "strata")
        options = {name: self.fit_options.get(f"model__{name}") for name in wanted}
        at_risk = {name: value for name, value in options.items() if value is not None}
        return {
            "estimator": type(self.estimator).__name__,
            "parameters": self.estimator.get_params(),
            "event": f"{event} of column {columns.event!r}",
            "time": columns.time or f"days from {columns.start} to {columns.end}",
            "patients": self.estimator.n_patients_,
            "events": np.sum(self.estimator.n_events_).item(),
            "training_c_index": self.estimator.score(
                self.pipeline[:-1].transform(self.table.X), y, **at_risk
            ),
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
    """Train a model on a table. Its groups go to estimators that are trained with groups.

    Parameters
    ----------
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
    options = fit_options(estimator, table)
    if table.groups is not None and "model__sensitive_features" not in options:
        warnings.warn(
            TableNote(
                f"{type(estimator).__name__} is trained without groups: ",
                Argument("groups"),
                " only says which columns hold codes, and in whom a model is compared with plain Cox.",
            ),
            stacklevel=2,
        )
    for name, column in (observed or {}).items():
        require_understood(estimator, name)
        options[f"model__{name}"] = table.frame[column]
    if bootstrap and not hasattr(estimator, "summary"):
        raise ArgumentError(
            Argument("bootstrap"),
            f" has no meaning for {type(estimator).__name__}, which has no table of coefficients.",
        )
    pipeline.fit(table.X, table.y, **options)
    if bootstrap:
        estimator.summary(method="bootstrap", n_boot=bootstrap)
    if talks:
        estimator.set_params(verbose=False)
    _warn_of_few_events(estimator, len(encoder.get_feature_names_out()))
    return Trained(pipeline, table, options, observed or {})


def table_encoder(
    table: SurvivalTable, categorical: Sequence[str], unseen: str = "reference"
) -> TableEncoder:
    """The encoder of a table, for which codes that name groups are categories."""
    codes = [name for name in table.codes if name in table.X.columns]
    return TableEncoder(categorical=tuple(dict.fromkeys([*categorical, *codes])), unseen=unseen)


def _can_judge(table: SurvivalTable) -> bool:
    return bool(len(table) >= _FEWEST_JUDGES and table.y[table.columns.event].sum() >= _EVENTS_PER_FEATURE)


def fit_options(estimator: Any, table: SurvivalTable) -> dict[str, Any]:
    """What the table holds for training besides features and target."""
    options: dict[str, Any] = {}
    if getattr(estimator, "_compares_groups", None) is not None and table.groups is not None:
        options["model__sensitive_features"] = table.groups
    if table.entry is not None:
        require_understood(estimator, "entry")
        options["model__entry"] = table.entry
    return options


def require_understood(estimator: Any, name: str) -> None:
    """Raise if an estimator's ``fit`` takes no argument of this name."""
    if not {name, "observed"} & set(signature(estimator.fit).parameters):
        raise ArgumentError(
            Argument(name), f" is not understood by {type(estimator).__name__}: choose another model."
        )


def _warn_of_few_events(estimator: Any, n_features: int) -> None:
    events = np.min(estimator.n_events_).item()
    if events < _EVENTS_PER_FEATURE * n_features and hasattr(estimator, "l2"):
        warnings.warn(
            ArgumentWarning(
                f"{events:,} events for {n_features:,} features are fewer than {_EVENTS_PER_FEATURE} "
                "each: coefficients are unsteady and risks too extreme. Use fewer columns, or a penalty such as ",
                Argument("l2", 0.1),
                ".",
            ),
            stacklevel=3,
        )


def _plain_cox(features: pd.DataFrame, table: SurvivalTable) -> dict[str, Any]:
    """Plain Cox on the same features, which a model is held against: coefficients, and the hazard of a mean patient."""
    if table.columns.causes:
        return {"plain_cox": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = CoxPH().fit(features, table.y, entry=table.entry)
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
            "cumulative_hazard": [float(f"{value:.{_CURVE_DIGITS}g}") for value in hazard],
        },
    }


def _coefficients(estimator: Any) -> dict[str, float] | None:
    if not hasattr(estimator, "coef_"):
        return None
    if np.ndim(estimator.coef_) == 2:
        return {
            f"cause {k + 1}: {name}": value
            for k, row in enumerate(estimator.coef_.tolist())
            for name, value in zip(estimator.feature_names_in_.tolist(), row, strict=True)
        }
    return dict(zip(estimator.feature_names_in_.tolist(), estimator.coef_.tolist(), strict=True))
