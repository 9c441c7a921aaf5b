"""A DataFrame out of a pickle, whatever versions of NumPy and pandas wrote it and read it.

A pickle can run code. These are read only after their SHA-256 was checked, and even then nothing but what
a DataFrame is made of may be loaded.
"""

from __future__ import annotations

import importlib.util
import lzma
import pickle
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

_TRUSTED = ("numpy", "pandas")
_ALSO = {("builtins", "slice"), ("_codecs", "encode")}


class _FrameUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] not in _TRUSTED and (module, name) not in _ALSO:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in a table.")
        # NumPy 2 renamed its inner package, and warns of the old name.
        if module.startswith("numpy.core.") and importlib.util.find_spec("numpy._core"):
            module = module.replace("numpy.core.", "numpy._core.", 1)
        return super().find_class(module, name)


def read_pickled_frame(path: Path) -> pd.DataFrame:
    """The DataFrame in a pickle whose digest was checked, compressed with xz or not."""
    content = path.read_bytes()
    if content.startswith(b"\xfd7zXZ"):
        content = lzma.decompress(content)
    frame = _FrameUnpickler(BytesIO(content)).load()
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"{path} holds a {type(frame).__name__}, not a table.")
    return frame
