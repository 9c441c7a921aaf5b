"""What sentences are made of: numbers of groups, gaps between groups, and the sentence itself."""

from __future__ import annotations

from dataclasses import dataclass

from drosurv.presentation.group_names import group_name


@dataclass(frozen=True)
class Statement:
    """One sentence of a summary.

    Attributes
    ----------
    code : str
        What it is about; stays the same from version to version, for programs.
    text : str
        The sentence.
    concern : bool
        Whether a reader should act on it.
    """

    code: str
    text: str
    concern: bool = False


@dataclass(frozen=True)
class GroupNumber:
    """A number of one group.

    Attributes
    ----------
    attribute, group : str
        Whose it is.
    value, low, high : float
        With its interval on its own.
    low_adjusted, high_adjusted : float
        The interval that allows for all numbers judged with it.
    metric : str
        What was measured.
    """

    attribute: str
    group: str
    value: float
    low: float
    high: float
    low_adjusted: float
    high_adjusted: float
    metric: str = ""

    @property
    def who(self) -> str:
        """The group's name."""
        return group_name(self.attribute, self.group)


@dataclass(frozen=True)
class GroupGap:
    """The difference between the group served worst and the one served best, of an attribute.

    Attributes
    ----------
    attribute : str
        Whose groups they are.
    worst, best : pair of str and float
        Label and value of the two groups.
    low, high, p_value : float
        Interval and test of no gap, allowing for `looks` gaps; NaN where there is none.
    p_alone : float
        The p-value that does not.
    looks : int
        How many gaps were tested together.
    beyond_chance : bool
        Whether the gap is more than chance explains.
    """

    attribute: str
    worst: tuple[str, float]
    best: tuple[str, float]
    low: float
    high: float
    p_value: float
    p_alone: float
    looks: int
    beyond_chance: bool

    @property
    def size(self) -> float:
        """The difference."""
        return abs(self.best[1] - self.worst[1])
