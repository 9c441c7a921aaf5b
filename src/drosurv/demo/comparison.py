"""Several models trained on the same patients and compared on the same others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from drosurv.datasets import Dataset, load_flc, split
from drosurv.estimators import CoxPH, DROCox, DROCoxSplit, SubgroupRobustCox
from drosurv.metrics import (
    calibration_slope,
    concordance_imparity_intervals,
    concordance_index,
    integrated_brier_score,
    share_of_gain,
)
from drosurv.tables import TableEncoder
from drosurv.target import FloatArray, parse_target


@dataclass(frozen=True, eq=False)
class Comparison:
    """What became of a comparison.

    Attributes
    ----------
    table : DataFrame
        One row per model, every number but the last two on patients not trained on: ``c_index``; ``ibs``;
        ``worst_case_loss``, the chi-square robust objective at ``alpha``; ``worst_group`` of all attributes with its
        ``worst_group_c_index``; concordance ``imparity`` between the groups of ``attribute`` with the ends
        ``imparity_low`` and ``imparity_high`` of its 95 % interval; ``share_of_gain``, the likelihood gained over
        no model as a share of the first model's; ``calibration_slope``; the training ``objective`` and
        the ``seconds`` it took.
    data : str
        The dataset.
    n_train, n_test : int
        Patients trained on and patients compared on.
    alpha : float
        Share of patients that the robust models protect.
    attribute : str
        Whose groups the imparity compares.
    """

    table: pd.DataFrame
    data: str
    n_train: int
    n_test: int
    alpha: float
    attribute: str


def contenders(alpha: float) -> dict[str, Any]:
    """The models of the demonstration, plain Cox first, by the name that tables show."""
    return {
        "Cox": CoxPH(),
        "DRO-COX": DROCox(alpha=alpha),
        "DRO-COX CVaR": DROCox(alpha=alpha, ball="cvar"),
        "DRO-COX split": DROCoxSplit(alpha=alpha, random_state=0),
        "DRO-COX published": DROCox(alpha=alpha, ball="paper"),
        "subgroup robust": SubgroupRobustCox(alpha=alpha, random_state=0),
    }


def compare(
    data: Dataset | None = None,
    models: Mapping[str, Any] | None = None,
    *,
    alpha: float = 0.2,
    attribute: str | None = None,
    replicates: int = 500,
    random_state: int = 0,
    on_model: Callable[[str], None] | None = None,
) -> Comparison:
    """Train models on one part of a dataset and compare them on another.

    Parameters
    ----------
    data : Dataset, optional
        FLC if not given.
    models : mapping, optional
        Unfitted models by name, the reference first; :func:`contenders` if not given.
    alpha : float
        Share of patients to protect, in (0, 1].
    attribute : str, optional
        Sensitive attribute whose groups the imparity compares; the data's first if not given.
    replicates : int
        Bootstrap replicates behind the interval.
    random_state : int
        Seed of the split and of the bootstrap.
    on_model : callable, optional
        Told each model's name before it is trained.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.demo import compare
    >>> found = compare(make_hidden_minority(600, random_state=0), replicates=50)
    >>> found.table["model"].tolist()[:2], found.n_test
    (['Cox', 'DRO-COX'], 120)
    """
    data = load_flc() if data is None else data
    models = contenders(alpha) if models is None else models
    attribute = str(data.sensitive_features.columns[0]) if attribute is None else attribute
    if attribute not in data.sensitive_features:
        raise ValueError(
            f"attribute {attribute!r} is not one of {', '.join(map(str, data.sensitive_features))} of {data.name}."
        )
    train, _, test = split(data, random_state)
    encoder = TableEncoder().fit(train.X)
    X_train, X_test = encoder.transform(train.X), encoder.transform(test.X)
    rows: list[dict[str, Any]] = []
    reference: FloatArray | None = None
    for name, model in models.items():
        if on_model is not None:
            on_model(name)
        start = perf_counter()
        model.fit(X_train, train.y)
        seconds = perf_counter() - start
        risk = model.predict(X_test)
        reference = risk if reference is None else reference
        gap = concordance_imparity_intervals(
            test.y, risk, test.sensitive_features[attribute], replicates=replicates, random_state=random_state
        ).gap
        worst, worst_c = _worst_group(test, risk)
        rows.append(
            {
                "model": name,
                "c_index": concordance_index(test.y, risk),
                "ibs": integrated_brier_score(train.y, test.y, model.predict_survival_function(X_test)),
                "worst_case_loss": _worst_case_loss(test, risk, alpha),
                "worst_group": worst,
                "worst_group_c_index": worst_c,
                "imparity": gap.estimate,
                "imparity_low": gap.low,
                "imparity_high": gap.high,
                "share_of_gain": share_of_gain(test.y, risk, reference),
                "calibration_slope": calibration_slope(test.y, risk),
                "objective": model.objective_,
                "seconds": seconds,
            }
        )
    return Comparison(pd.DataFrame(rows), data.name, len(train), len(test), alpha, attribute)


def _worst_group(data: Dataset, risk: FloatArray) -> tuple[str, float]:
    """The group with the lowest c-index among the groups of every attribute."""
    found = {}
    for name, column in data.sensitive_features.items():
        for group in np.unique(column):
            members = (column == group).to_numpy()
            found[f"{name} {group}"] = concordance_index(data.y[members], risk[members])
    worst = min(found, key=lambda name: found[name])
    return worst, found[worst]


def _worst_case_loss(data: Dataset, risk: FloatArray, alpha: float) -> float:
    import torch

    from drosurv.losses import cox_partial
    from drosurv.objectives import chi_square

    target = parse_target(data.y)
    losses = cox_partial(*(torch.tensor(values) for values in (risk, target.event, target.time)))
    return float(chi_square(losses, alpha))
