"""Table 1: what the datasets look like."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from drosurv.datasets.dataset import Dataset
from drosurv.paper.plan import DATASET_LABELS
from drosurv.presentation import Table

# As printed: samples, features, censoring rate.
PUBLISHED_CHARACTERISTICS = {
    "flc": (7874, 6, 0.725),
    "support": (9105, 14, 0.319),
    "seer": (4024, 13, 0.847),
}


def characteristics(datasets: Iterable[Dataset]) -> pd.DataFrame:
    """Samples, features, censoring rate and sensitive attributes of each dataset before splitting.

    The first three also as published, with the prefix ``published_``.
    """
    records = []
    for dataset in datasets:
        samples, features, censoring = PUBLISHED_CHARACTERISTICS[dataset.name]
        records.append(
            {
                "dataset": dataset.name,
                "samples": len(dataset),
                "published_samples": samples,
                "features": dataset.X.shape[1],
                "published_features": features,
                "censoring": dataset.censoring,
                "published_censoring": censoring,
                "sensitive_attributes": ", ".join(map(str, dataset.sensitive_features.columns)),
            }
        )
    return pd.DataFrame(records)


def characteristics_table(frame: pd.DataFrame) -> Table:
    """Table 1, ours / published, from :func:`characteristics`."""
    header = ("dataset", "sensitive attributes", "samples", "features", "censoring rate")
    rows = tuple(
        (
            DATASET_LABELS[row["dataset"]],
            row["sensitive_attributes"],
            f"{row['samples']:,} / {row['published_samples']:,}",
            f"{row['features']} / {row['published_features']}",
            f"{row['censoring']:.3f} / {row['published_censoring']:.3f}",
        )
        for row in frame.to_dict("records")
    )
    return Table.of_markdown("Basic dataset characteristics", header, rows, ("Ours / published.",))
