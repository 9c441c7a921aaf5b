"""Saved models: one safetensors file with everything prediction needs, no pickle and no training rows.

The file's metadata holds one JSON text with the format's version, a checksum of all that follows from the file,
the packed model, the versions of the libraries that wrote it and notes of the caller.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from drosurv._version import __version__
from drosurv.estimators.persistence.packing import Arrays, Unpacker, pack
from drosurv.files import write_file

FORMAT = 1
_KEY = "drosurv"
_LIBRARIES = ("numpy", "scikit-learn", "scikit-survival", "torch")


@dataclass(frozen=True, eq=False)
class SavedModel:
    """What a model's file holds.

    `model` is the fitted estimator or Pipeline, `versions` are those of drosurv, Python and the libraries that wrote
    the file, `notes` what the caller of :func:`save` wrote down beside the model.
    """

    model: Any
    versions: dict[str, str]
    notes: dict[str, Any]


def save(model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to exactly one file at `path`, whole or not at all.

    Everything prediction and evaluation need is kept: parameters, feature names, coefficients or network, baseline
    hazard, follow-up curves, numbers of patients and events, and the preparation of the data if `model` is a
    Pipeline with a :class:`drosurv.tables.TableEncoder` or a ``StandardScaler``. Left out is what speaks of single
    training patients (``worst_case_weights_``). The same model always gives the same bytes.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted. If its ``network`` is a function, only the parameters' values are kept: pass the function to
        :func:`load`.
    path : path
        Where to write, used as it is.
    notes : mapping, optional
        Numbers, texts, lists and dicts to keep with the model; see :class:`SavedModel`.

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
        "notes": dict(notes or {}),
        "versions": {
            "drosurv": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
        },
    }
    # One key only: safetensors writes several in an order that changes from run to run.
    described = json.dumps({"format": FORMAT, "checksum": _checksum(content, arrays), "content": content})
    write_file(path, to_bytes(arrays, {_KEY: described}))


def load(path: str | os.PathLike[str], **functions: Callable[..., Any]) -> Any:
    """Read a model that :func:`save` wrote.

    Parameters
    ----------
    path : path
        The file. One that is truncated, altered, of another program or of a newer format is a ValueError.
    **functions : callable
        The functions to use for parameters that were functions when the model was saved, such as
        ``network=make_network``.

    Returns
    -------
    estimator or Pipeline
        The fitted model.
    """
    return read_saved_model(path, **functions).model


def read_saved_model(path: str | os.PathLike[str], **functions: Callable[..., Any]) -> SavedModel:
    """Read a model's file with its notes and versions; parameters as in :func:`load`."""
    arrays, described = _parse(Path(path))
    form = described.get("format")
    if not isinstance(form, int) or isinstance(form, bool) or form < 1:
        raise ValueError(f"{path} has the unknown format {form!r}; fit the model again and save it.")
    if form > FORMAT:
        raise ValueError(
            f"{path} was written by a newer drosurv (format {form}, this version reads up to {FORMAT}): upgrade "
            "drosurv."
        )
    content: Any = described.get("content")
    if described.get("checksum") != _checksum(content, arrays):
        raise ValueError(
            f"{path} was altered or damaged after it was saved (its checksum does not match): get another copy, or "
            "fit the model again."
        )
    unpacker = Unpacker(arrays, functions)
    try:
        saved = SavedModel(unpacker.unpack(content["model"]), content["versions"], content["notes"])
        check_is_fitted(saved.model)
    except ValueError as error:
        raise ValueError(f"{path} cannot be loaded: {str(error).rstrip('.')}.") from error
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path}, written by another drosurv than this {__version__}, does not fit it ({error}): load it with the "
            "version that wrote it, or fit the model again."
        ) from error
    if unused := sorted(set(functions) - unpacker.used):
        raise ValueError(
            f"{unused[0]} was given, but in {path} that parameter is not a function: leave it away."
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
    """Arrays and description of a safetensors file of ours."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    data = path.read_bytes()
    try:
        arrays = from_bytes(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a model that drosurv saved, or only a part of one: it is no complete safetensors file."
        ) from error
    metadata = header.get("__metadata__") or {}
    if _KEY not in metadata:
        raise ValueError(f"{path} is a safetensors file, but not a model that drosurv saved.")
    try:
        described = json.loads(metadata[_KEY])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} was altered or damaged: its description cannot be read.") from error
    if not isinstance(described, dict):
        raise ValueError(f"{path} was altered or damaged: its description is not what drosurv writes.")
    return arrays, described
