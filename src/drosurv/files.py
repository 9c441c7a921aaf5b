"""Write files atomically, so that a file appears whole or not at all; import every file of a package."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

try:
    import fcntl as _fcntl
except ImportError:
    # Windows does not have it.
    fcntl: Any = None
else:
    fcntl = _fcntl

# Names of temporary files, and seconds after which a program that lives has locked its own.
_PART, _MOMENT = re.compile(r"\.[0-9a-f]{16}\.part"), 1.0


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write bytes, or text as UTF-8; a reader sees the old file or the new one, never a part.

    If `path` is a link, the file it points to is replaced. An existing file keeps its mode. Raise if `path` is a
    folder, a device or a pipe.
    """
    with whole_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new, empty file to write to; when the context ends without an error it replaces `path`.

    For writers that need a file; otherwise as :func:`write_file`.
    """
    given = Path(path)
    mode = check_writable(given)
    target = given.resolve() if given.is_symlink() else given
    # A random name, because threads may write at once.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        _remove_abandoned(target.parent)
        with _locked(part):
            yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        if mode is not None:
            part.chmod(mode)
        part.replace(target)
    except OSError as error:
        # The error names the temporary file, which the user does not know; on a full disk it names no file.
        of_part = error.errno is not None and error.filename in (None, str(part))
        raise (_error_for(given, error) if of_part else error) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _locked(part: Path) -> Iterator[None]:
    """Make a file that is locked while it is written, so that its writer is known to live."""
    part.touch(exist_ok=False)
    with part.open("rb") as held:
        # Some file systems have no locks; nobody removes the file there.
        with suppress(OSError):
            if fcntl is not None:
                fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of killed programs: nobody holds their locks."""
    if fcntl is None:
        return
    for part in folder.glob(".*.part"):
        if not _PART.fullmatch(part.name):
            continue
        # Another program may remove it at the same time, or own it.
        with suppress(OSError), part.open("rb") as left:
            # A new file is locked a moment after it is made.
            if time.time() - part.stat().st_mtime > _MOMENT:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()


def check_writable(path: Path) -> int | None:
    """Raise if `path` cannot be written; return the mode of the existing file, None if there is none."""
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        # A link may point to a file that does not exist yet.
        folder = (path.resolve() if path.is_symlink() else path).parent
        if not folder.is_dir():
            text = f"{path} cannot be written, as there is no folder {folder}: make it first."
            raise FileNotFoundError(text) from None
        mode, place = None, folder
    except OSError as error:
        raise _error_for(path, error) from error
    else:
        mode, place = stat.S_IMODE(found), path
        if stat.S_ISDIR(found):
            raise IsADirectoryError(f"{path} is a folder: name a file to write.")
        if not stat.S_ISREG(found):
            raise OSError(f"{path} is a device, a pipe or a socket, not a file: name a file to write.")
    if not os.access(place, os.W_OK):
        raise PermissionError(f"{path} cannot be written without permission: choose another folder.")
    return mode


def _error_for(path: Path, error: OSError) -> OSError:
    """Return an error of the same type that names the file the caller gave."""
    return type(error)(f"{path} cannot be written: {error.strerror or error}.")


def import_files(package: str) -> list[ModuleType]:
    """Import every file of an imported package, so that a new file needs no line elsewhere; return the modules."""
    return [import_module(f"{package}.{file.name}") for file in iter_modules(sys.modules[package].__path__)]
