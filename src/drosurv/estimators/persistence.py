"""Saved models: one safetensors file with everything prediction needs, without pickle and without training rows.

The file's metadata is one JSON text with the version of the format, a checksum of everything that is read from the
file, the packed model, the versions of the libraries that wrote it, and notes of the caller. A packed model is its
class, its parameters and its fitted attributes, so that no estimator needs code here. Only classes of drosurv and a few
of scikit-learn are created from a file.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from drosurv._version import __version__
from drosurv.errors import InputError
from drosurv.files import write_file

Arrays = dict[str, NDArray[Any]]

FORMAT = 1
_KEY = "drosurv"
# Libraries whose versions are written to the file, if they are installed.
_LIBRARIES = ("numpy", "scikit-learn", "torch", "lightgbm")
_FROM_SKLEARN = ("sklearn.pipeline:Pipeline", "sklearn.preprocessing:StandardScaler")
_OURS = re.compile(r"drosurv(\.[a-z_0-9]+)+:[A-Za-z_0-9]+")
_ATTRIBUTE = re.compile(r"_?[a-z][a-z0-9_]*")
# Metadata routing requests of scikit-learn, which are not part of a fitted model.
_LEFT_OUT = ("_metadata_request",)
_NARROWER = (np.uint8, np.uint16, np.int32, np.float32)
# Types of arrays in a file: numbers of up to eight bytes, so that a small file cannot ask for much memory.
_NUMBERS = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
# Modules of the stored classes that no public subpackage exports. Files name the module in which the class was when
# they were written. Change the line here when you move a class.
_HOMES = {
    "Baseline": "drosurv.curves.fitted",
    "BaselineFactor": "drosurv.repairs.repaired_predictions",
    "BesidePlain": "drosurv.estimators.coefficients.summary",
    "BoostedTrees": "drosurv.solvers.networks",
    "Condition": "drosurv.judging.rules",
    "Correction": "drosurv.repairs.repair_search",
    "EffectChange": "drosurv.repairs.repair",
    "EffectColumn": "drosurv.repairs.effect_columns",
    "EffectColumns": "drosurv.repairs.effect_columns",
    "Findings": "drosurv.estimators.coefficients.summary",
    "HeldOutNumber": "drosurv.repairs.repair",
    "IntervalCurves": "drosurv.estimators.discrete_time_hazard",
    "LogTimeCurves": "drosurv.estimators.accelerated_failure_time",
    "MassCurves": "drosurv.estimators.deep_hit",
    "Periods": "drosurv.repairs.periods",
    "RegularizedCox": "drosurv.paper",
    "Rule": "drosurv.judging.rules",
}


@dataclass(frozen=True, eq=False)
class SavedModel:
    """The content of a model's file.

    `model` is the fitted estimator or Pipeline, `versions` are those of drosurv, Python and the libraries that wrote
    the file, `notes` those passed to :func:`save`.
    """

    model: Any
    versions: dict[str, str]
    notes: dict[str, Any]


def save(model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to one file; if writing fails, no partial file is left.

    The file contains everything that prediction and evaluation need: parameters, feature names, coefficients or
    network, baseline hazard, follow-up curves, numbers of patients and events, and the preparation of the data if
    `model` is a Pipeline with a :class:`drosurv.tables.TableEncoder` or a ``StandardScaler``. It contains no values of
    single training patients, such as ``worst_case_weights_``. The same model always gives the same bytes.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted model. If its ``network`` is a function, only its weights are saved: pass the function to :func:`load`.
    path : path
        Path of the file; no suffix is added.
    notes : mapping, optional
        Numbers, texts, lists, dicts and fitted estimators to save with the model; see :class:`SavedModel`.

    Examples
    --------
    >>> import tempfile, drosurv
    >>> data = drosurv.datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> model = drosurv.DROCox().fit(data.X, data.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     loaded = drosurv.load(f"{folder}/model")
    >>> bool((loaded.predict(data.X) == model.predict(data.X)).all())
    True
    """
    from safetensors.numpy import save as to_bytes

    check_is_fitted(model)
    arrays: Arrays = {}
    content = {
        "model": pack(model, arrays),
        "notes": pack(dict(notes or {}), arrays, "notes"),
        "versions": {"drosurv": __version__, "python": platform.python_version(), **_versions()},
    }
    # One key only, because safetensors writes several keys in random order.
    described = json.dumps({"format": FORMAT, "checksum": _checksum(content, arrays), "content": content})
    write_file(path, to_bytes(arrays, {_KEY: described}))


