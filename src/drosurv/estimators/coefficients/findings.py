"""What a fitted linear model knows of its coefficients besides their values, and the table made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from drosurv.estimators.coefficients.table import CoxTable, cox_table
from drosurv.presentation import counted, p_text, written
from drosurv.target import BoolArray, FloatArray

# So many coefficients, or features of the worst case, are told in words.
_TOLD = 3
# Where standard errors come from.
ORIGIN = {
    "information": "Standard errors from the observed information.",
    "sandwich": "Robust standard errors (sandwich).",
}


@dataclass(frozen=True, eq=False)
class BesidePlain:
    """Plain Cox on the patients of a robust model: its coefficients (d,), and means and deviations of the features.

    Means also under the worst-case weights; None for a model without a worst case.
    """

    coef: FloatArray
    mean: FloatArray
    deviation: FloatArray
    worst_mean: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray, share: FloatArray, coef: FloatArray, worst: FloatArray | None) -> BesidePlain:
        """Of plain Cox's coefficients; shares (n,) and worst-case weights (n,) of the patients sum to one."""
        mean = share @ X
        return cls(coef, mean, np.sqrt(share @ (X - mean) ** 2), None if worst is None else worst @ X)


@dataclass(frozen=True, eq=False)
class Findings:
    """Numbers about the coefficients of one fit, on the units it was trained on; no number of a single patient.

    Rows and clusters, which may be patients, are counted where fit was told of clusters. The covariances (d, d) of the
    coefficients are kept by method ("information", "sandwich", "bootstrap"), as far as they were computed; `n_boot`
    refits are behind the last. Of plain Cox there are the log partial likelihoods without and with its features, how it
    treats tied event times (`ties`, empty where there are none), which coefficients (d,) the likelihood drives to
    infinity (`endless`), and how many features data tell apart (`degrees`, None of coefficients that l2 shrinks). Of a
    robust model there is plain Cox.
    """

    n_patients: float
    n_events: float
    covariances: dict[str, FloatArray]
    n_boot: int = 0
    log_likelihoods: tuple[float, float] | None = None
    plain: BesidePlain | None = None
    endless: BoolArray | None = None
    degrees: int | None = None
    ties: str = ""
    n_rows: int = 0
    n_clusters: int = 0

    def with_bootstrap(self, draws: FloatArray) -> Findings:
        """The same with the covariance of coefficients (R, d) of refits."""
        known = {**self.covariances, "bootstrap": np.atleast_2d(np.cov(draws, rowvar=False))}
        return replace(self, covariances=known, n_boot=len(draws))

    @property
    def counted(self) -> str:
        """How many patients there are, and how many rows where these are more."""
        who = f"{self.n_patients:,g} patients"
        if self.n_clusters == self.n_rows:
            return who
        if self.n_patients == self.n_clusters:
            return f"{self.n_rows:,} rows of {who}"
        return f"{self.n_rows:,} rows in {self.n_clusters:,} clusters"


def findings_table(
    title: str,
    names: Sequence[str],
    coef: FloatArray,
    findings: Findings,
    method: str | None,
    level: float = 0.95,
    scale: FloatArray | None = None,
    ratio: str = "hazard ratio",
) -> CoxTable:
    """The Cox table of a fit, with the notes a reader needs.

    `names`, `coef` (d,) and `scale` (d,) are of the features; the last is what they were divided by before training:
    the table speaks of them as they were. `method` is where standard errors come from; None leaves them out. `ratio` is
    what exp(coef) is.
    """
    scale = np.ones(len(coef)) if scale is None else scale
    error = np.full(len(coef), np.nan) if method is None else np.sqrt(np.diag(findings.covariances[method]))
    plain = findings.plain
    notes = [_origin(title, method, findings)]
    if np.isnan(error).any() and method is not None:
        lost = [name for name, own in zip(names, error, strict=True) if np.isnan(own)]
        notes.append(
            f"{', '.join(lost)}: no standard error, as the other features determine these, or patients at risk "
            "together do not differ in them. Leave one of each such set out: of nested categories, the wider."
        )
    if findings.endless is not None and findings.endless.any():
        lost = [name for name, own in zip(names, findings.endless, strict=True) if own]
        notes.append(
            f"{', '.join(lost)}: may be infinite, such as where no patient of a category had the event. The hazard "
            "ratio and its interval mean nothing: leave it out, merge categories, or set l2 > 0."
        )
    if findings.ties == "breslow":
        notes.append(
            'Tied event times after Breslow. R and lifelines follow Efron: ties="efron" in Python, '
            "`--set ties=efron` of `drosurv fit`."
        )
    if findings.log_likelihoods is not None:
        notes.append(_likelihood_ratio(*findings.log_likelihoods, findings.degrees))
        if method == "sandwich" and findings.degrees is not None:
            notes[-1] += " That test takes rows for independent, which robust standard errors do not."
    if plain is not None:
        notes += _notes_beside_plain(title, names, coef, plain, ratio)
    events = "event" if findings.n_events == 1 else "events"
    return cox_table(
        names,
        coef / scale,
        error / scale,
        level=level,
        caption=f"{title}: {findings.counted}, {findings.n_events:,g} {events}",
        notes=notes,
        plain_coef=None if plain is None else plain.coef / scale,
        ratio=ratio,
    )


