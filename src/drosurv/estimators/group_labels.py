"""Group labels at fit: whatever form they come in, one code per training patient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.training import Training
from drosurv.groups import in_pandas

GROUPS = Argument("sensitive_features")


def with_groups(training: Training, sensitive_features: Any) -> Training:
    """Add group codes to the training data; several columns define groups by their combinations.

    A missing label is a group of its own.
    """
    try:
        labels = pd.DataFrame(in_pandas(sensitive_features))
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            GROUPS,
            " must be a Series, a DataFrame or an array (n,) or (n, J) of labels, got "
            f"{type(sensitive_features).__name__}: {error}",
        ) from error
    if labels.shape[1] == 0:
        raise ArgumentError(GROUPS, " has no column; pass at least one label per patient.")
    if len(labels) != training.n_rows:
        raise ArgumentError(
            GROUPS,
            f" must have one row per patient, got {len(labels)} rows for {training.n_rows} patients.",
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
