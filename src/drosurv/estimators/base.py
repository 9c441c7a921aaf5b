"""What every estimator shares: checked inputs, one way to fit, and predictions from scores and curves."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from drosurv.errors import ArgumentError
from drosurv.estimators.device import checked_tensor, on_processor, tensor_scores
from drosurv.estimators.fitted import Fitted, Solved
from drosurv.estimators.fitting import train
from drosurv.estimators.predicted_curves import PredictedCurves
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.training import Training
from drosurv.metrics import concordance_index
from drosurv.observation import with_offset
from drosurv.solvers import Solution
from drosurv.solvers.arrays import is_tensor
from drosurv.solvers.networks import network_scores, network_state
from drosurv.tables.encoder import enter
from drosurv.target import FloatArray, parse_target


class SurvivalModel(BaseEstimator):
    """A model of a survival target.

    `score_type` says what :meth:`predict` returns: "log hazard" (up to a constant), "log time" (minus the expected log
    time) or "other". Numbers that compare log hazards are defined for the first only.
    """

    score_type: ClassVar[str] = "log hazard"

    # Fitted attributes with a value for each training patient; a saved model leaves them out.
    _per_patient: ClassVar[tuple[str, ...]] = ("worst_case_weights_", "subgroup_regret_", "null_loss_")

    def __sklearn_tags__(self) -> Any:
        """Survival targets are structured arrays, which scikit-learn has no tag for."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that :func:`drosurv.load` reads; see :func:`drosurv.save`."""
        from drosurv.estimators.persistence import save

        save(self, path)


