"""Group labels at fit: whatever form they come in, one code per training patient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drosurv.estimators.base import Training


def with_groups(training: Training, sensitive_features: Any) -> Training:
    """Add group codes to the training data; several columns define groups by their combinations.

    A missing label is a group of its own.
    """
    import pandas as pd

    labels = pd.DataFrame(sensitive_features).reset_index(drop=True)
    if len(labels) != training.n_rows:
        raise ValueError(
            f"sensitive_features must have one row per patient, got {len(labels)} rows for {training.n_rows} patients."
        )
    columns = [pd.factorize(labels[name].astype(object), use_na_sentinel=False)[0] for name in labels]
    _, codes = np.unique(np.stack(columns), axis=1, return_inverse=True)
    kept = np.asarray(codes).reshape(-1)[training.kept]
    _, codes = np.unique(kept, return_inverse=True)
    return replace(training, codes=codes.astype(np.intp), n_groups=int(codes.max()) + 1)
