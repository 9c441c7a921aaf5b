"""Wilms tumour in six splits: who is repaired, and what plain, cross-validated and repaired Cox predict for them.

python -m experiments.studies.wilms        # prints the numbers and draws docs/demo.svg
"""

from __future__ import annotations

import pandas as pd

from drosurv.presentation import write_figure
from drosurv.workflows.demo import HORIZONS, WILMS, datasets, demo
from experiments.studies.pages import DOCS

SPLITS = 6
COLOURS = {"plain Cox": "#D55E00", "cross-validated Cox": "#0072B2", "repaired Cox": "#009E73"}


def splits() -> pd.DataFrame:
    """One row per split and model: the group that repair named, its risks, and gains on held-out children."""
    loaders = {WILMS: datasets()[WILMS]}
    rows = []
    for seed in range(SPLITS):
        found = demo(random_state=seed, loaders=loaders)[WILMS]
        rows.append(found.table.assign(split=seed + 1, group=found.group, n_group=found.n_group))
    return pd.concat(rows, ignore_index=True)


def draw(table: pd.DataFrame) -> None:
    """Observed risk of relapse of the repaired group and the risk that each model predicts, split by split."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    shown = table.loc[table["group"] != ""]
    observed = shown.drop_duplicates("split")
    for place, (model, colour) in enumerate(COLOURS.items()):
        rows = shown.loc[shown["model"] == model]
        axes.bar(
            rows["split"] + 0.22 * (place - 1),
            100 * rows["predicted"],
            0.2,
            color=colour,
            label=f"{model} expects",
        )
    value, low, high = (100 * observed[name] for name in ("observed", "low", "high"))
    axes.errorbar(
        observed["split"],
        value,
        yerr=[value - low, high - value],
        fmt="_",
        color="black",
        markersize=40,
        markeredgewidth=2,
        capsize=4,
        label="observed (95 % interval)",
    )
    labels = [f"{row.group}\n{row.n_group} children" for row in observed.itertuples()]
    axes.set_xticks(observed["split"], labels, fontsize="small")
    axes.set(
        ylabel=f"of 100 held-out infants\nrelapse by {HORIZONS[WILMS][1]}",
        title="Wilms tumour: the group that repair names, in six splits",
    )
    figure.legend(fontsize="small", ncols=4, loc="outside lower center", markerscale=0.4)
    write_figure(figure, DOCS / "demo.svg")


if __name__ == "__main__":
    found = splits()
    print(found.round(3).to_string())
    print(found.groupby("model", sort=False)[["gain", "group_gain", "c_index"]].mean().round(4).to_string())
    draw(found)
