"""The Cox table, results of inference on the coefficients of a fitted linear model, and the bootstrap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import chi2, norm

from drosurv.errors import InputError, as_number, require
from drosurv.patients.draws import in_parallel, replicate_rng, seed_sequence
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.presentation import (
    Column,
    Table,
    axes_or_new,
    cause_title,
    counted,
    counted_patients,
    p_text,
    written,
)
from drosurv.presentation.drawing import bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Number of coefficients, or of features of the worst case, that notes mention.
_MENTIONED = 3
# Notes on the source of the standard errors.
ORIGIN = {
    "information": "Standard errors from the observed information.",
    "sandwich": "Robust standard errors (sandwich).",
}


class CoxTable(pd.DataFrame):
    """A Cox regression table: a DataFrame with one row per feature, in the units of the features.

    Columns have the names of lifelines: ``coef``, ``exp(coef)``, ``se(coef)``, ``coef lower 95%``, ``coef upper 95%``,
    ``exp(coef) lower 95%``, ``exp(coef) upper 95%``, ``z``, ``p``. For a robust model, ``plain coef``,
    ``plain exp(coef)`` and ``change`` are added: the coefficients of plain Cox on the same patients, and the robust
    coefficients minus these. The table of a model of several causes has a column ``cause``. Slices of the table, and
    results of computations, are ordinary DataFrames.

    Attributes
    ----------
    caption : str
        Title of the table.
    notes : tuple of str
        Notes below the table.
    level : float
        Confidence level of the intervals.
    ratio : str or None
        Name of ``exp(coef)``; None if it has no meaning and the table has no such columns.
    """

    _metadata = ["caption", "notes", "level", "ratio", "counts"]  # noqa: RUF012  (pandas reads it from the class)

    caption: str
    notes: tuple[str, ...]
    level: float
    ratio: str | None
    # Texts with the numbers of patients and of events, at the end of captions.
    counts: tuple[str, str]

    # What a forest plot calls exp(coef), and a column that it shows beside it, with its name.
    _label: ClassVar[str] = "this model"
    # What the axis of a forest plot says after the name of the ratio.
    _of_what: ClassVar[str] = ""
    _beside: ClassVar[tuple[str, str]] = ("plain exp(coef)", "plain Cox")

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    @property
    def _row_labels(self) -> list[str]:
        names = [str(name) for name in self.index]
        if "cause" not in self.columns:
            return names
        return [f"{name}, {cause_title(cause)}" for name, cause in zip(names, self["cause"], strict=True)]

    def to_table(self) -> Table:
        """Return the table in the form used by reports."""
        percent = f"{100 * self.level:g} %"
        columns = [Column("covariate", "feature"), Column("coef", "coefficient", "value")]
        if "cause" in self.columns:
            numbers = pd.api.types.is_numeric_dtype(self["cause"])
            columns.insert(0, Column("cause", "cause", "count" if numbers else "text"))
        if self.ratio is None:
            columns[-1] = Column(
                "coef", f"coefficient ({percent} interval)", "value", interval_names("coef", self.level)
            )
        else:
            bounds = interval_names("exp(coef)", self.level)
            columns.append(Column("exp(coef)", f"{self.ratio} ({percent} interval)", "value", bounds))
        columns += [
            Column("se(coef)", "standard error", "value"),
            Column("z", "z", "value"),
            Column("p", "p", "p"),
        ]
        if "change" in self.columns:
            columns.append(Column("plain exp(coef)", "hazard ratio, plain Cox", "value"))
        frame = pd.DataFrame(self).rename_axis("covariate").reset_index()
        return Table.of("cox_table", self.caption, columns, frame, self.notes)

    def to_markdown(self) -> str:  # type: ignore[override]
        """Return the table as GitHub-flavoured Markdown, with its notes."""
        return self.to_table().to_markdown()

    def to_latex(self) -> str:  # type: ignore[override]
        """Return the table as LaTeX; the document needs the package booktabs."""
        return self.to_table().to_latex()

    def to_html(self) -> str:  # type: ignore[override]
        """Return the table as HTML."""
        return self.to_table().to_html()

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def forest_plot(self, ax: Axes | None = None) -> Axes:
        """Plot every hazard ratio with its interval on a log scale; for a robust model also those of plain Cox.

        Coefficients are plotted if exp(coef) has no meaning.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure if not given.
        """
        shown, (beside, name) = "coef" if self.ratio is None else "exp(coef)", self._beside
        both = beside in self.columns and self[shown].notna().any()
        longest = max(map(len, self._row_labels), default=0)
        ax = axes_or_new(ax, 4.5 + 0.08 * longest, 1.0 + 0.5 * both + 0.35 * len(self))
        height, low, high = np.arange(len(self))[::-1], *interval_names(shown, self.level)
        # Two marks of a row stand below each other, and the legend above all rows.
        above = 0.14 if both else 0.0
        first, last = self._shown_range([shown, low, high, *([beside] if beside in self.columns else [])])
        ax.hlines(height + above, self[low].clip(first, last), self[high].clip(first, last), color="C0")
        interval = f" ({100 * self.level:g} % interval)" if self[low].notna().any() else ""
        ax.plot(self[shown], height + above, "s", markersize=5, color="C0", label=self._label)
        if beside in self.columns:
            ax.plot(
                self[beside], height - above, "o", markersize=5, color="0.4", fillstyle="none", label=name
            )
        if both:
            ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False)
        ax.set_yticks(height, self._row_labels)
        ax.set_ylim(-0.6, len(self) - 0.4)
        ax.set_xlabel(f"{self.ratio or 'coefficient'}{interval}{self._of_what}")
        ax.axvline(0.0 if self.ratio is None else 1.0, color="0.6", linestyle="--", linewidth=1)
        if self.ratio is not None:
            ax.set_xscale("log")
            show_ratios(ax.xaxis, first, last)
        ax.set_xlim(first, last)
        return ax

    def _shown_range(self, columns: list[str]) -> tuple[float, float]:
        """Return the ends of the axis: those of all numbers, ratios within 0.001 and 1,000, and some space."""
        values = self[columns].to_numpy(dtype=np.float64)
        found = np.append(values[np.isfinite(values)], 0.0 if self.ratio is None else 1.0)
        if self.ratio is None:
            space = 0.05 * (np.ptp(found) or 1.0)
            return float(found.min() - space), float(found.max() + space)
        logs = np.log(found.clip(1e-3, 1e3))
        space = max(0.05 * np.ptp(logs), 0.02)
        return float(np.exp(logs.min() - space)), float(np.exp(logs.max() + space))


def show_ratios(axis: Axis, first: float, last: float) -> None:
    """Mark a logarithmic axis at three or more numbers, such as 0.5, 1 and 2, and not at powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    decades = 10.0 ** np.arange(-3, 4)
    choices = [np.outer(decades, steps).ravel() for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))]
    choices.append(
        np.asarray(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], min_n_ticks=4).tick_values(first, last))
    )
    inside = [[float(tick) for tick in ticks if first <= tick <= last] for ticks in choices]
    axis.set_major_locator(FixedLocator(next((ticks for ticks in inside if len(ticks) >= 3), inside[-1])))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    axis.set_minor_locator(NullLocator())


