"""Train a model on a table of patients, and save it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from drosurv.errors import ArgumentError, arg, warn_caller
from drosurv.estimators import CoxPH
from drosurv.estimators.coefficient_inference import summary
from drosurv.estimators.coefficients import CoxTable, check_design
from drosurv.estimators.coefficients.proportional_hazards import MOST_TESTED, UNTESTED, takes_long
from drosurv.estimators.coefficients.summary import sized
from drosurv.estimators.network_settings import readable_parameters
from drosurv.estimators.persistence import save
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.observation import given_arguments
from drosurv.patients.target import (
    Target,
    cause_names,
    field_names,
    parse_competing_target,
    parse_target,
    with_fields,
    y_field,
)
from drosurv.predictions.any_model import columns_used, plain_cox
from drosurv.presentation import cause_in_words, cause_label, cause_title, counted, listing
from drosurv.repairs import RepairedCox
from drosurv.report.cross_fit import fold_parts
from drosurv.tables import SurvivalTable
from drosurv.tables.columns import CategoryColumn
from drosurv.tables.encoder import TableEncoder
from drosurv.tables.ids import names_of_rows
from drosurv.tables.leaks import find_leaks
from drosurv.tables.reading import TableNote
from drosurv.tables.values import labels
from drosurv.workflows.row_hashes import RowHashes

# With fewer events per feature, coefficients are mostly chance.
EVENTS_PER_FEATURE = 10
# A smaller error of survival curves is not reported, nor one where fewer patients are at risk.
_TOO_HIGH, _FEWEST_AT_RISK = 0.02, 50


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model and its training patients.

    The model takes columns of the table, not encoded: it is a Pipeline of a :class:`TableEncoder` and an estimator, or
    a :class:`drosurv.RepairedCox` of one. It was trained on the `table`, which has the values of each patient's first
    row in all of them. `y` is the target with the fields that it was trained with, `fit_options` are the arguments of
    the estimator's ``fit`` besides features and target; `observed` is as in :func:`train`.
    """

    model: Any
    encoder: TableEncoder
    table: SurvivalTable
    y: NDArray[Any]
    fit_options: dict[str, Any]
    observed: Mapping[str, str] = field(default_factory=dict)

    @property
    def estimator(self) -> Any:
        """The model without the encoder before it."""
        return self.model[-1] if isinstance(self.model, Pipeline) else self.model

    @cached_property
    def _features(self) -> pd.DataFrame:
        """The encoded features of the training patients."""
        return self.encoder.transform(self.table.X)

    def save(
        self,
        path: Path,
        data: Path,
        *,
        row_hashes: bool = True,
        warnings: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """Write the model to a file, with notes that the commands need; the file holds no row of the table.

        Parameters are those of :func:`save_with_notes`.
        """
        notes: dict[str, Any] = {}
        # A repaired model holds its base model, with which it is compared.
        if not (isinstance(self.model, RepairedCox) or self.table.columns.causes):
            notes["plain_cox"] = self.plain_cox if self.plain_cox.converged_ else None
        if notes.get("plain_cox") is self.estimator:
            # Once is enough.
            notes["plain_cox"] = True
        if self.observed:
            notes["observed"] = dict(self.observed)
        save_with_notes(self.model, path, self.table, data, row_hashes=row_hashes, warnings=warnings, **notes)

    @cached_property
    def events_by_cause(self) -> dict[str, Target]:
        """Events and times by cause in words, an empty text if there is one event only."""
        if not self.table.columns.causes:
            return {"": parse_target(self.table.y)}
        target, names = parse_competing_target(self.table.y), cause_names(self.table.y)
        causes = range(1, target.n_causes + 1)
        return {cause_in_words(cause, names): target.of_cause(cause) for cause in causes}

    @property
    def unpenalised(self) -> bool:
        """Whether the model is linear, with coefficients that no penalty keeps finite."""
        penalty = getattr(self.estimator, "l2_", getattr(self.estimator, "l2", 0.0))
        return hasattr(self.estimator, "coef_") and not penalty > 0

    @cached_property
    def levels_without_events(self) -> dict[str, list[str]]:
        """Levels without any event, by cause in words: their unpenalised coefficients are infinite."""
        found: dict[str, list[str]] = {}
        for cause, target in self.events_by_cause.items():
            for column in self.encoder.columns_:
                if not isinstance(column, CategoryColumn):
                    continue
                events = pd.Series(target.event).groupby(labels(self.table.X[column.name]).to_numpy())
                for level, own in events:
                    if not own.any():
                        named = f"{column.name}={level} ({counted(len(own), 'patient')})"
                        found.setdefault(cause, []).append(named)
        return found

    @property
    def without_events(self) -> str:
        """Says for each cause nobody of which levels had the event; an empty text if there are none."""
        return ", ".join(
            f"nobody with {listing(levels, 3)} had {f'an event of {cause}' if cause else 'the event'}"
            for cause, levels in self.levels_without_events.items()
        )

    @property
    def is_plain(self) -> bool:
        """Whether the model is plain Cox."""
        return is_plain_cox(self.estimator)

    @cached_property
    def plain_cox(self) -> CoxPH:
        """Plain Cox on the same patients and features: the model itself if it is plain Cox, else fitted here."""
        estimator = self.estimator
        if self.is_plain and estimator._uses_convex and "strata" not in self.observed:
            return cast(CoxPH, estimator)
        return self.fit_plain_cox(with_fields(self.table.y, entry=self.table.entry))

    def fit_plain_cox(self, y: NDArray[Any], strata: Any = None) -> CoxPH:
        """Fit plain Cox to the same patients and features."""
        with warnings.catch_warnings(action="ignore"):
            # The model has given the same warnings.
            return plain_cox(self.estimator).fit(self._features, y, strata=strata)

    def summary(self) -> dict[str, Any]:
        """Return a summary of the model in numbers and words."""
        columns = self.table.columns
        event = "any cause" if columns.causes else repr(columns.event_value)
        return {
            "estimator": type(self.estimator).__name__,
            "parameters": readable_parameters(self.estimator),
            "event": f"{event} of column {columns.event!r}",
            "time": columns.time_in_words,
            "patients": self.estimator.n_patients_,
            "events": np.sum(self.estimator.n_events_).item(),
            "objective": getattr(self.estimator, "objective_", None),
            "status": getattr(self.estimator, "status_", "solved")
            + (", but for levels without events" if self.unpenalised and self.levels_without_events else ""),
            "recalibration": getattr(self.estimator, "recalibration_", None),
            "coefficients": _coefficients(self.estimator),
        }


def fingerprint(path: Path) -> str:
    """Return the SHA-256 of a file, by which a model's training file is recognised."""
    return sha256(path.read_bytes()).hexdigest()


def is_plain_cox(model: Any) -> bool:
    """Whether an estimator is plain Cox, without penalty, network or recalibration."""
    return (
        type(model) is CoxPH
        and model.network == "linear"
        and model.l2 == 0
        and not hasattr(model, "recalibration_")
    )


def save_with_notes(
    model: Any,
    path: Path,
    table: SurvivalTable,
    data: Path,
    *,
    row_hashes: bool = True,
    warnings: Sequence[Mapping[str, str]] = (),
    **notes: Any,
) -> None:
    """Write a model to a file that every command reads.

    The file also holds the columns of the target, the fingerprint of the file `data`, hashes of the training rows
    unless `row_hashes` is False, the `warnings` of training, as :func:`drosurv.errors.as_records` returns them, and
    further `notes`.
    """
    target = {name: value for name, value in asdict(table.columns).items() if value}
    notes = {**given_arguments(id=table.id, clusters=table.clusters), **notes}
    notes = {"target": target, "trained_on": fingerprint(data), "warnings": list(warnings), **notes}
    if row_hashes:
        rows = table.as_read
        notes["row_hashes"] = RowHashes.of(rows.X[columns_used(model)], rows.y).to_dict()
    save(model, path, notes=notes)


def train(
    table: SurvivalTable,
    estimator: Any,
    *,
    categorical: Sequence[str] = (),
    unseen: str = "reference",
    observed: Mapping[str, str] | None = None,
    bootstrap: int = 0,
    verbose: bool = False,
    reference: Mapping[str, str] | None = None,
    keep_columns: Sequence[str] = (),
) -> Trained:
    """Train a model on a table; groups of the table are used by estimators that are trained with groups.

    `categorical`, `unseen` and `reference` are as in :class:`TableEncoder`; columns of numbers that define groups are
    categories. `observed` maps arguments of ``fit`` (``strata``, ``clusters``, ``id``) to columns. `bootstrap` is the
    number of refits for the standard errors of the model's ``summary``. A column that gives the outcome away is an
    error, unless it is among `keep_columns`, the columns that are known when a prediction is made. All rows (entry,
    time] of a patient are used, with the values of the first row.
    """
    named = observed or {}
    table = table.at_first_rows(*(column for role, column in named.items() if role == "strata"))
    refuse_leaks(table, keep_columns)
    encoder = table_encoder(table, categorical, unseen, reference, keep_columns)
    repaired = isinstance(estimator, RepairedCox)
    has_verbose = "verbose" in estimator.get_params()
    if has_verbose:
        estimator.set_params(verbose=verbose)
    options = fit_options(estimator, table)
    if table.codes and "sensitive_features" not in options:
        warn_caller(
            f"{listing(list(table.codes))} define groups, and are taken as categories.", category=TableNote
        )
    if "strata" in named:
        if "strata" not in signature(estimator.fit).parameters:
            who = type(estimator).__name__
            raise ArgumentError(
                "strata", f"{who} does not support {arg('strata')}: leave it out, or choose another model."
            )
        options["strata"] = table.frame[named["strata"]]
    y, known = with_fields(table.y, entry=table.entry), table.trained_y
    y = with_fields(y, **{name: y_field(known, name) for name in ("id", "clusters") if name in named})
    if bootstrap and (repaired or not hasattr(estimator, "summary")):
        raise ArgumentError(
            "bootstrap",
            f"{arg('bootstrap')} has no meaning for {type(estimator).__name__}, whose coefficients have no standard "
            "errors.",
        )
    if repaired:
        X, base = readable_and_base(table, encoder, estimator._base())
        model = estimator.set_params(base=base).fit(X, y, **options)
    else:
        model = Pipeline([("table", encoder), ("model", estimator)])
        model.fit(table.X, y, **{f"model__{name}": values for name, values in options.items()})
    if bootstrap:
        estimator.summary(method="bootstrap", n_bootstrap=bootstrap)
    if has_verbose:
        estimator.set_params(verbose=False)
    _warn_of_few_events(estimator, len(encoder.get_feature_names_out()))
    _warn_of_coarse_times(estimator, table)
    trained = Trained(model, encoder, table, y, options, named)
    if trained.unpenalised and trained.without_events:
        warn_caller(
            f"{trained.without_events}, so the model predicts that such patients never have it. Merge levels, or use "
            f"a penalty such as {arg('l2', 0.1)}."
        )
    _warn_of_design(trained)
    return trained


def _warn_of_design(trained: Trained) -> None:
    """Warn of features whose coefficients the data do not determine, before a table of coefficients shows them."""
    table, names = trained.table, trained.encoder.get_feature_names_out()
    if len(names) > MOST_TESTED or (table.columns.causes and not trained.unpenalised):
        return
    X, said = np.asarray(trained._features, dtype=np.float64), set[str]()
    for cause, target in trained.events_by_cause.items():
        found = check_design(X, target, list(names))
        # Another warning already names levels without events.
        named = trained.unpenalised and cause in trained.levels_without_events
        separating = () if named else found.separating
        separating = tuple(f"{name} for {cause}" if cause else name for name in separating)
        for sentence in replace(found, separating=separating).warnings:
            if sentence not in said:
                warn_caller(sentence)
            said.add(sentence)


def plain_cox_table(trained: Trained) -> tuple[CoxTable | None, str]:
    """Return the coefficients of plain Cox per unit, and a sentence on the test of proportional hazards.

    Plain Cox is fitted to the same patients as the model, with their entry times, strata and clusters. None if events
    have several causes.
    """
    table, n_features = trained.table, len(trained.encoder.get_feature_names_out())
    if table.columns.causes:
        return None, f"{UNTESTED}events have several causes."
    y, strata = table.trained_y, trained.fit_options.get("strata")
    if trained.is_plain and isinstance(trained.model, Pipeline):
        cox = trained.estimator
    else:
        alone = strata is None and set(field_names(y)[2:]) <= {"entry"}
        cox = trained.plain_cox if alone else trained.fit_plain_cox(y, strata)
    with warnings.catch_warnings(action="ignore"):
        found = summary(Pipeline([("table", trained.encoder), ("cox", cox)]))
    found.caption = sized("Plain Cox", *found.counts)
    if takes_long(len(table), n_features):
        return found, f"{UNTESTED}{counted(n_features, 'feature')} of {len(table):,} patients take too long."
    if not cox.converged_:
        return found, f"{UNTESTED}plain Cox has no optimum ({cox.status_})."
    with warnings.catch_warnings(action="ignore"):
        return found, cox.check_proportional_hazards().sentence()


def refuse_leaks(table: SurvivalTable, keep_columns: Sequence[str] = ()) -> None:
    """Raise if columns that are not in `keep_columns` give the outcome away; :func:`drosurv.check` leaves them out."""
    # Numbers of rows are no features, and rise with the time in a table that is sorted by it.
    others = {*keep_columns, *names_of_rows(table.X)}
    used = [name for name in table.X if name not in others]
    X = table.X[used]
    named = [
        f"column {name!r} may give the outcome away ({reason})"
        for name, reason in find_leaks(X, table.y, table.entry).items()
    ]
    if named:
        raise ArgumentError(
            "drop",
            f"{listing(named)}. If a column is not known when a prediction is made, name it in {arg('drop')}; if it is "
            f"known, name it in {arg('keep_columns')}.",
        )


def table_encoder(
    table: SurvivalTable,
    categorical: Sequence[str],
    unseen: str = "reference",
    reference: Mapping[str, str] | None = None,
    keep_columns: Sequence[str] = (),
) -> TableEncoder:
    """Return an unfitted encoder for a table; columns of numbers that define groups are categories."""
    codes = [name for name in [*categorical, *(reference or {}), *table.codes] if name in table.X.columns]
    return TableEncoder(
        categorical=tuple(dict.fromkeys(codes)),
        unseen=unseen,
        reference=reference,
        keep_columns=tuple(keep_columns),
    )


def readable_and_base(
    table: SurvivalTable, encoder: TableEncoder, estimator: Any
) -> tuple[pd.DataFrame, Pipeline]:
    """Return the columns that rules may use, and a Pipeline of an encoder and the estimator.

    Columns that the encoder leaves out, because they number the rows or are constant, are left out here too.
    """
    X = table.X[encoder.fit(table.X).used_]
    codes = [name for name in encoder.categorical if name in X]
    encoder = clone(encoder).set_params(categorical=codes)
    return X, Pipeline([("table", encoder), ("model", estimator)])


def fit_options(estimator: Any, table: SurvivalTable) -> dict[str, Any]:
    """Return the arguments of ``fit`` besides features and target: groups, if the table has them."""
    options: dict[str, Any] = {}
    if getattr(estimator, "_compares_groups", None) is not None and table.groups is not None:
        options["sensitive_features"] = table.groups
    return options


def audit_folds(table: SurvivalTable, folds: int | None, seed: int = 0) -> Any:
    """Return the argument `folds` of :func:`drosurv.audit` for a table."""
    # Rows that are intervals of a patient's time become one row per patient, of which folds are drawn.
    intervals = table.entry is not None and table.id is not None
    if folds is None or intervals:
        return folds
    return fold_parts(table.event, folds, seed, table.together, table.order)


def _warn_of_few_events(estimator: Any, n_features: int) -> None:
    events = np.min(estimator.n_events_).item()
    if events < EVENTS_PER_FEATURE * n_features and hasattr(estimator, "l2"):
        warn_caller(
            f"{counted(events, 'event')} for {counted(n_features, 'feature')}, fewer than {EVENTS_PER_FEATURE} for "
            "each: coefficients are unstable and predicted risks too extreme. Use fewer columns, or a penalty such as "
            f"{arg('l2', 0.1)}."
        )


def _warn_of_coarse_times(estimator: Any, table: SurvivalTable) -> None:
    """Warn if Breslow's curves, exp(-H), are too high because many events share a time; Efron's are not."""
    able = getattr(estimator, "capabilities", None)
    may_be_efron = getattr(estimator, "ties", "") == "breslow" and not (able is not None and able.no_ties)
    if not may_be_efron or table.columns.causes or table.entry is not None:
        return
    known = KaplanMeier.of(parse_target(table.y))
    above = np.exp(-np.cumsum(known.events / known.at_risk)) - known.survival
    too_high = above.max(where=known.at_risk >= _FEWEST_AT_RISK, initial=0.0)
    if too_high >= _TOO_HIGH:
        warn_caller(
            f"many events share a time: predicted survival is up to {100 * too_high:.0f} percentage points too high. "
            f"Pass {arg('ties', 'efron')}."
        )


def _coefficients(estimator: Any) -> dict[str, float] | None:
    if not hasattr(estimator, "coef_"):
        return None
    by_cause, called = np.ndim(estimator.coef_) == 2, getattr(estimator, "cause_names_", ())
    # With splines a column has several features.
    splined = hasattr(estimator, "knots_")
    names = (estimator.get_feature_names_out() if splined else estimator.feature_names_in_).tolist()
    return {
        f"{cause_title(cause_label(k, called))}: {name}" if by_cause else name: value
        for k, row in enumerate(np.atleast_2d(estimator.coef_).tolist(), start=1)
        for name, value in zip(names, row, strict=True)
    }
