"""What every model of this package is to scikit-learn, and how it is saved."""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import BaseEstimator


class SurvivalModel(BaseEstimator):
    """A model of a survival target."""

    def __sklearn_tags__(self) -> Any:
        """Survival targets are structured arrays, which scikit-learn has no tag for."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that :func:`drosurv.load` reads; see :func:`drosurv.save`."""
        from drosurv.persistence import save

        save(self, path)
