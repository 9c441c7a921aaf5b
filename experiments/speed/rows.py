"""One line of the benchmark: a target, what was measured, and whether it was met."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """A target and its measurement.

    ``met`` is None where there is no target, or where nothing was measured; ``note`` then says why.
    """

    part: str
    what: str
    target: str
    measured: str
    met: bool | None
    note: str = ""
    numbers: dict[str, float] = field(default_factory=dict)

    def __post_init__(self):
        # Comparisons of NumPy's numbers give NumPy's truth values, which JSON does not know.
        object.__setattr__(self, "met", None if self.met is None else bool(self.met))

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "no target" if self.measured else "not measured"
        return "met" if self.met else "not met"


def faster(part, what, ours, theirs, least, note=""):
    """A row that asks to be ``least`` times faster than a peer."""
    ratio = theirs / ours
    measured = f"{ratio:,.0f}x ({seconds(theirs)} against {seconds(ours)})"
    if ratio < 20:
        measured = f"{ratio:.1f}x ({seconds(theirs)} against {seconds(ours)})"
    numbers = {"ours_s": ours, "theirs_s": theirs, "ratio": ratio}
    return Row(part, what, f"{least:g}x faster", measured, ratio >= least, note, numbers)


def at_most(part, what, ours, theirs, most, note=""):
    """A row that asks to take at most so many times as long as something else."""
    ratio = ours / theirs
    said = "; ".join(filter(None, [f"{seconds(ours)} against {seconds(theirs)}", note]))
    return Row(part, what, f"at most {most:g}x", f"{ratio:.2f}x", ratio <= most, said, {"ratio": ratio})


def within(part, what, took, limit, note=""):
    """A row that asks to take less than ``limit`` seconds."""
    return Row(part, what, f"under {limit:g} s", seconds(took), took < limit, note, {"ours_s": took})


def missing(part, what, target, reason):
    """A row that could not be measured here."""
    return Row(part, what, target, "", None, reason)


def seconds(value):
    """Seconds in the unit that reads best."""
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} us"
