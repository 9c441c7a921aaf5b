"""The shrinkage control: how much of plain Cox's gain over no model at all a setting keeps."""

from __future__ import annotations

import pandas as pd

from drosurv.metrics.partial_likelihood import kept_share

# Shown beside every table, because disparities fall when all scores are multiplied by c < 1.
SHRINKAGE = ("gain_share", "calibration_slope")
_REPEAT = ["dataset", "attribute", "repeat"]


def gain_share(grid: pd.DataFrame, *, select_on: str = "validation") -> pd.Series[float]:
    """Gain in log partial likelihood over the null model, as a share of plain Cox's; aligned with the grid.

    (LPL - LPL_0) / (LPL_cox - LPL_0) on the same patients, where LPL_0 is that of equal scores for everyone and Cox
    is at its best c-index of the same repeat on the part `select_on`. Near 0: the model says next to nothing, however
    fair it looks. Negative: worse than no model. NaN where the repeat has no Cox, or a Cox that gains nothing.
    """
    cox = grid.loc[grid["method"] == "cox"]
    judged = cox.loc[(cox["part"] == select_on) & cox["concordance_index"].notna()]
    best = judged.sort_values("concordance_index", ascending=False, kind="stable").drop_duplicates(_REPEAT)
    chosen = cox.merge(best[[*_REPEAT, "candidate"]], on=[*_REPEAT, "candidate"])
    chosen = chosen[[*_REPEAT, "part", "log_partial_likelihood"]]
    aligned = grid[[*_REPEAT, "part"]].merge(chosen, on=[*_REPEAT, "part"], how="left")
    null = grid["null_log_partial_likelihood"].to_numpy(dtype=float)
    cox_gain = aligned["log_partial_likelihood"].set_axis(grid.index) - null
    share: pd.Series[float] = kept_share(grid["log_partial_likelihood"] - null, cox_gain)
    return share
