"""A trained module as plain arrays, and back: what can be kept without pickling torch objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from drosurv.errors import Argument, ArgumentError

if TYPE_CHECKING:
    from torch.nn import Module


def module_state(module: Module) -> dict[str, NDArray[Any]]:
    """Parameters and buffers of a module by name, on the CPU."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in module.state_dict().items()}


def restored(module: Module, state: dict[str, NDArray[Any]]) -> Module:
    """The module with the given parameters and buffers, in evaluation mode."""
    import torch

    try:
        module.load_state_dict({name: torch.tensor(values) for name, values in state.items()})
    except RuntimeError as error:
        shape = f" builds another shape than the one that was trained: {error}"
        raise ArgumentError(Argument("network"), shape) from error
    return module.eval()
