"""What each metric of the report is called and means, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """One metric in words.

    Attributes
    ----------
    label : str
        Its name.
    meaning : str
        What it measures and which values are good.
    """

    label: str
    meaning: str


ACCURACY = {
    "concordance_index": Wording(
        "c-index", "share of comparable pairs ranked rightly; higher is better, 0.5 is chance"
    ),
    "uno_concordance": Wording("Uno's C", "the same, corrected for censoring; higher is better"),
    "dynamic_auc": Wording("AUC over time", "events ranked above survivors at each time; higher is better"),
    "integrated_brier_score": Wording(
        "Integrated Brier score", "squared error of survival probabilities; lower is better"
    ),
    "brier_skill": Wording("Brier skill", "share of that error saved against no model; below 0 is harm"),
    "likelihood_gain": Wording("Likelihood gain", "gain per patient over no model; below 0 is harm"),
    "log_partial_likelihood": Wording("Log partial likelihood", "per event; higher is better"),
    "calibration_slope": Wording(
        "Calibration slope", "1 is right; above 1 the scores are shrunk, below 1 too extreme"
    ),
    "calibration_difference": Wording(
        "Predicted less observed survival", "at the middle time of the calibration table; 0 is right"
    ),
    "integrated_calibration_index": Wording(
        "Integrated calibration index", "mean distance of predicted from observed risk there; lower is better"
    ),
    "d_calibration_p": Wording(
        "D-calibration, p", "small values say that the survival curves are wrong as a whole"
    ),
    "share_of_gain": Wording(
        "Information kept",
        "likelihood gain over no model as a share of the reference's; near 0 the model says nothing",
    ),
}

BETWEEN_GROUPS = {
    "concordance_imparity": Wording("Concordance imparity (CI)", "difference of concordance fractions"),
    "concordance_index": Wording("Gap of c-index", "difference of the groups' own c-indices"),
    "brier_skill": Wording("Gap of Brier skill", "difference of the share of error saved"),
    "likelihood_gain": Wording("Gap of likelihood gain", "difference of the gain over no model"),
    "calibration_difference": Wording("Gap of calibration", "difference of predicted less observed survival"),
    "group_disparity": Wording(
        "Group disparity of risk (F_G)", "largest distance of a group's mean hazard from all"
    ),
}

BETWEEN_PATIENTS = {
    "intersectional_disparity": Wording(
        "Intersectional disparity of risk (F_cap)", "largest log ratio of mean hazards of two intersections"
    ),
    "individual_disparity": Wording(
        "Individual disparity of risk (F_I)",
        "mean over pairs of hazard differences that distance does not explain",
    ),
}

BETWEEN = {"intersectional_disparity": "intersections of all groups", "individual_disparity": "patients"}
