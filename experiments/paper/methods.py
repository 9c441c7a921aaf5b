"""The methods of the tables as data: the paper's sixteen, its ablations, and rows that it does not have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple

from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.presentation import Text

Network = Literal["linear", "mlp"]
Origin = Literal["paper", "ablation", "beyond", "as published"]

LEARNING_RATES = (0.01, 0.001, 0.0001)
WEIGHTS = (1.0, 0.7, 0.4)
ALPHAS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
# Starts at 1: CI and the c-index do not change when scores are scaled, so a rule that looks only at them
# ties and takes the first, which must be the plain model.
FACTORS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02)


@dataclass(frozen=True)
class Method:
    """One row of a table: what to train, over which grid, and what to call it in commands, plain text and LaTeX.

    `estimator` is a class of drosurv, or "PublishedSplit" of this package; `parameters` are those that differ from its
    defaults and do not vary, and every combination of the `grid` is trained. Scores are multiplied by each of the
    `factors` after training, other than 1 only for the shrinkage control. By `origin` it stands in the paper's main
    tables, in its ablations, is ours, or is one of the first two with a published mistake; then it `stands_for` the
    method whose published rows it rebuilds, mistakes and all.
    """

    name: str
    label: str
    latex: str
    estimator: str
    network: Network
    parameters: tuple[tuple[str, Any], ...]
    grid: tuple[tuple[str, tuple[float, ...]], ...]
    factors: tuple[float, ...] = (1.0,)
    origin: Origin = "paper"
    stands_for: str | None = None

    @property
    def heading(self) -> Text:
        """What its row is called."""
        return Text(self.label, self.latex)

    @property
    def trains_by_attribute(self) -> bool:
        """Whether training sees the sensitive attribute, so that each attribute needs its own training."""
        return dict(self.parameters).get("penalty") in ("keya_group", "rp_group")

    @property
    def reference(self) -> str:
        """Name of the unregularised method with the same network, whose c-index sets the accuracy budget."""
        return _PLAIN[self.network][0]

    @property
    def scaler_share(self) -> float:
        """Share of the training patients, the first ones, that features are standardised by."""
        return float(dict(self.parameters)["n1"]) if self.stands_for else 1.0

    @property
    def unscaled_baseline(self) -> bool:
        """Whether the published IBS put features that were not standardised into the baseline hazard."""
        return dict(self.parameters).get("sides") == "both"

    def settings(self) -> list[dict[str, float]]:
        """Every point of the grid, in the order in which results list them."""
        return [setting for point in self.points() for setting in self.scaled(point)]

    def points(self) -> list[dict[str, float]]:
        """What is trained: factors only scale the scores of it."""
        names, values = zip(*self.grid, strict=True)
        return [dict(zip(names, point, strict=True)) for point in product(*values)]

    def scaled(self, point: dict[str, float]) -> list[dict[str, float]]:
        """The settings that share one training."""
        return [point] if self.factors == (1.0,) else [{**point, "factor": factor} for factor in self.factors]

    def determinants(self) -> dict[str, Any]:
        """Everything about the method that its numbers depend on; labels are not among it."""
        return {
            "estimator": self.estimator,
            "network": self.network,
            "parameters": dict(self.parameters),
            "grid": {name: list(values) for name, values in self.grid},
            "factors": list(self.factors),
            "scaler_share": self.scaler_share,
        }


_LR = ("lr", LEARNING_RATES)
# The unregularised method of each network: its name and its heading.
_PLAIN: dict[Network, tuple[str, str]] = {"linear": ("cox", "Cox"), "mlp": ("deepsurv", "DeepSurv")}
_PENALTIES = (
    ("keya-individual", "keya_individual", "_I (Keya et al.)", r"$_I$(Keya~et~al.)"),
    ("rp-individual", "rp_individual", "_I (R&P)", r"$_I$(R\&P)"),
    ("keya-group", "keya_group", "_G (Keya et al.)", r"$_G$(Keya~et~al.)"),
    ("rp-group", "rp_group", "_G (R&P)", r"$_G$(R\&P)"),
    ("keya-intersectional", "keya_intersectional", "_∩ (Keya et al.)", r"$_{\cap}$(Keya~et~al.)"),
)


def _papers(network: Network) -> Iterator[Method]:
    name, label = _PLAIN[network]
    yield Method(name, label, label, "CoxPH", network, (), (_LR,))
    for suffix, penalty, plain, latex in _PENALTIES:
        names = f"{name}-{suffix}", label + plain, label + latex
        grid = ("weight", WEIGHTS), _LR
        yield Method(*names, "RegularizedCox", network, (("penalty", penalty),), grid)
    yield _robust(network, ("dro-cox", "DRO-COX", r"\textsc{DRO-COX}"), "DROCox", "paper", ball="paper")
    yield from _splits(network)


def _beyond(network: Network) -> Iterator[Method]:
    for ball, note in (("chi2", "(chi2)"), ("cvar", "(CVaR)")):
        names = f"dro-cox-{ball}", f"DRO-COX {note}", rf"\textsc{{DRO-COX}} {note}"
        yield _robust(network, names, "DROCox", "beyond", ball=ball)
    name, label = _PLAIN[network]
    names = f"{name}-scaled", f"{label} x c", rf"{label} $\times$ c"
    yield Method(*names, "CoxPH", network, (), (_LR,), factors=FACTORS, origin="beyond")


def _ablations(network: Network) -> Iterator[Method]:
    for n2 in (0.1, 0.2, 0.3, 0.4):
        yield from _splits(network, f"-n2-{n2}", f", n2 = {n2}n", "ablation", n1=round(1 - n2, 1))
    yield from _splits(network, "-one-side", ", ONE SIDE", "ablation", sides="one")


def _splits(
    network: Network,
    suffix: str = "",
    note: str = "",
    origin: Origin = "paper",
    *,
    n1: float = 0.5,
    sides: str = "both",
) -> Iterator[Method]:
    """A split method, and the same trained with the published gradient."""
    names = f"dro-cox-split{suffix}", f"DRO-COX (SPLIT{note})", rf"\textsc{{DRO-COX (SPLIT{note})}}"
    # The rows were already shuffled by the train/validation split, so the first rows are a random half.
    parameters = {"ball": "paper", "n1": n1, "sides": sides, "shuffle": False}
    right = _robust(network, names, "DROCoxSplit", origin, **parameters)
    yield right
    yield replace(
        right,
        name=f"{right.name}-published",
        label=right.label[:-1] + ", as published)",
        latex=right.latex[:-2] + ", as published)}",
        estimator="PublishedSplit",
        origin="as published",
        stands_for=right.name,
    )


def _robust(
    network: Network, names: tuple[str, str, str], estimator: str, origin: Origin, **parameters: Any
) -> Method:
    (name, label, latex), grid = names, (("alpha", ALPHAS), _LR)
    deep, word = ("deep-", "Deep ") if network == "mlp" else ("", "")
    full = deep + name, word + label, word + latex
    return Method(*full, estimator, network, tuple(parameters.items()), grid, origin=origin)


METHODS = {
    method.name: method
    for rows in (_papers, _beyond, _ablations)
    for network in _PLAIN
    for method in rows(network)
}
# By the method they stand for: its published rows come from a mistaken gradient, trained beside the right one.
AS_PUBLISHED = {method.stands_for: method for method in METHODS.values() if method.stands_for is not None}


class TableMetric(NamedTuple):
    """One column of the paper's tables: a metric's name in the catalogue, its headings, and in which way it is better.

    Tables print `printed_scale` times the library's value.
    """

    name: str
    label: str
    latex: str
    higher_is_better: bool
    printed_scale: float


def _column(name: str, latex: str = "", label: str = "", printed_scale: float = 1.0) -> TableMetric:
    """Headings are the catalogue's unless given."""
    metric = CATALOGUE[name]
    label = label or metric.label
    return TableMetric(name, label, latex or label, metric.better == "higher", printed_scale)


TABLE_METRICS = (
    _column("concordance_index"),
    _column("dynamic_auc"),
    _column("log_partial_likelihood"),
    _column("integrated_brier_score"),
    _column("individual_disparity", "F$_I$"),
    _column("group_disparity", "F$_G$"),
    _column("intersectional_disparity", r"F$_{\cap}$", "F_∩"),
    _column("average_disparity", "F$_A$"),
    _column("concordance_imparity", r"CI(\%)", "CI(%)", printed_scale=100.0),
)
METRIC_NAMES = tuple(metric.name for metric in TABLE_METRICS)
