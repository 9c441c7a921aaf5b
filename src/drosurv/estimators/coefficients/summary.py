"""What is known about the coefficients of a fitted linear model, the Cox table made of it, and the bootstrap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from drosurv.estimators.coefficients.table import CoxTable, cox_table
from drosurv.metrics.inference.intervals import in_parallel, replicate_rng, seed_sequence
from drosurv.presentation import counted, p_text, written
from drosurv.presentation.progress import bar
from drosurv.target import BoolArray, FloatArray, IntArray

# Number of coefficients, or of features of the worst case, that notes mention.
_MENTIONED = 3
# Notes on the source of the standard errors.
ORIGIN = {
    "information": "Standard errors from the observed information.",
    "sandwich": "Robust standard errors (sandwich).",
}


@dataclass(frozen=True, eq=False)
class BesidePlain:
    """Plain Cox on the patients of a robust model: its coefficients (d,), and means and deviations of the features.

    `worst_mean` (d,) are the means under the worst-case weights; None for a model without a worst case.
    """

    coef: FloatArray
    mean: FloatArray
    deviation: FloatArray
    worst_mean: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray, share: FloatArray, coef: FloatArray, worst: FloatArray | None) -> BesidePlain:
        """Build it from plain Cox's coefficients; shares (n,) and worst-case weights (n,) sum to one."""
        mean = share @ X
        return cls(coef, mean, np.sqrt(share @ (X - mean) ** 2), None if worst is None else worst @ X)