def interval_names(quantity: str, level: float) -> tuple[str, str]:
    """Return the names of the columns of an interval: ``coef lower 95%`` and ``coef upper 95%``."""
    percent = f"{100 * level:g}%"
    return f"{quantity} lower {percent}", f"{quantity} upper {percent}"


def coefficient_columns(coef: FloatArray, standard_error: FloatArray, level: float) -> dict[str, FloatArray]:
    """Return the columns of a table of coefficients (d,) with standard errors (d,), NaN if unknown.

    They are ``coef``, ``exp(coef)``, ``se(coef)`` and the normal intervals of the first two.
    """
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    margin = ndtri(0.5 + level / 2) * standard_error
    low, high = coef - margin, coef + margin
    with np.errstate(over="ignore"):
        return {
            "coef": coef,
            "exp(coef)": np.exp(coef),
            "se(coef)": standard_error,
            **dict(zip(interval_names("coef", level), (low, high), strict=True)),
            **dict(zip(interval_names("exp(coef)", level), (np.exp(low), np.exp(high)), strict=True)),
        }


def cox_table(
    names: Sequence[str],
    coef: FloatArray,
    standard_error: FloatArray,
    *,
    level: float = 0.95,
    caption: str = "",
    notes: Sequence[str] = (),
    plain_coef: FloatArray | None = None,
    ratio: str | None = "hazard ratio",
) -> CoxTable:
    """Return the table of coefficients (d,) with standard errors (d,), NaN if unknown.

    Intervals are coef +- z se with normal quantiles z, so that they agree with the p-values. `ratio` is the name of
    exp(coef); None leaves its columns out.
    """
    z = coef / standard_error
    columns = {**coefficient_columns(coef, standard_error, level), "z": z, "p": 2 * norm.sf(np.abs(z))}
    if plain_coef is not None:
        with np.errstate(over="ignore"):
            plain_ratio = np.exp(plain_coef)
        columns |= {"plain coef": plain_coef, "plain exp(coef)": plain_ratio, "change": coef - plain_coef}
    if ratio is None:
        columns = {name: values for name, values in columns.items() if "exp(coef)" not in name}
    table = CoxTable(columns, index=pd.Index(list(names), name="covariate"))
    table.caption, table.notes, table.level, table.ratio = caption, tuple(notes), level, ratio
    return table