class SurvivalEstimator(PredictedCurves, SurvivalModel):
    """Base of the estimators: a subclass names its parameters and gives its recipe and schedule."""

    # What models trained together in one batch may differ in.
    _batched: ClassVar[tuple[str, ...]] = ()
    # Arguments of fit about the rows that this estimator understands.
    _observes: ClassVar[tuple[str, ...]] = ("clusters",)
    # Why it does not understand the others.
    _undefined = "its loss knows no such thing"
    # Whether training weighs patients by their losses.
    _weighs_losses = False
    # Whether the model was fitted with an offset, so that predictions need one too.
    _has_offset = False

    @abstractmethod
    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        """What is trained, for a batch of estimators like this one that differ only in ``_batched``."""

    @abstractmethod
    def _schedule(self, batch: Sequence[Self]) -> Schedule:
        """How it is trained."""

    def _check_parameters(self) -> None:
        """Raise ArgumentError for parameters that make no sense; called when fitting begins."""

    def _describe(self, fitted: Fitted) -> None:
        """Set what only this kind of model reports of its training."""
        if self._weighs_losses:
            self.worst_case_weights_ = fitted.worst_case_weights

    # Models that compare groups ask scikit-learn to route them; to the others they are not passed on.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": UNUSED}

    @property
    def _compares_groups(self) -> str | None:
        """What compares groups in training, for messages; None where nothing does."""
        return None

    def _seed(self) -> int:
        return 0

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: Any = None,
        entry: ArrayLike | None = None,
        strata: Any = None,
        clusters: Any = None,
        offset: ArrayLike | None = None,
        id: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : (n, d) array, DataFrame or torch tensor
            Features; column names are kept in ``feature_names_in_``. On a tensor, linear Cox models are solved to the
            optimum on the device where it lies. A DataFrame may hold text, categories and
            missing values: a :class:`drosurv.tables.TableEncoder`, kept as ``encoder_``, makes features of it, here
            and in prediction.
        y : structured array (n,)
            Event flag and time; see :class:`drosurv.Surv`.
        sample_weight : (n,) array, optional
            Weights; a patient of weight 2 counts as two (but two tied events differ under ``ties="efron"``).
        sensitive_features : Series, DataFrame or array (n,) or (n, J), optional
            Group labels, for models that are trained with groups; several columns define groups by their combinations.
        entry : (n,) array, optional
            Times from which the rows are under observation (left truncation): a row is at risk at t only if
            entry < t <= time.
        strata : (n,) labels, optional
            Patients are compared within their stratum, and each stratum has a baseline hazard of its own.
        clusters : (n,) labels, optional
            Members of a cluster are alike: standard errors of :meth:`summary` allow for it. Coefficients stay.
        offset : (n,) array, optional
            Added to the scores: an effect that is known.
        id : (n,) labels, optional
            Patient of each row, where features change with time: rows (entry, time] of one patient follow each other.
            Patients, not rows, are counted and weighted.

        Returns
        -------
        self
        """
        observed = {"entry": entry, "strata": strata, "clusters": clusters, "offset": offset, "id": id}
        given = {argument: value for argument, value in observed.items() if value is not None}
        training, name = self._training(X, y, sample_weight, sensitive_features), type(self).__name__
        if undefined := [argument for argument in given if argument not in self._observes]:
            raise ArgumentError(
                undefined[0],
                f"{name} has no definition for {undefined[0]}: {self._undefined}. Use CoxPH, DROCox, "
                "DROCoxSplit or RegularizedCox.",
            )
        if given:
            training = training.observed(parse_target(y), given, name=name, robust=self._weighs_losses)
        self._train(training)
        return self

    def _train(self, training: Training) -> None:
        """Become the model of the training data."""
        self._accept(self._trained(training.in_double()))

    def _trained(self, training: Training) -> Fitted:
        """A model of the training data, with these settings."""
        return train([self._recipe(training, [self])], [training], self._schedule([self]))[0][0]

    def _training(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, sensitive_features: Any = None
    ) -> Training:
        """The arguments of fit, checked."""
        self._forget_the_last_fit()
        self._check_parameters()
        self._check_groups(sensitive_features)
        X = self._features(X, y)
        given = getattr(self, "feature_names_in_", None)
        names = None if given is None else [str(name) for name in given]
        training = Training.of(X, parse_target(y), sample_weight, names=names, seed=self._seed())
        return training if sensitive_features is None else training.with_groups(sensitive_features)

    def _forget_the_last_fit(self) -> None:
        """The last fit may have been of another network. A fit that fails leaves no model behind."""
        for earlier in ("coef_", "network_", "recalibration_", "_baseline", "_kept_training", "_findings"):
            self.__dict__.pop(earlier, None)

    def _share_checks(self, other: Self) -> None:
        """Be ready for training data that another estimator of the same class and settings has checked."""
        self._forget_the_last_fit()
        self._check_parameters()
        for name in ("n_features_in_", "feature_names_in_", "encoder_"):
            self.__dict__.pop(name, None)
            if name in other.__dict__:
                setattr(self, name, getattr(other, name))

    def _check_groups(self, sensitive_features: Any) -> None:
        """Groups are given where training compares them, and only there: nobody is to believe that they had a part."""
        groups, needed_by = "sensitive_features", self._compares_groups
        if needed_by is None and sensitive_features is not None:
            raise ArgumentError(
                "sensitive_features",
                f"{groups} would have no part in {type(self).__name__}, which compares no groups as it is set: leave "
                "it out, or use GroupDROCox.",
            )
        if needed_by is not None and sensitive_features is None:
            raise ArgumentError(
                "sensitive_features",
                f"{needed_by} compares groups: pass {groups} to fit (one label per patient).",
            )

    def _features(self, X: Any, y: Any) -> Any:
        """The features that are trained on, checked."""
        given = on_processor(X, type(self).__name__) if is_tensor(X) else enter(self, X, y, fit=True)
        return validate_data(self, given, dtype=np.float64, ensure_min_samples=2)

    def _accept(self, fitted: Fitted) -> None:
        """Become the trained model."""
        if isinstance(fitted.network, np.ndarray):
            self.coef_: FloatArray = fitted.network
        else:
            self.network_ = fitted.network
        self._tell_training(fitted, fitted.objective)
        training = fitted.training
        self.n_patients_, self.n_events_ = training.n_patients, training.n_events
        self.follow_up_ = training.follow_up
        self._has_offset = training.observation.offset is not None
        self._describe(fitted)
        self._baseline = fitted.recipe.curves(training, fitted.scores, fitted.extra)

    def _tell_training(self, found: Solved | Solution, objective: float) -> None:
        """Set how training ended."""
        self.n_iter_, self.status_, self.gap_ = found.n_iter, found.status, found.gap
        self.converged_ = found.status in ("converged", "steps_done", "stopped_early")
        self.history_, self.objective_ = found.history, objective

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit has ended. The features' names and number are set before that, so they cannot tell."""
        return hasattr(self, "_baseline")

    @property
    def _fitted_with(self) -> tuple[str, ...]:
        """What predictions need besides features."""
        told = {"strata": self._baseline.strata, "offset": self._has_offset}
        return tuple(name for name, given in told.items() if given)

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Log risk (n,) of each patient; higher means sooner.

        Parameters
        ----------
        X : (n, d) array, DataFrame or torch tensor
        offset : (n,) array, optional
            Known effects, for a model that was fitted with them; zeros for none.
        """
        check_is_fitted(self)
        if is_tensor(X) and hasattr(self, "coef_"):
            scores = tensor_scores(self.coef_, checked_tensor(self, X, fit=False))
        else:
            features = self._new_features(X)
            network = self.coef_ if hasattr(self, "coef_") else self.network_
            # Coefficients hold their factor already.
            factor = 1.0 if hasattr(self, "coef_") else getattr(self, "recalibration_", 1.0)
            scores = network_scores(network, features) * factor
        return with_offset(scores, offset, fitted_with=self._has_offset)

    def _new_features(self, X: Any) -> FloatArray:
        """Features (n, d) of patients to predict for."""
        check_is_fitted(self)
        given = on_processor(X, type(self).__name__) if is_tensor(X) else enter(self, X)
        features: FloatArray = validate_data(self, given, dtype=np.float64, reset=False)
        return features

    def score(self, X: Any, y: Any, *, entry: Any = None, strata: Any = None, offset: Any = None) -> float:
        """Harrell's c-index of the predicted risks, among those at risk in one stratum where these are given."""
        return float(concordance_index(y, self.predict(X, offset=offset), entry=entry, strata=strata))

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and fitted attributes, a network as plain arrays, which can be saved in any way."""
        state = dict(super().__getstate__())
        if "network_" in state:
            state["network_"] = network_state(state["network_"])
        return state