@cache
def _versions() -> dict[str, str]:
    """Return the versions of the installed libraries."""
    found = {}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def load(path: str | os.PathLike[str], **functions: Callable[..., Any]) -> Any:
    """Read a model that :func:`save` wrote.

    Parameters
    ----------
    path : path
        Path of the file. ValueError is raised if it is truncated or altered, is not a model of drosurv, or has a newer
        format.
    **functions : callable
        The functions to use for parameters that were functions when the model was saved, such as
        ``network=make_network``.

    Returns
    -------
    estimator or Pipeline
        The fitted model. A Pipeline predicts curves as its last step does: ``model.predict_survival_function(X)``.
    """
    return read_saved_model(path, **functions).model


def read_saved_model(path: str | os.PathLike[str], **functions: Callable[..., Any]) -> SavedModel:
    """Read a model's file with its notes and versions; parameters as in :func:`load`."""
    arrays, described = _parse(Path(path))
    form = described.get("format")
    if not isinstance(form, int) or isinstance(form, bool) or form < 1:
        raise InputError(f"{path} has the unknown format {form!r}; fit the model again and save it.")
    if form > FORMAT:
        raise InputError(
            f"{path} was written by a newer drosurv (format {form}, this version reads up to {FORMAT}): upgrade "
            "drosurv."
        )
    content: Any = described.get("content")
    if described.get("checksum") != _checksum(content, arrays):
        raise InputError(
            f"{path} was altered or damaged after it was saved (its checksum does not match): get another copy, or "
            "fit the model again."
        )
    unpacker = Unpacker(arrays, functions)
    try:
        model, notes = (unpacker.unpack(content[name]) for name in ("model", "notes"))
        saved = SavedModel(model, content["versions"], notes)
        check_is_fitted(saved.model)
    except ValueError as error:
        raise InputError(f"{path} cannot be loaded: {str(error).rstrip('.')}.") from error
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} was written by another version of drosurv and cannot be read by {__version__} ({error}): load it "
            "with the version that wrote it, or fit the model again."
        ) from error
    if unused := sorted(set(functions) - unpacker.used):
        raise InputError(
            f"{unused[0]} was given, but this parameter of the model in {path} is not a function: leave it out."
        )
    return saved


