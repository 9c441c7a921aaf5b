"""Whether hazards are proportional among the scored patients, as a linear Cox model takes them to be."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from drosurv.estimators import CoxPH
from drosurv.evaluation.predictions import final_step, prepared, unwrapped
from drosurv.presentation import Statement
from drosurv.solvers.arrays import on_host
from drosurv.tables.encoder import enter
from drosurv.target import Target

# The test costs n d^2 and d^4; beyond this it is left to check_proportional_hazards.
_MOST_FEATURES = 60
_MOST_WORK = 1e9


def hazards_statement(
    model: Any, X: Any, target: Target, given: dict[str, Any], level: float
) -> tuple[Statement, ...]:
    """A sentence on features whose effect changes with time; nothing where none does, or the model is not linear Cox.

    Plain Cox is fitted to the scored patients and tested there, so that a model's training data are not needed and an
    overfitted model is not held against hazards. The patients' entry times, strata and offset may be given.
    """
    final = final_step(model)
    is_cox = hasattr(final, "check_proportional_hazards") and not final._own_curves
    if X is None or not is_cox or np.ndim(getattr(final, "coef_", 0)) != 1:
        return ()
    d = len(final.coef_)
    if d > _MOST_FEATURES or len(target) * d**2 > _MOST_WORK or target.n_events < 10 * d:
        return ()
    with warnings.catch_warnings(action="ignore"):
        # A fit of tensors keeps no residuals to test.
        features = on_host(enter(final, prepared(model, X)))
        if isinstance(features, np.ndarray) and hasattr(unwrapped(model), "steps"):
            # Most steps lose the names of columns, but know them.
            with suppress(AttributeError, ValueError):
                features = pd.DataFrame(features, columns=unwrapped(model)[:-1].get_feature_names_out())
        cox = CoxPH().fit(features, target.to_structured(), **given)
        if not cox.converged_:
            return ()
        test = cox.check_proportional_hazards()
    return (Statement("hazards", test.sentence(1 - level), concern=True),) if test.changing(1 - level) else ()
