"""Networks and boosted trees with their training settings: the values of an estimator's parameter `network`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from drosurv.errors import (
    ArgumentError,
    arg,
    as_number,
    as_whole,
    check_choice,
    check_count,
    check_number,
    require,
)
from drosurv.solvers.networks import mlp

NETWORKS = ("linear", "mlp", "trees")


@dataclass(repr=False)
class MLP(BaseEstimator):
    """A multilayer perceptron trained by Adam, or any torch module trained in the same way.

    ``network="mlp"`` is ``network=MLP()``, and ``network=make``, a function, is ``network=MLP(module=make)``.

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers.
    lr : float
        Learning rate of Adam.
    max_iter : int
        Number of steps; epochs, with ``batch_size``.
    batch_size : int, optional
        Train on random batches of this many patients, with risk sets within the batch; None uses all patients.
    early_stopping : bool or "auto"
        Whether to stop when the criterion on a validation set no longer improves, and to keep the best step. "auto"
        stops early if there are enough events and the estimator's ``solver`` is "auto": after ``max_iter`` steps a
        network overfits. The paper trains without early stopping (``solver="adam"``).
    validation_fraction : float
        Fraction of the patients to set aside as validation set, stratified by event.
    n_iter_no_change : int
        Steps (epochs, with ``batch_size``) without improvement after which training stops.
    dropout : float
        Share of hidden units that each training step drops.
    module : callable, optional
        A function n_features -> torch.nn.Module that builds another network than the perceptron; ``hidden`` and
        ``dropout`` are then part of the module.

    Examples
    --------
    >>> from drosurv import MLP, CoxPH, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> model = CoxPH(network=MLP(hidden=(16, 16), max_iter=50), random_state=0)
    >>> model.set_params(network__lr=0.02).fit(data.X, data.y).score(data.X, data.y) > 0.5
    True
    """

    hidden: Sequence[int] = (24,)
    lr: float = 0.01
    max_iter: int = 500
    batch_size: int | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.2
    n_iter_no_change: int = 20
    dropout: float = 0.0
    module: Callable[[int], Any] | None = None

    def check(self) -> None:
        """Raise ArgumentError for invalid settings."""
        _check_steps(self)
        hidden: Any = self.hidden
        listed = isinstance(hidden, Sequence) or hasattr(hidden, "dtype")
        fits = listed and all(as_whole(width) >= 1 for width in hidden)
        require(fits, "hidden", "list widths (whole numbers, at least 1) like (24,)", self.hidden)
        require(0 <= as_number(self.dropout) < 1, "dropout", "lie in [0, 1)", self.dropout)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size, least=2)
        for name in ("hidden", "dropout"):
            value, fits = (
                getattr(self, name),
                self.module is None or getattr(self, name) == getattr(MLP, name),
            )
            require(fits, name, "be part of the module that `module` builds", value)

    def builder(self, n_outputs: int) -> Callable[[int], Any]:
        """Return a function n_features -> torch.nn.Module."""
        return self.module or partial(mlp, hidden=self.hidden, dropout=self.dropout, n_outputs=n_outputs)


@dataclass(repr=False)
class Trees(BaseEstimator):
    """Boosted trees, grown by LightGBM (extra ``trees``); ``network="trees"`` is ``network=Trees()``.

    Parameters
    ----------
    lr : float
        Shrinkage of each tree.
    max_iter : int
        Number of trees.
    early_stopping : bool or "auto"
        Whether to choose the number of trees by a validation set; they are then grown again on all patients. "auto"
        does so if there are enough events.
    validation_fraction : float
        Fraction of the patients to set aside as validation set, stratified by event.
    n_iter_no_change : int
        Trees without improvement after which growing stops.
    params : dict, optional
        Passed to LightGBM, such as ``{"max_depth": 4, "num_leaves": 16}``.

    Examples
    --------
    >>> from drosurv import DROCox, Trees
    >>> DROCox(network=Trees(lr=0.1)).get_params()["network__lr"]
    0.1
    """

    lr: float = 0.05
    max_iter: int = 500
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.2
    n_iter_no_change: int = 20
    params: Mapping[str, Any] | None = None

    def check(self) -> None:
        """Raise ArgumentError for invalid settings."""
        _check_steps(self)
        known = self.params is None or isinstance(self.params, Mapping)
        require(known, "params", "be a dict of LightGBM's parameters", self.params)


def _check_steps(network: MLP | Trees) -> None:
    check_number("lr", network.lr, positive=True)
    check_count("max_iter", network.max_iter)
    check_choice("early_stopping", network.early_stopping, (True, False, "auto"))
    fraction = network.validation_fraction
    require(0 < as_number(fraction) < 1, "validation_fraction", "lie in (0, 1)", fraction)
    check_count("n_iter_no_change", network.n_iter_no_change)


def as_network(network: Any) -> MLP | Trees | None:
    """Return the value that a parameter `network` stands for; None for a linear model."""
    if isinstance(network, MLP | Trees):
        return network
    if isinstance(network, str) and network in NETWORKS:
        return {"linear": None, "mlp": MLP(), "trees": Trees()}[network]
    if callable(network):
        return MLP(module=network)
    wanted = f"be one of {NETWORKS}, MLP(...), Trees(...) or a callable that builds a torch.nn.Module"
    raise ArgumentError.must("network", wanted, network)


def readable_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator; those of a network as ``network__lr`` and so on."""
    found: dict[str, Any] = estimator.get_params(deep=False)
    network = found.get("network")
    if isinstance(network, MLP | Trees):
        found["network"] = type(network).__name__
        found |= {f"network__{name}": value for name, value in network.get_params().items()}
    return found


def check_nested(network: Any, names: Sequence[str]) -> None:
    """Raise if parameters such as ``network__lr`` are set although the network has none, because it is a name."""
    if not isinstance(network, MLP | Trees):
        values = {"mlp": "MLP()", "trees": "Trees()"}
        value = (
            values.get(network, "MLP(...) or Trees(...)") if isinstance(network, str) else "MLP(module=...)"
        )
        raise ArgumentError(
            names[0],
            f"{names[0]} is a setting of a network that is given as a value, but {arg('network', network)}: use "
            f"{arg('network')}={value}.",
        )