@dataclass(frozen=True, eq=False)
class BesidePlain:
    """Plain Cox on the training patients of a robust model: coefficients (d,), and mean and deviation of the features.

    `worst_mean` (d,) are the means under the worst-case weights; None for a model without a worst case.
    """

    coef: FloatArray
    mean: FloatArray
    deviation: FloatArray
    worst_mean: FloatArray | None

    @classmethod
    def of(cls, X: FloatArray, share: FloatArray, coef: FloatArray, worst: FloatArray | None) -> BesidePlain:
        """From the coefficients of plain Cox; shares (n,) and worst-case weights (n,) sum to one."""
        mean = share @ X
        return cls(coef, mean, np.sqrt(share @ (X - mean) ** 2), None if worst is None else worst @ X)


@dataclass(frozen=True, eq=False)
class Findings:
    """Results of inference on the coefficients of one fit, in the units of training; none are of a single patient.

    `n_patients` and `n_events` are weighted; `unweighted` are the same numbers without weights, None if all weights are
    whole numbers, which count copies; `rows_of_copies` is then the number of rows, 0 without weights. `covariances` (d,
    d) of the coefficients are those computed so far, by method ("information", "sandwich", "bootstrap" of `n_bootstrap`
    refits). Of plain Cox there are the `log_likelihoods` without and with its features, which coefficients are
    `infinite`, that is, have no finite maximum likelihood estimate, the number `degrees` of linearly independent
    features (None with l2 > 0), and the method for `ties`, empty if there are none. `plain` is plain Cox on the same
    patients, for a robust model. `n_rows` and `n_clusters` are 0 without clusters and ids.
    """

    n_patients: float
    n_events: float
    covariances: dict[str, FloatArray]
    n_bootstrap: int = 0
    log_likelihoods: tuple[float, float] | None = None
    plain: BesidePlain | None = None
    infinite: BoolArray | None = None
    degrees: int | None = None
    ties: str = ""
    n_rows: int = 0
    n_clusters: int = 0
    unweighted: tuple[int, int] | None = None
    rows_of_copies: int = 0

    def with_bootstrap(self, draws: FloatArray) -> Findings:
        """Return the findings with the covariance of the coefficients (R, d) of bootstrap refits."""
        known = {**self.covariances, "bootstrap": np.atleast_2d(np.cov(draws, rowvar=False))}
        return replace(self, covariances=known, n_bootstrap=len(draws))

    @property
    def _counts(self) -> tuple[float, float]:
        return self.unweighted or (self.n_patients, self.n_events)

    @property
    def patients(self) -> str:
        """The number of patients as text, with the number of rows if it differs."""
        n = round(self._counts[0])
        if self.n_clusters not in (self.n_rows, n):
            return f"{self.n_rows:,} rows in {self.n_clusters:,} clusters"
        rows = f" in {self.rows_of_copies:,} weighted rows" if self.rows_of_copies else ""
        return counted_patients(n, self.n_rows if self.n_clusters == n else n) + rows

    @property
    def events(self) -> str:
        """The number of events as text."""
        return counted(round(self._counts[1]), "event")

    @property
    def weights(self) -> str:
        """A sentence with the sum of weights that are not numbers of copies; empty if there are none."""
        if self.unweighted is None:
            return ""
        return f"The weights of the patients sum to {self.n_patients:,.1f}, those of events to {self.n_events:,.1f}."