def _origin(title: str, method: str | None, findings: Findings) -> str:
    if method is None:
        return (
            f'Standard errors of {title} need refits: ask for summary(method="bootstrap") in Python, or train with '
            "`drosurv fit ... --bootstrap 200`."
        )
    alone = " No two rows share an id or a cluster." if findings.n_rows == findings.n_clusters > 0 else ""
    if method == "bootstrap":
        return f"Standard errors from {findings.n_boot:,} refits to patients drawn with replacement."
    return ORIGIN[method] + alone if method == "information" else ORIGIN[method]


def _likelihood_ratio(null: float, fitted: float, d: int | None) -> str:
    ratio, reached = 2 * (fitted - null), f"Log partial likelihood {fitted:.2f} (without features {null:.2f})"
    if d is None:
        return f"{reached}; no likelihood ratio test, as coefficients under l2 > 0 do not maximise it."
    return (
        f"{reached}; likelihood ratio test {ratio:.2f} on {counted(d, 'degree')} of freedom, "
        f"{p_text(float(chi2.sf(ratio, d)))}."
    )


def _notes_beside_plain(
    title: str, names: Sequence[str], coef: FloatArray, plain: BesidePlain, ratio: str
) -> list[str]:
    """What such coefficients mean, which differ most from plain Cox, and whom the difference is for."""
    mean, deviation, worst_mean = plain.mean, plain.deviation, plain.worst_mean
    # A penalty, a likelihood of its own and a new slope have no worst case; at alpha = 1 all patients weigh the same.
    has_worst_case = worst_mean is not None and not np.allclose(worst_mean, mean, rtol=1e-6, atol=1e-9)
    aim = (
        f"These coefficients minimise the loss of the patients for whom {title} is worst, not the average loss."
        if has_worst_case
        else f"Plain Cox maximises the partial likelihood; {title} has a criterion of its own."
    )
    notes = [
        f"{aim} exp(coef) is the {ratio} that this model predicts with; as an estimate of the average hazard "
        "ratio take plain Cox's."
    ]
    # Per standard deviation of the feature, so that years and indicators compare.
    own, usual = coef * deviation, plain.coef * deviation
    change = own - usual
    most = [j for j in np.argsort(-np.abs(change))[:_TOLD] if change[j] != 0]
    # Another ratio differs from a hazard ratio even where the models agree.
    if most and ratio == "hazard ratio":
        told = (
            f"{names[j]} (hazard ratio {written(np.exp(usual[j]))} to {written(np.exp(own[j]))})"
            for j in most
        )
        notes.append(f"Changed most against plain Cox, per standard deviation: {', '.join(told)}.")
    if worst_mean is not None and has_worst_case:
        moved = np.divide(worst_mean - mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
        far = [j for j in np.argsort(-np.abs(moved))[:_TOLD] if abs(moved[j]) >= 0.1]
        words = [
            f"{'more' if moved[j] > 0 else 'less'} {names[j]} ({moved[j]:+.2f} standard deviations)"
            for j in far
        ]
        notes.append(
            f"The change is for patients with {', '.join(words)} than the average, whom the worst case weights most."
            if words
            else "The patients whom the worst case weights most have about average features."
        )
    return notes
