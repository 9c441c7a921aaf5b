"""The critical-difference diagram: mean ranks on a line, bars over methods that cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drosurv.benchmark.standings import Ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches from the first rank to the last.
_WIDTH = 6.0


def rank_diagram(ranks: Ranks, labels: Mapping[str, str], title: str) -> Figure:
    """Draw the mean ranks; `labels` are what methods are called."""
    from matplotlib.figure import Figure

    mean = ranks.mean
    n, half = len(mean), (len(mean) + 1) // 2
    cliques = alike(mean.to_list(), ranks.critical_difference)
    names = [f"{labels.get(str(method), str(method))} ({value:.1f})" for method, value in mean.items()]
    below = 0.5 * len(cliques) + 0.8
    height = below + half + 2.5
    # Names stand beside the line of ranks, where no other method's line runs; letters of 8 points are about so wide.
    margin = 0.068 * max(map(len, names)) + 0.2
    figure = Figure(figsize=(_WIDTH + 2 * margin, 0.2 * height + 0.4))
    axes = figure.add_axes((0, 0, 1, 0.2 * height / (0.2 * height + 0.4)))
    side = margin * (n - 1) / _WIDTH
    axes.set(xlim=(1 - side, n + side), ylim=(0.5 - below - half, 3 - 0.5))
    axes.set_title(title, fontsize=10)
    axes.axis("off")
    axes.plot([1, n], [0, 0], color="black", lw=1)
    for tick in range(1, n + 1):
        axes.plot([tick, tick], [0, 0.2], color="black", lw=1)
        axes.text(tick, 0.35, str(tick), ha="center", fontsize=8)
    for place, (name, value) in enumerate(zip(names, mean, strict=True)):
        left = place < half
        level = -below - (place if left else n - 1 - place)
        end, gap = (1, -0.1) if left else (n, 0.1)
        axes.plot([value, value, end + gap], [0, level, level], color="0.4", lw=0.8)
        axes.text(
            end + 2 * gap, level, name, ha="right" if left else "left", va="center_baseline", fontsize=8
        )
    for k, (first, last) in enumerate(cliques):
        axes.plot(
            [mean.iloc[first] - 0.05, mean.iloc[last] + 0.05], [-0.5 - 0.5 * k] * 2, color="tab:red", lw=3
        )
    axes.plot([1, 1 + ranks.critical_difference], [1.5, 1.5], color="black", lw=2)
    axes.text(1, 1.75, f"critical difference {ranks.critical_difference:.2f}", fontsize=8)
    return figure


def alike(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Longest runs (first, last) of sorted mean ranks within the critical difference, of two methods or more."""
    runs: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(k for k in range(first, len(ranks)) if ranks[k] - ranks[first] <= critical)
        if last > first and not (runs and last <= runs[-1][1]):
            runs.append((first, last))
    return runs