def findings_table(
    title: str,
    names: Sequence[str],
    coef: FloatArray,
    findings: Findings,
    method: str | None,
    level: float = 0.95,
    scale: FloatArray | None = None,
    ratio: str | None = "hazard ratio",
) -> CoxTable:
    """Return the Cox table of a fit, with notes.

    Features were divided by `scale` (d,) before training; the table is in their units before that. `method` is the
    source of the standard errors, None for none. `ratio` is the name of exp(coef), None if it has no meaning.
    """
    scale = np.ones(len(coef)) if scale is None else scale
    error = np.full(len(coef), np.nan) if method is None else np.sqrt(np.diag(findings.covariances[method]))
    plain = findings.plain
    notes = [*filter(None, [findings.weights]), _origin(title, method, findings)]
    if np.isnan(error).any() and method is not None:
        lost = [name for name, value in zip(names, error, strict=True) if np.isnan(value)]
        notes.append(
            f"{', '.join(lost)}: no standard error, because other features determine these, or they do not vary "
            "within risk sets. Leave out one of each such set; of nested categories, the wider one."
        )
    if findings.infinite is not None and findings.infinite.any():
        lost = [name for name, infinite in zip(names, findings.infinite, strict=True) if infinite]
        notes.append(
            f"{', '.join(lost)}: the coefficient may be infinite, as that of a category in which no patient had the "
            "event. The hazard ratio and its interval are not valid: leave the feature out, merge categories, or set "
            "l2 > 0."
        )
    if findings.ties == "breslow":
        notes.append(
            "Tied event times by Breslow's method. R and lifelines use Efron's: ties=\"efron\" in Python, "
            "`--set ties=efron` of `drosurv fit`."
        )
    if findings.log_likelihoods is not None:
        notes.append(_likelihood_ratio(*findings.log_likelihoods, findings.degrees))
        if method == "sandwich" and findings.degrees is not None:
            notes[-1] += " This test assumes independent rows; robust standard errors do not."
    if ratio is None:
        notes.append(f"{title} has no hazard ratios: exp(coef) has no meaning.")
    elif plain is not None:
        notes += _notes_beside_plain(title, names, coef, plain, ratio)
    table = cox_table(
        names,
        coef / scale,
        error / scale,
        level=level,
        notes=notes,
        plain_coef=None if plain is None else plain.coef / scale,
        ratio=ratio,
    )
    table.counts = findings.patients, findings.events
    table.caption = sized(title, *table.counts)
    return table


def sized(title: str, *size: str) -> str:
    """Return the caption of a Cox table: the name of the model, and its numbers of patients and events."""
    return f"{title}: {', '.join(size)}"


def _origin(title: str, method: str | None, findings: Findings) -> str:
    """Say where standard errors come from, or what to do if there are none."""
    if method is None:
        return (
            f'Standard errors of {title} need a bootstrap: summary(method="bootstrap") in Python, or '
            "`drosurv fit ... --bootstrap 200`."
        )
    alone = (
        ' No two rows share an id or a cluster. Robust ones, as R\'s with clusters: method="sandwich".'
        if findings.n_rows == findings.n_clusters > 0
        else ""
    )
    if method == "bootstrap":
        return f"Standard errors from {findings.n_bootstrap:,} refits to patients drawn with replacement."
    if method == "sandwich" and findings.n_clusters < findings.n_rows:
        return f"{ORIGIN[method].removesuffix('.')}, because rows share an id or a cluster."
    if method == "sandwich" and (findings.rows_of_copies or findings.unweighted):
        found = f"{ORIGIN[method].removesuffix('.')}, because of the weights."
        copies = ' R takes whole-number weights for copies of patients, as method="information" does.'
        return found + copies * bool(findings.rows_of_copies)
    return ORIGIN[method] + alone if method == "information" else ORIGIN[method]


