"""A unit of work: one dataset, one method, one repeat, with a key that changes whenever its result would."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from drosurv._version import __version__
from drosurv.paper.methods import Method
from drosurv.runs import Task

# Raise whenever evaluate_unit starts to mean something else with the same settings.
RESULT_SCHEMA = 2


@dataclass(frozen=True)
class Protocol:
    """How every unit is trained and scored (paper, section 4 and appendix D).

    Data are imputed and ordered `as_published`. `test_seed` draws the test part and `initial_seed` the networks'
    initial weights, the same for every repeat. Adam takes `max_iter` steps, of which the last iterate is kept; the
    MLP has `hidden` units. `convention` is that of the disparity metrics, and `bootstrap` counts the replicates
    behind the interval of CI.
    """

    as_published: bool = True
    test_seed: int = 7
    initial_seed: int = 1
    max_iter: int = 500
    hidden: tuple[int, ...] = (24,)
    convention: Literal["paper", "table"] = "table"
    bootstrap: int = 200


@dataclass(frozen=True)
class Unit(Task):
    """One dataset, method and repeat: every grid point, scored on validation and test for every attribute.

    It has all the dataset's sensitive attributes, so that no table needs training of its own; the repeat, from 0,
    seeds the validation split; the fingerprint is that of the dataset before splitting.
    """

    dataset: str
    attributes: tuple[str, ...]
    method: Method
    repeat: int
    data_fingerprint: str
    protocol: Protocol = field(default_factory=Protocol)

    def determinants(self) -> dict[str, Any]:
        """Everything that the result depends on.

        The device is not among it: it changes rounding, not meaning. The library's version is, because a new
        release may train differently under the same settings.
        """
        return {
            "schema": RESULT_SCHEMA,
            "version": __version__,
            "dataset": self.dataset,
            "data_fingerprint": self.data_fingerprint,
            "attributes": list(self.attributes),
            "method": self.method.determinants(),
            "repeat": self.repeat,
            "protocol": asdict(self.protocol),
        }

    @property
    def address(self) -> tuple[str, str, str, int]:
        """Dataset, method and repeat."""
        return self.dataset, self.method.name, "repeat", self.repeat