def _checksum(content: Any, arrays: Arrays) -> str:
    digest = sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        values = arrays[name]
        digest.update(json.dumps([name, values.dtype.str, values.shape]).encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _parse(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the description of a saved model."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    data = path.read_bytes()
    try:
        arrays = from_bytes(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"{path} is not a model saved by drosurv, or is incomplete: it is not a complete safetensors file."
        ) from error
    metadata = header.get("__metadata__") or {}
    if _KEY not in metadata:
        raise InputError(f"{path} is a safetensors file, but not a model saved by drosurv.")
    try:
        described = json.loads(metadata[_KEY])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} was altered or damaged: its description cannot be read.") from error
    if not isinstance(described, dict):
        raise InputError(f"{path} was altered or damaged: its description is not one of drosurv.")
    return arrays, described


def pack(value: Any, arrays: Arrays, where: str = "model") -> Any:
    """Return a value as JSON types; its arrays are added to `arrays`, under names that the JSON refers to.

    The value may consist of numbers, texts, lists, tuples, dicts, arrays, dataclasses and estimators of drosurv.
    Random generators become None, functions their name. `where` names the value in error messages.
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
    if isinstance(value, dict):
        return {"pairs": [[pack(part, arrays, where) for part in pair] for pair in value.items()]}
    if isinstance(value, np.ndarray):
        return _pack_array(value, arrays, where)
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, BaseEstimator):
        return _pack_estimator(value, arrays, where)
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"object": _reference(type(value), where), "fields": _pack_named(named, arrays, where)}
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
    if values.dtype.newbyteorder("=").name not in _NUMBERS:
        raise TypeError(f"cannot save {where}, an array of {values.dtype}; convert it to numbers.")
    name = f"{len(arrays)}:{where}"
    arrays[name] = _narrowed(values)
    return {"array": name, "dtype": values.dtype.name}


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the smallest type that represents all of them exactly."""
    native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    for dtype in _NARROWER:
        if np.dtype(dtype).itemsize >= native.dtype.itemsize or native.dtype.kind not in "iuf":
            continue
        with np.errstate(invalid="ignore", over="ignore"):
            small = native.astype(dtype)
        # Compare bytes, not values, so that -0.0 and NaN are restored exactly.
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
    """Return the name of a class in a file, with its public subpackage if that exports it."""
    package = ".".join(cls.__module__.split(".")[:2])
    exported = cls.__name__ in getattr(import_module(package), "__all__", ())
    name = f"{package if exported else _HOMES.get(cls.__name__, cls.__module__)}:{cls.__name__}"
    if _class(name) is not cls:
        raise TypeError(
            f"cannot save {where}, a {cls.__module__}.{cls.__qualname__}: only classes of drosurv and "
            f"{', '.join(_FROM_SKLEARN)} can be saved. Prepare tables with drosurv.tables.TableEncoder, or use "
            "joblib.dump."
        )
    return name


def _class(name: str) -> type | None:
    """Return the class that a file names; None if it is not allowed or does not exist in this version."""
    if name not in _FROM_SKLEARN and not _OURS.fullmatch(name):
        return None
    module, _, attribute = name.partition(":")
    if name not in _FROM_SKLEARN:
        module = _HOMES.get(attribute, module)
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return None
    allowed = isinstance(found, type) and (is_dataclass(found) or issubclass(found, BaseEstimator))
    return found if allowed else None


class Unpacker:
    """Creates values from their packed form and their arrays.

    `functions` maps the names of parameters that were functions to the functions to use.
    """

    def __init__(self, arrays: Arrays, functions: Mapping[str, Callable[..., Any]]) -> None:
        self.arrays = dict(arrays)
        self.functions = dict(functions)
        self.used: set[str] = set()

    def unpack(self, packed: Any) -> Any:
        """Return the value of a packed form."""
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
        if kind == "pairs":
            return {self.unpack(key): self.unpack(value) for key, value in content}
        if kind == "array":
            return self._array(content, packed["dtype"])
        if kind == "texts":
            return np.array([str(text) for text in content], dtype=object)
        raise InputError(f"it contains a {kind!r}, which this version does not know; upgrade drosurv")

    def _array(self, name: str, dtype: Any) -> NDArray[Any]:
        if dtype not in _NUMBERS:
            raise InputError(f"its array {name!r} has the type {dtype!r}, which is none of numbers")
        # Each array belongs to one value: many copies of one could fill the memory.
        if name not in self.arrays:
            raise InputError(f"its array {name!r} is not in the file, or used twice")
        return self.arrays.pop(name).astype(dtype)

    def _named(self, packed: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.unpack(value) for name, value in packed.items()}

    def _object(self, packed: Mapping[str, Any]) -> Any:
        """Return a dataclass or an estimator from its packed fields; raise if a class or an attribute is unknown."""
        cls = _class(packed["object"])
        if cls is None:
            raise InputError(
                f"it contains a {packed['object']!r}, which this version does not know; upgrade drosurv"
            )
        if "fields" in packed:
            return cls(**self._named(packed["fields"]))
        parameters = {name: self._parameter(name, value) for name, value in packed["parameters"].items()}
        estimator = cls(**parameters)
        for name in packed["attributes"]:
            defined = getattr(cls, name, None)
            if not _ATTRIBUTE.fullmatch(name) or callable(defined) or isinstance(defined, property):
                raise InputError(f"it sets {name!r}, which is not a fitted attribute of {cls.__name__}")
        attributes = self._named(packed["attributes"])
        coefficients = attributes.get("coef_")
        if isinstance(coefficients, np.ndarray) and not np.isfinite(coefficients).all():
            raise InputError(f"coefficients of {cls.__name__} are not finite; fit the model again")
        estimator.__setstate__({**vars(estimator), **attributes})
        return estimator

    def _parameter(self, name: str, packed: Any) -> Any:
        if not (isinstance(packed, dict) and "function" in packed):
            return self.unpack(packed)
        if name not in self.functions:
            raise InputError(
                f"its parameter {name} was the function {packed['function']}, which is not saved: pass it, "
                f"load(path, {name}=...)"
            )
        self.used.add(name)
        return self.functions[name]
