"""An evaluation as a Markdown document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.control import ShrinkageControl
from drosurv.presentation import literal, markdown_table, percent, with_interval, written

if TYPE_CHECKING:
    from drosurv.evaluation.result import EvaluationResult


def document(result: EvaluationResult, sentences: Sequence[str]) -> str:
    """The given sentences, then tables: overall, by attribute, calibration, shrinkage."""
    settings = result.settings
    overall = [(CATALOGUE[row.metric].label, row.text) for row in result.select(kind="overall")]
    parts = [
        f"# Evaluation of {literal(settings.model)}",
        "\n".join(f"- {literal(sentence)}" for sentence in sentences),
        "## Overall",
        markdown_table(["metric", "value"], overall),
    ]
    for attribute in result.attributes:
        parts += [f"## By {literal(attribute)}", _groups(result, attribute), _gaps(result, attribute)]
    if len(result.calibration):
        parts += ["## Calibration", _calibration(result.calibration)]
    if result.control is not None:
        parts += ["## Shrinkage control", _control(result.control, settings.reference)]
    how = (
        f"{100 * settings.level:g} % intervals from {settings.n_bootstrap:,} bootstrap replicates"
        if settings.n_bootstrap
        else "no intervals"
    )
    parts.append(
        f"_{how}; {settings.n_permutations:,} permutations; disparities in the {settings.convention} convention; "
        f"calibration at {', '.join(f'{t:g}' for t in settings.horizons)}._"
    )
    return "\n\n".join(parts) + "\n"


def _groups(result: EvaluationResult, attribute: str) -> str:
    rows = result.select(attribute=attribute, kind="group")
    metrics = list(dict.fromkeys(row.metric for row in rows))
    text = {(row.group, row.metric): row.text for row in rows}
    header = ["group", "n", "events", "censored", *(CATALOGUE[metric].label for metric in metrics)]
    return markdown_table(
        header,
        [
            (
                literal(row.group),
                f"{row.n:,}",
                f"{row.events:,}",
                percent(row.censoring),
                *(text[row.group, metric] for metric in metrics),
            )
            for row in {row.group: row for row in rows}.values()
        ],
    )


def _gaps(result: EvaluationResult, attribute: str) -> str:
    return markdown_table(
        ["gap", "between", "size", "p, on its own", "p, all attributes allowed for", "test"],
        [
            (
                CATALOGUE[row.metric].label,
                literal(row.group),
                row.text,
                written(row.p_value),
                written(row.p_adjusted),
                row.test,
            )
            for row in result.select(attribute=attribute, kind="gap")
        ],
    )


def _calibration(calibration: pd.DataFrame) -> str:
    rows = [
        (
            "everybody" if row["attribute"] == EVERYONE else literal(f"{row['attribute']} {row['group']}"),
            f"{row['horizon']:g}",
            written(row["predicted"]),
            with_interval(row["observed"], row["low"], row["high"]),
            written(row["difference"]),
            f"{row['at_risk']:,}",
        )
        for row in calibration.to_dict("records")
    ]
    return markdown_table(["who", "time", "predicted", "observed", "difference", "at risk"], rows)


def _control(control: ShrinkageControl, reference: str) -> str:
    rows = [
        (
            CATALOGUE[row["metric"]].label
            + ("" if row["attribute"] == EVERYONE else f" ({literal(row['attribute'])})"),
            *(written(row[scores]) for scores in ("model", "reference", "shrunken")),
        )
        for row in control.at_equal_gain.to_dict("records")
    ]
    header = [
        "disparity",
        "model",
        literal(reference),
        f"{literal(reference)} x {control.factor:.2f} (equal gain)",
    ]
    return markdown_table(header, rows)
