"""Fitted objects as JSON and arrays, and back, without pickle.

Nothing here knows an estimator by name: an object is its class, its parameters and its fitted attributes. Only
classes of drosurv and the few of scikit-learn listed below are ever built from a file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

Arrays = dict[str, NDArray[Any]]

_FROM_SKLEARN = ("sklearn.pipeline:Pipeline", "sklearn.preprocessing:StandardScaler")
_OURS = re.compile(r"drosurv(\.[a-z_]+)+:[A-Za-z_]+")
_ATTRIBUTE = re.compile(r"_?[a-z][a-z0-9_]*")
# How a search routes metadata belongs to that search, not to a fitted model.
_LEFT_OUT = ("_metadata_request",)
_NARROWER = (np.uint8, np.uint16, np.int32, np.float32)


def pack(value: Any, arrays: Arrays, where: str = "model") -> Any:
    """Turn a value into what JSON can hold, moving its arrays into `arrays`.

    They stand there under the names the packed form refers to. The value may be numbers, texts, lists, tuples, dicts,
    arrays, dataclasses and estimators of drosurv, and any nesting of them. Random generators become None, functions
    their name. `where` is what error messages call the value.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return pack(value.item(), arrays, where)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [pack(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": pack(list(value), arrays, where)}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": _pack_named(value, arrays, where)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, arrays, where)
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, BaseEstimator):
        return _pack_estimator(value, arrays, where)
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"object": _reference(type(value), where), "fields": _pack_named(held, arrays, where)}
    if callable(value):
        return {"function": f"{value.__module__}.{getattr(value, '__qualname__', type(value).__name__)}"}
    raise TypeError(
        f"cannot save {where}, a {type(value).__name__}, without pickle; give it as numbers, texts or arrays, or "
        "use joblib.dump."
    )


def _pack_named(values: Mapping[str, Any], arrays: Arrays, where: str) -> dict[str, Any]:
    return {name: pack(value, arrays, f"{where}.{name}") for name, value in values.items()}


def _pack_array(values: NDArray[Any], arrays: Arrays, where: str) -> dict[str, Any]:
    if values.dtype.kind in "OUT":
        texts = values.tolist()
        if values.ndim != 1 or not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"cannot save {where}: an array of objects can only be saved if it is a list of texts."
            )
        return {"texts": texts}
    if values.dtype.kind not in "biuf":
        raise TypeError(f"cannot save {where}, an array of {values.dtype}; convert it to numbers.")
    name = f"{len(arrays)}:{where}"
    arrays[name] = _narrowed(values)
    return {"array": name, "dtype": values.dtype.name}


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in the smallest type that holds every one exactly: days of follow-up fit in two bytes."""
    native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    for dtype in _NARROWER:
        if np.dtype(dtype).itemsize >= native.dtype.itemsize or native.dtype.kind not in "iuf":
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            small = native.astype(dtype)
        # Bytes, not values, so that -0.0 and NaN come back as they were.
        if small.astype(native.dtype).tobytes() == native.tobytes():
            return small
    return native


def _pack_estimator(estimator: BaseEstimator, arrays: Arrays, where: str) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    skipped = {*parameters, *_LEFT_OUT, *getattr(estimator, "_per_patient", ())}
    attributes = {name: value for name, value in estimator.__getstate__().items() if name not in skipped}
    return {
        "object": _reference(type(estimator), where),
        "parameters": _pack_named(parameters, arrays, where),
        "attributes": _pack_named(attributes, arrays, where),
    }


def _reference(cls: type, where: str) -> str:
    """How a file names a class: by its room, so that files inside the room may move."""
    room = ".".join(cls.__module__.split(".")[:2])
    exported = getattr(import_module(room), cls.__name__, None) is cls
    name = f"{room if exported else cls.__module__}:{cls.__name__}"
    if _class(name) is not cls:
        raise TypeError(
            f"cannot save {where}, a {cls.__module__}.{cls.__qualname__}, without pickle: only drosurv's own classes "
            f"and {', '.join(_FROM_SKLEARN)} can be. Prepare tables with drosurv.tables.TableEncoder, or use "
            "joblib.dump."
        )
    return name


def _class(name: str) -> type | None:
    """The class a file names; None for anything a file may not name or this version does not have."""
    if name not in _FROM_SKLEARN and not _OURS.fullmatch(name):
        return None
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return None
    allowed = isinstance(found, type) and (is_dataclass(found) or issubclass(found, BaseEstimator))
    return found if allowed else None


class Unpacker:
    """Builds values from their packed form, with the arrays that :func:`pack` moved.

    `functions` are those to use for parameters that were functions, by parameter name.
    """

    def __init__(self, arrays: Arrays, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.arrays = arrays
        self.functions = dict(functions)
        self.used: set[str] = set()

    def unpack(self, packed: Any) -> Any:
        """The value a packed form stands for."""
        if isinstance(packed, list):
            return [self.unpack(item) for item in packed]
        if not isinstance(packed, dict):
            return packed
        if "object" in packed:
            return self._object(packed)
        ((kind, content),) = ((k, v) for k, v in packed.items() if k != "dtype")
        if kind == "float":
            return float(content)
        if kind == "tuple":
            return tuple(self.unpack(content))
        if kind == "dict":
            return self._named(content)
        if kind == "array":
            return self.arrays[content].astype(packed["dtype"])
        if kind == "texts":
            return np.array([str(text) for text in content], dtype=object)
        raise ValueError(f"it holds a {kind!r}, which this version does not know; upgrade drosurv")

    def _named(self, packed: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.unpack(value) for name, value in packed.items()}

    def _object(self, packed: Mapping[str, Any]) -> Any:
        cls = _class(packed["object"])
        if cls is None:
            raise ValueError(
                f"it holds a {packed['object']!r}, which this version does not know; upgrade drosurv"
            )
        if "fields" in packed:
            return cls(**self._named(packed["fields"]))
        estimator = cls(
            **{name: self._parameter(name, value) for name, value in packed["parameters"].items()}
        )
        for name in packed["attributes"]:
            defined = getattr(cls, name, None)
            if not _ATTRIBUTE.fullmatch(name) or callable(defined) or isinstance(defined, property):
                raise ValueError(f"it sets {name!r}, which is no fitted attribute of {cls.__name__}")
        estimator.__setstate__({**vars(estimator), **self._named(packed["attributes"])})
        return estimator

    def _parameter(self, name: str, packed: Any) -> Any:
        if not (isinstance(packed, dict) and "function" in packed):
            return self.unpack(packed)
        if name not in self.functions:
            raise ValueError(
                f"its parameter {name} was the function {packed['function']}, which no file can hold: pass it "
                f"again, load(path, {name}=...)"
            )
        self.used.add(name)
        return self.functions[name]