@dataclass(frozen=True, eq=False)
class Findings:
    """Numbers about the coefficients of one fit, on the units of training; no number of a single patient.

    Attributes
    ----------
    n_patients, n_events : float
        Weighted numbers of patients and events.
    covariances : dict of str to (d, d) float64
        Covariances of the coefficients by method ("information", "sandwich", "bootstrap"), those computed so far.
    n_boot : int
        Refits of the bootstrap.
    log_likelihoods : pair of float, optional
        Log partial likelihoods of plain Cox without and with its features.
    plain : BesidePlain, optional
        Plain Cox on the same patients, for a robust model.
    endless : (d,) bool, optional
        Coefficients of plain Cox that have no finite maximum likelihood estimate.
    degrees : int, optional
        Number of linearly independent features of plain Cox; None with l2 > 0.
    ties : str
        How plain Cox treats tied event times; empty if there are none.
    n_rows, n_clusters : int
        Rows and clusters (or patients), if fit was given clusters or ids.
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
        """Return the findings with the covariance of coefficients (R, d) of refits."""
        known = {**self.covariances, "bootstrap": np.atleast_2d(np.cov(draws, rowvar=False))}
        return replace(self, covariances=known, n_boot=len(draws))

    @property
    def counted(self) -> str:
        """The number of patients as text, with the number of rows if it differs."""
        patients = f"{self.n_patients:,g} patients"
        if self.n_clusters == self.n_rows:
            return patients
        if self.n_patients == self.n_clusters:
            return f"{self.n_rows:,} rows of {patients}"
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
    """Return the Cox table of a fit, with notes.

    `names`, `coef` (d,) and `scale` (d,) are those of the features; features were divided by `scale` before training,
    and the table is on their units before that. `method` is the source of the standard errors, None for none. `ratio`
    names exp(coef).
    """
    scale = np.ones(len(coef)) if scale is None else scale
    error = np.full(len(coef), np.nan) if method is None else np.sqrt(np.diag(findings.covariances[method]))
    plain = findings.plain
    notes = [_origin(title, method, findings)]
    if np.isnan(error).any() and method is not None:
        lost = [name for name, value in zip(names, error, strict=True) if np.isnan(value)]
        notes.append(
            f"{', '.join(lost)}: no standard error, because other features determine these, or they do not vary among "
            "patients at risk together. Leave out one of each such set; of nested categories, the wider one."
        )
    if findings.endless is not None and findings.endless.any():
        lost = [name for name, infinite in zip(names, findings.endless, strict=True) if infinite]
        notes.append(
            f"{', '.join(lost)}: the coefficient may be infinite, as where no patient of a category had the event. The "
            "hazard ratio and its interval are not estimates: leave it out, merge categories, or set l2 > 0."
        )
    if findings.ties == "breslow":
        notes.append(
            "Tied event times by Breslow's method. R and lifelines use Efron's: ties=\"efron\" in Python, "
            "`--set ties=efron` of `drosurv fit`."
        )
    if findings.log_likelihoods is not None:
        notes.append(_likelihood_ratio(*findings.log_likelihoods, findings.degrees))
        if method == "sandwich" and findings.degrees is not None:
            notes[-1] += " That test assumes independent rows, which robust standard errors do not."
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
            f'Standard errors of {title} need a bootstrap: summary(method="bootstrap") in Python, or '
            "`drosurv fit ... --bootstrap 200`."
        )
    alone = " No two rows share an id or a cluster." if findings.n_rows == findings.n_clusters > 0 else ""
    if method == "bootstrap":
        return f"Standard errors from {findings.n_boot:,} refits to patients drawn with replacement."
    return ORIGIN[method] + alone if method == "information" else ORIGIN[method]


def _likelihood_ratio(null: float, fitted: float, d: int | None) -> str:
    ratio, reached = 2 * (fitted - null), f"Log partial likelihood {fitted:.2f} (without features {null:.2f})"
    if d is None:
        return f"{reached}; no likelihood ratio test, because coefficients with l2 > 0 do not maximise it."
    return (
        f"{reached}; likelihood ratio test {ratio:.2f} on {counted(d, 'degree')} of freedom, "
        f"{p_text(float(chi2.sf(ratio, d)))}."
    )


def _notes_beside_plain(
    title: str, names: Sequence[str], coef: FloatArray, plain: BesidePlain, ratio: str
) -> list[str]:
    """Return notes on the meaning of such coefficients, the largest differences from plain Cox, and whom they serve."""
    mean, deviation, worst_mean = plain.mean, plain.deviation, plain.worst_mean
    # Penalised and recalibrated models have no worst case; at alpha = 1 all patients have the same weight.
    has_worst_case = worst_mean is not None and not np.allclose(worst_mean, mean, rtol=1e-6, atol=1e-9)
    aim = (
        f"These coefficients minimise the loss of the patients for whom {title} is worst, not the average loss."
        if has_worst_case
        else f"Plain Cox maximises the partial likelihood; {title} minimises another criterion."
    )
    notes = [
        f"{aim} exp(coef) is the {ratio} that this model predicts with; to estimate the average hazard ratio, use "
        "plain Cox's."
    ]
    # Per standard deviation of the feature, so that years and indicators compare.
    robust, usual = coef * deviation, plain.coef * deviation
    change = robust - usual
    most = [j for j in np.argsort(-np.abs(change))[:_MENTIONED] if change[j] != 0]
    # Another ratio differs from a hazard ratio even where the models agree.
    if most and ratio == "hazard ratio":
        changes = (
            f"{names[j]} (hazard ratio {written(np.exp(usual[j]))} to {written(np.exp(robust[j]))})"
            for j in most
        )
        notes.append(f"Changed most against plain Cox, per standard deviation: {', '.join(changes)}.")
    if worst_mean is not None and has_worst_case:
        moved = np.divide(worst_mean - mean, deviation, out=np.zeros_like(mean), where=deviation > 0)
        far = [j for j in np.argsort(-np.abs(moved))[:_MENTIONED] if abs(moved[j]) >= 0.1]
        words = [
            f"{'more' if moved[j] > 0 else 'less'} {names[j]} ({moved[j]:+.2f} standard deviations)"
            for j in far
        ]
        notes.append(
            f"The worst-case weights are largest for patients with {', '.join(words)} than the average."
            if words
            else "The patients with the largest worst-case weights have about average features."
        )
    return notes


# A replicate fails if it has too few events. At least this share of the replicates must succeed.
_ENOUGH = 0.9


def bootstrap_coefficients(
    refit: Callable[[FloatArray], FloatArray | None],
    clusters: IntArray,
    *,
    n_boot: int = 1000,
    random_state: int = 0,
    threads: int | None = None,
    verbose: bool = False,
) -> FloatArray:
    """Return coefficients (R, d) of refits to clusters drawn with replacement; R is n_boot less the refits that fail.

    `refit` maps the numbers (n,) of times that each row was drawn to coefficients (d,); it returns None or raises
    ValueError where such data have no fit, and its warnings are not shown. It runs in several threads, by default as
    many as there are processors; the draws do not depend on their number. Rows of one cluster (n,), numbered from 0,
    are drawn together. `verbose` shows a progress bar.
    """
    n_clusters = int(clusters.max()) + 1
    streams = seed_sequence(random_state)

    def replicate(number: int) -> FloatArray | None:
        drawn = replicate_rng(streams, number).integers(0, n_clusters, n_clusters)
        counts = np.bincount(drawn, minlength=n_clusters)[clusters]
        try:
            return refit(counts.astype(np.float64))
        except ValueError:
            return None

    draws = []
    with bar("bootstrap", n_boot, shown=verbose) as tell, warnings.catch_warnings(action="ignore"):
        for coef in in_parallel(replicate, n_boot, threads):
            if coef is not None and np.isfinite(coef).all():
                draws.append(coef)
            tell()
    if len(draws) < max(2, _ENOUGH * n_boot):
        raise ValueError(
            f"only {len(draws)} of {n_boot} bootstrap refits have a solution: there are too few events for so many "
            "features. Use fewer features, or set l2 > 0."
        )
    return np.stack(draws)
