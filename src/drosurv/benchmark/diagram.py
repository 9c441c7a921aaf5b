"""The critical-difference diagram: mean ranks on a line, bars over methods that cannot be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drosurv.benchmark.standings import Ranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure


def rank_diagram(ranks: Ranks, labels: Mapping[str, str], title: str) -> Figure:
    """Draw the mean ranks.

    Parameters
    ----------
    ranks : Ranks
        From :func:`drosurv.benchmark.rank`.
    labels : mapping
        From methods to what they are called.
    title : str
        Above the diagram.
    """
    from matplotlib.figure import Figure

    mean = ranks.mean
    n = len(mean)
    cliques = alike(mean.to_list(), ranks.critical_difference)
    figure = Figure(figsize=(9, 1.2 + 0.22 * n + 0.12 * len(cliques)), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(0.5, n + 0.5), ylim=(-(n + 1) // 2 - 0.6 - 0.35 * len(cliques), 1.2), title=title)
    axes.axis("off")
    axes.plot([1, n], [0, 0], color="black", lw=1)
    for tick in range(1, n + 1):
        axes.plot([tick, tick], [0, 0.12], color="black", lw=1)
        axes.text(tick, 0.25, str(tick), ha="center", fontsize=8)
    below = 0.35 * len(cliques) + 0.3
    for place, (method, value) in enumerate(mean.items()):
        left = place < (n + 1) // 2
        level = -below - (place if left else n - 1 - place) * 1.0
        end = 0.6 if left else n + 0.4
        axes.plot([value, value, end], [0, level, level], color="0.4", lw=0.8)
        name = f"{labels.get(str(method), str(method))} ({value:.1f})"
        axes.text(end, level + 0.1, name, ha="left" if left else "right", fontsize=8)
    for k, (first, last) in enumerate(cliques):
        height = -0.25 - 0.35 * k
        axes.plot([mean.iloc[first] - 0.05, mean.iloc[last] + 0.05], [height] * 2, color="tab:red", lw=3)
    axes.plot([1, 1 + ranks.critical_difference], [0.75, 0.75], color="black", lw=2)
    axes.text(1, 0.87, f"critical difference {ranks.critical_difference:.2f}", fontsize=8)
    return figure


def alike(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Longest runs (first, last) of sorted mean ranks within the critical difference, of two methods or more."""
    runs: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(k for k in range(first, len(ranks)) if ranks[k] - ranks[first] <= critical)
        if last > first and not (runs and last <= runs[-1][1]):
            runs.append((first, last))
    return runs
