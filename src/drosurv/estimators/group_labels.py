"""Group labels at fit: whatever form they come in, one code per training patient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.base import SurvivalEstimator, fit_together
from drosurv.estimators.training import Training
from drosurv.groups import in_pandas


class ReadsGroups(SurvivalEstimator):
    """Base of estimators whose fit takes group labels."""

    @property
    def _reads_groups(self) -> bool:
        return True

    @property
    def _compares_groups(self) -> str | Argument:
        """What needs the groups, for messages."""
        return type(self).__name__

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
        X, y, sample_weight, entry, strata, clusters, offset, id
            As in :meth:`drosurv.CoxPH.fit`.
        sensitive_features : Series, DataFrame or array (n,) or (n, J), optional
            Group labels; several columns define groups by their combinations.

        Returns
        -------
        self
        """
        observed = {"entry": entry, "strata": strata, "clusters": clusters, "offset": offset, "id": id}
        training = self._training(X, y, sample_weight, sensitive_features)
        fit_together([[self]], [self._observed(training, y, observed)])
        return self

    def _training(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, sensitive_features: Any = None
    ) -> Training:
        training = super()._training(X, y, sample_weight)
        if not self._reads_groups:
            return training
        if sensitive_features is None:
            raise ArgumentError(
                self._compares_groups,
                " compares groups: pass ",
                Argument("sensitive_features"),
                " to fit (one label per patient).",
            )
        return with_groups(training, sensitive_features)


def with_groups(training: Training, sensitive_features: Any) -> Training:
    """Add group codes to the training data; several columns define groups by their combinations.

    A missing label is a group of its own.
    """
    import pandas as pd

    try:
        labels = pd.DataFrame(in_pandas(sensitive_features))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "sensitive_features must be a Series, a DataFrame or an array (n,) or (n, J) of labels, got "
            f"{type(sensitive_features).__name__}: {error}"
        ) from error
    if labels.shape[1] == 0:
        raise ValueError("sensitive_features has no column; pass at least one label per patient.")
    if len(labels) != training.n_rows:
        raise ValueError(
            f"sensitive_features must have one row per patient, got {len(labels)} rows for {training.n_rows} patients."
        )
    # By position: names may repeat.
    columns = [
        pd.factorize(labels.iloc[:, j].astype(object), use_na_sentinel=False)[0]
        for j in range(labels.shape[1])
    ]
    _, codes = np.unique(np.stack(columns), axis=1, return_inverse=True)
    kept = np.asarray(codes).reshape(-1)[training.kept]
    _, codes = np.unique(kept, return_inverse=True)
    return replace(training, codes=codes.astype(np.intp), n_groups=int(codes.max()) + 1)
