"""`repair`, the function that chooses what is fitted, and repaired models of competing causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from drosurv.curves import CompetingCurves, StepCurves, SumValues, TableValues, checked_times
from drosurv.errors import (
    ArgumentError,
    ArgumentTypeError,
    arg,
    did_you_mean,
    each_warning_once,
    require,
    warn_caller,
)
from drosurv.judging.known_columns import known_columns
from drosurv.patients.observation import in_pandas
from drosurv.patients.target import (
    FloatArray,
    cause_names,
    has_causes,
    of_any_cause,
    of_events,
    parse_competing_target,
    y_field,
)
from drosurv.predictions import Predictions, as_predictions, of_causes
from drosurv.predictions.any_model import columns_used, final_step, is_score
from drosurv.presentation import cause_in_words
from drosurv.repairs.repaired_cox import RepairedCox


@each_warning_once
def repair(
    model: Any,
    X: Any,
    y: Any,
    *,
    features: Any = None,
    keep_columns: Sequence[str] = (),
    frozen: bool = False,
    strata: Any = None,
    offset: Any = None,
    cause: int | str | None = None,
    **options: Any,
) -> RepairedCox:
    """Find the subgroups a survival model is wrong about, and correct it there.

    Parameters
    ----------
    model : estimator, None, Predictions, or a pair (times, survival)
        With ``frozen=False`` an unfitted estimator, or None as ``base`` of :class:`drosurv.RepairedCox`; it is fitted
        on all patients, and in folds to estimate its errors. With ``frozen=True`` a fitted model, which is not
        refitted. Predictions, such as survival probabilities (n, m) at m increasing times, and a
        :class:`drosurv.PublishedCox` are always frozen. A frozen model must have been trained on other patients.
    X : (n, d) array or DataFrame
        Features, as the model takes them.
    y : structured array (n,)
        Event flag and time; see :class:`drosurv.Surv`. With causes, name one as `cause`. Further fields are as in
        :meth:`drosurv.RepairedCox.fit`; a frozen model is repaired without weights, and several rows of a patient
        without entry times are a cluster.
    features : (n, d') DataFrame, optional
        Columns that rules may use, in units a reader knows; ``X`` by default. If given, a frozen model is corrected by
        no other columns of X than these and its own.
    keep_columns : sequence of str
        Columns that are known when a prediction is made although they look like the outcome. Others that look like it
        are not used to correct the model.
    frozen : bool
        Whether the model is fitted already and not refitted. Then the probability of a false repair is bounded for any
        data: see the guide on repairs.
    strata, offset
        Not supported, see :meth:`drosurv.RepairedCox.fit`.
    cause : int or str, optional
        One of several causes, whose hazards are repaired: of a fitted model of causes, or of predicted incidences of
        all causes. The result predicts incidences of all causes.
    **options
        Parameters of :class:`drosurv.RepairedCox`, such as ``max_repairs`` or ``random_state``.

    Returns
    -------
    RepairedCox
        Fitted. If only predictions were given, use its ``correct``.

    Examples
    --------
    A model trained in one hospital, repaired with patients of another:

    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> there = make_hidden_minority(n_samples=2000, minority=0.0, random_state=0)
    >>> here = make_hidden_minority(n_samples=2000, minority=0.3, random_state=1)
    >>> model = drosurv.CoxPH().fit(there.X, there.y)
    >>> repaired = drosurv.repair(model, here.X, here.y, frozen=True, random_state=0)
    >>> str(repaired.repairs_[-1].rule)
    'x5 > 0.54'
    """
    _check_options(options)
    known = known_columns(model, X, y, features, entry=y_field(y, "entry"), keep_columns=keep_columns)
    known.warn()
    X, features = known.X, known.features
    if frozen or isinstance(model, (Predictions, tuple)) or hasattr(model, "__array__") or is_score(model):
        refused = {"weight": y_field(y, "weight"), "strata": strata, "offset": offset}
        for name, value in refused.items():
            if value is not None:
                raise ArgumentError(
                    name,
                    f"{arg(name)} is not supported in a repair of a frozen model: leave it out.",
                )
        model, cause = of_causes(model, cause, y)
        causes = y
        if cause is None:
            kept, y = RepairedCox(**options), of_any_cause(y)
        else:
            kept = _of_cause(model, y, cause, options)
            y = of_events(y, parse_competing_target(y, complete=False).cause == cause)
        return kept._fit_frozen(model, _of_model(model, X, features), y, features, causes)
    if cause is not None or has_causes(y):
        raise ArgumentError(
            "cause",
            "with competing causes, only a fitted model or predicted incidences of all causes can be repaired: pass "
            f"one of these with frozen=True, and the cause to repair as {arg('cause')}.",
        )
    if model is not None and _is_fitted(model):
        warn_caller(
            f"{arg('model')} is fitted already, and is fitted again to these patients. To repair it as it is, pass "
            "frozen=True and patients it was not trained on.",
            argument="frozen",
        )
    return RepairedCox(base=model, **options).fit(X, y, features, strata=strata, offset=offset)


def _check_options(options: dict[str, Any]) -> None:
    """Raise for options that are not parameters of :class:`drosurv.RepairedCox`."""
    known = [one.name for one in fields(RepairedCox) if one.name != "base"]
    for name in options:
        if name not in known:
            raise ArgumentTypeError(
                name,
                f"{arg(name)} is no option of repair.{did_you_mean(name, known)} It has: {', '.join(known)}.",
            )


def _of_model(model: Any, X: Any, features: Any) -> Any:
    """Return X; if features are given, only the columns that the frozen model uses and the columns of the features."""
    X, chosen = in_pandas(X), set(getattr(in_pandas(features), "columns", ()))
    # The rules of a repaired model may use any column.
    if not isinstance(X, pd.DataFrame) or not chosen or hasattr(final_step(model), "repairs_"):
        return X
    own = {*columns_used(model, X), *chosen}
    used = [name for name in X.columns if name in own]
    return X[used] if used else X


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(final_step(model))
    except NotFittedError:
        return False
    return True


def _of_cause(model: Any, y: Any, cause: int, options: dict[str, Any]) -> RepairedCox:
    """Return the unfitted repair of one cause; raise if the hazards of the cause are not known."""
    causes = parse_competing_target(y, complete=False)
    require((causes.cause == cause).any(), "cause", "be a cause of which y has events", cause)
    given = model.incidence if isinstance(model, Predictions) else None
    if isinstance(model, (Predictions, tuple)) and len(given or ()) < causes.n_causes:
        raise ArgumentError(
            "cause",
            f"a repair of {cause_in_words(cause, cause_names(y))} needs predicted incidences of all {causes.n_causes} "
            "causes, from which its hazards follow: pass Predictions(incidence={1: ..., 2: ...}, times=...).",
        )
    return RepairedCause(cause=cause, **options)


@dataclass(eq=False, repr=False)
class RepairedCause(RepairedCox):
    """A model of competing causes, or predicted incidences, with the hazards of one cause repaired.

    Made by :func:`drosurv.repair` with a `cause`; parameters and attributes are those of
    :class:`drosurv.RepairedCox`. Events are those of the cause, and expected events its summed hazard.
    """

    cause: int = 1

    _several_causes = True

    @property
    def _cause(self) -> int:  # type: ignore[override]
        return self.cause

    @property
    def n_causes_(self) -> int:
        """Number of causes."""
        check_is_fitted(self)
        return self._n_causes

    @property
    def cause_names_(self) -> tuple[str, ...]:
        """What causes 1, 2, ... are called by the repaired model; empty if they have numbers only."""
        check_is_fitted(self)
        return tuple(getattr(final_step(self.base_), "cause_names_", ()))

    def predict(self, X: Any, features: Any = None, cause: int | None = None) -> FloatArray:  # type: ignore[override]
        """Predict the log risk (n,) of one cause, by default the repaired one."""
        if cause is None or cause == self.cause:
            return super().predict(X, features)
        X, _ = self._known(X, features)
        return as_predictions(self.base_, X, len(X), cause=cause).risk

    def curves_by_cause(self, X: Any, *, features: Any = None) -> CompetingCurves:
        """Return the curves of every cause and of any cause."""
        X, features = self._known(X, features)
        base = as_predictions(self.base_, X, len(X)).competing
        assert base is not None
        times = base.any_cause.times
        assert times is not None
        survival = super()._values(X, features, times, survival=True)
        causes = list(base.causes)
        own = causes[self.cause - 1]
        causes[self.cause - 1] = replace(own, values=TableValues(times, survival), times=times, rows=None)
        total = replace(base.any_cause, values=SumValues(tuple(curves.values for curves in causes)))
        return CompetingCurves(tuple(causes), total)

    def predict_cumulative_incidence(
        self, X: Any, times: ArrayLike | None = None, cause: int | None = None, *, features: Any = None
    ) -> FloatArray:
        """Return the cumulative incidence (n, T) of one cause, by default the repaired one."""
        at = self._curve_times if times is None else checked_times(times)
        return self.curves_by_cause(X, features=features).incidence(cause or self.cause, at)

    def _values(self, X: Any, features: Any, at: FloatArray, *, survival: bool) -> FloatArray:
        """Return survival (n, T) without an event of any cause, or cumulative hazards."""
        total = self.curves_by_cause(X, features=features).any_cause
        return total.survival(at) if survival else total.cumulative_hazard(at)

    def correct(self, predictions: Any, X: Any, features: Any = None) -> Predictions:  # type: ignore[override]
        """Repair predicted incidences of all causes at m times; return those of all causes.

        The incidences of the other causes change too, because more or fewer patients are left to have them.
        """
        given = as_predictions(predictions, None, len(X), name="predictions")
        if given.given is None or given.competing is None:
            raise ArgumentError.must("predictions", "hold incidences of all causes at times", predictions)
        times = np.asarray(given.given.times, dtype=np.float64)
        survival = super().correct(predictions, X, features)
        assert given.given.incidence is not None
        tables = {k: np.asarray(F, dtype=np.float64) for k, F in given.given.incidence.items()}
        causes = list(CompetingCurves.of_incidences(times, tables, between=True).causes)
        causes[self.cause - 1] = replace(causes[self.cause - 1], values=TableValues(times, survival))
        total = StepCurves(
            SumValues(tuple(curves.values for curves in causes)), times, times[-1], own_hazard=True
        )
        together = CompetingCurves(tuple(causes), total)
        found = {k: together.incidence(k, times) for k in tables}
        return replace(given.given, risk=None, incidence=found, survival=total.survival(times))
