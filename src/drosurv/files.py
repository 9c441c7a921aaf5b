"""Writing files: every output of the program appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write bytes, or text as UTF-8, so that a reader sees the old file or the new one, never a part.

    What a link points to is replaced and the link stays. An existing file keeps its mode. A folder, a device or a pipe
    is refused.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from drosurv.files import write_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(f"{folder}/note.txt", "kept")
    ...     pathlib.Path(folder, "note.txt").read_text()
    'kept'
    """
    with whole_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new, empty file to write to; when the context ends without an error it takes the place of `path`.

    For writers that want a file rather than bytes; otherwise as :func:`write_file`.
    """
    given = Path(path)
    mode = check_writable(given)
    target = given.resolve() if given.is_symlink() else given
    # The name is drawn, not made of the process: threads may write at once, and a killed program may have left its
    # part behind.
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        part.touch(exist_ok=False)
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        if mode is not None:
            part.chmod(mode)
        part.replace(target)
    except OSError as error:
        # The error names the temporary part, of which the user knows nothing; on a full disk it names no file at all.
        own = error.errno is not None and error.filename in (None, str(part))
        raise (_plainer(given, error) if own else error) from error
    finally:
        part.unlink(missing_ok=True)


def check_writable(path: Path) -> int | None:
    """Raise if no file can be written there; the permissions of the one that is replaced, None if there is none yet."""
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        # A link may point to what is not there yet.
        folder = (path.resolve() if path.is_symlink() else path).parent
        if not folder.is_dir():
            text = f"{path} cannot be written, as there is no folder {folder}: make it first."
            raise FileNotFoundError(text) from None
        mode, place = None, folder
    except OSError as error:
        raise _plainer(path, error) from error
    else:
        mode, place = stat.S_IMODE(found), path
        if stat.S_ISDIR(found):
            raise IsADirectoryError(f"{path} is a folder: name a file to write.")
        if not stat.S_ISREG(found):
            raise OSError(f"{path} is a device, a pipe or a socket, not a file: name a file to write.")
    if not os.access(place, os.W_OK):
        raise PermissionError(f"{path} cannot be written without permission: choose another place.")
    return mode


def _plainer(path: Path, error: OSError) -> OSError:
    """The same kind of error, in words that name the file the caller gave."""
    return type(error)(f"{path} cannot be written: {error.strerror or error}.")