def _likelihood_ratio(null: float, fitted: float, d: int | None) -> str:
    ratio, reached = 2 * (fitted - null), f"Log partial likelihood {fitted:.2f} (without features {null:.2f})"
    if d is None:
        return f"{reached}; no likelihood ratio test, because coefficients with l2 > 0 do not maximise the likelihood."
    return (
        f"{reached}; likelihood ratio test {ratio:.2f} on {counted(d, 'degree')} of freedom, "
        f"{p_text(float(chi2.sf(ratio, d)))}."
    )


def _notes_beside_plain(
    title: str, names: Sequence[str], coef: FloatArray, plain: BesidePlain, ratio: str
) -> list[str]:
    """Return notes on the meaning of robust coefficients, on the largest changes, and on the worst-case weights."""
    mean, deviation, worst_mean = plain.mean, plain.deviation, plain.worst_mean
    # Penalised and recalibrated models have no worst case; at alpha = 1 all patients have the same weight.
    has_worst_case = worst_mean is not None and not np.allclose(worst_mean, mean, rtol=1e-6, atol=1e-9)
    aim = (
        f"These coefficients minimise the loss of the patients for whom {title} is worst, not the average loss."
        if has_worst_case
        else f"Plain Cox maximises the partial likelihood; {title} minimises another criterion."
    )
    notes = [
        f"{aim} exp(coef) is the {ratio} that this model predicts with; as an estimate of the average hazard ratio, "
        "use that of plain Cox."
    ]
    # Per standard deviation of the feature, so that features in different units can be compared.
    robust, usual = coef * deviation, plain.coef * deviation
    change = robust - usual
    most = [j for j in np.argsort(-np.abs(change))[:_MENTIONED] if change[j] != 0]
    # Other ratios, such as odds ratios, cannot be compared with the hazard ratios of plain Cox.
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


# At least this share of the bootstrap refits must succeed; a refit fails if it has too few events.
_LEAST_SUCCESSFUL = 0.9


def bootstrap_coefficients(
    refit: Callable[[FloatArray], FloatArray | None],
    clusters: IntArray,
    *,
    n_bootstrap: int = 1000,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> FloatArray:
    """Return the coefficients (R, d) of refits to clusters drawn with replacement; failed refits are left out.

    `refit` maps the number of times that each row was drawn (n,) to coefficients (d,); it returns None or raises
    ValueError if such data cannot be fitted. Its warnings are not shown. It runs in threads, by default one per
    processor; the draws do not depend on their number. Rows of one cluster (n,), numbered from 0, are drawn together.
    `verbose` shows a progress bar.
    """
    n_clusters = int(clusters.max()) + 1
    seed = seed_sequence(random_state)

    def replicate(number: int) -> FloatArray | None:
        drawn = replicate_rng(seed, number).integers(0, n_clusters, n_clusters)
        counts = np.bincount(drawn, minlength=n_clusters)[clusters]
        try:
            return refit(counts.astype(np.float64))
        except ValueError:
            return None

    draws = []
    with bar("bootstrap", n_bootstrap, shown=verbose) as advance, warnings.catch_warnings(action="ignore"):
        for coef in in_parallel(replicate, n_bootstrap, n_jobs):
            if coef is not None and np.isfinite(coef).all():
                draws.append(coef)
            advance()
    if len(draws) < max(2, _LEAST_SUCCESSFUL * n_bootstrap):
        raise InputError(
            f"only {len(draws)} of {n_bootstrap} bootstrap refits have a solution: too few events for so many "
            "features. Use fewer features, or set l2 > 0."
        )
    return np.stack(draws)
