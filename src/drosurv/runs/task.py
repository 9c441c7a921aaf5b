"""What can be worked through and stored: anything with a key that changes whenever its result would."""

from __future__ import annotations

from typing import Any, Protocol


class Task(Protocol):
    """One piece of work, hashable and picklable.

    Attributes
    ----------
    key : str
        64 hexadecimal digits, the same in every process and machine, other whenever the result would be.
    place : str
        Where its result is filed: folders and a stem, such as ``"flc/cox/repeat-03"``.
    kind : tuple of str
        Tasks of one kind take about equally long, and may be trained together.
    """

    @property
    def key(self) -> str: ...  # noqa: D102

    @property
    def place(self) -> str: ...  # noqa: D102

    @property
    def kind(self) -> tuple[str, ...]: ...  # noqa: D102

    def determinants(self) -> dict[str, Any]:
        """Everything that the result depends on, as JSON holds it."""
        ...
