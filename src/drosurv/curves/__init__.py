"""Predicted survival curves: one protocol for those of models, arrays, step functions and formulas."""

from drosurv.curves.competing import CompetingCurves
from drosurv.curves.fitted import Baseline, FittedCurves, ScoreValues, checked_times
from drosurv.curves.step_function import StepFunction, step_functions
from drosurv.curves.survival_curves import (
    CurveType,
    PointCurves,
    SmoothCurves,
    StepCurves,
    SurvivalCurves,
    checked_total,
    curves_of_functions,
    curves_of_type,
    joined_curves,
    parse_survival,
)
from drosurv.curves.values import (
    LARGEST_HAZARD,
    CurveValues,
    ModelValues,
    SumValues,
    TableValues,
    checked_survival,
    interpolate,
    minus_log,
    rounding_unit,
    wrong_incidence,
)

__all__ = [
    "LARGEST_HAZARD",
    "Baseline",
    "CompetingCurves",
    "CurveType",
    "CurveValues",
    "FittedCurves",
    "ModelValues",
    "PointCurves",
    "ScoreValues",
    "SmoothCurves",
    "StepCurves",
    "StepFunction",
    "SumValues",
    "SurvivalCurves",
    "TableValues",
    "checked_survival",
    "checked_times",
    "checked_total",
    "curves_of_functions",
    "curves_of_type",
    "interpolate",
    "joined_curves",
    "minus_log",
    "parse_survival",
    "rounding_unit",
    "step_functions",
    "wrong_incidence",
]
