"""Files that a command is to write, checked before the work begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from drosurv.errors import Argument, ArgumentError

_PICTURES = (".png", ".svg", ".pdf")


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path | None]) -> None:
    """Raise if a file cannot be written, is to be written twice, or is an input; None is an option not given."""
    written = [path for path in outputs if path is not None]
    for place, path in enumerate(written):
        folder = path.parent
        if path.is_dir():
            raise ValueError(f"{path} is a folder: name a file to write.")
        if not folder.is_dir():
            raise ValueError(f"{path} cannot be written, as there is no folder {folder}: make it first.")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise ValueError(f"{path} cannot be written without permission: choose another place.")
        if any(_same(path, source) for source in inputs if source is not None):
            raise ValueError(f"{path} is an input, which would be overwritten: choose another name.")
        if any(path.absolute() == other.absolute() or _same(path, other) for other in written[:place]):
            raise ValueError(f"{path} would be written twice: choose two names.")


def check_picture(path: Path | None) -> None:
    """Raise if a picture's name does not say which kind it is."""
    if path is not None and path.suffix.lower() not in _PICTURES:
        raise ArgumentError(
            Argument("plot", str(path)), f" must end in {', '.join(_PICTURES)}, which says what to draw."
        )


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)
