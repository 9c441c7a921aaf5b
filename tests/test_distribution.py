"""The wheel is complete: unpacked outside of the repository, it runs."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "from setuptools import build_meta; build_meta.build_sdist('dist'); build_meta.build_wheel('dist')"


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Wheel and sdist of a copy of the sources, as `make dist` builds them."""
    folder = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    subprocess.run([sys.executable, "-c", BUILD], cwd=folder, check=True, capture_output=True)
    return folder / "dist"


def test_wheel_and_sources_hold_every_file_of_the_package(dist):
    (wheel,), (sources,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        in_sources = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {f"src/{name}" for name in archive.namelist()}
    package = ROOT / "src" / "drosurv"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {str(path.relative_to(ROOT)) for path in files} <= in_sources & in_wheel


# Every sixteenth patient of one of the three datasets: all take longer, and are in files that the test above looks for.
DEMO = """
from importlib import import_module
from importlib.metadata import distribution

import drosurv

print(drosurv.__file__)
demo = import_module("drosurv.workflows.demo")
patients = demo.datasets()[demo.WILMS]()
demo.datasets = lambda random_state=0: {demo.WILMS: lambda: patients.take(range(0, len(patients), 16))}
(command,) = distribution("drosurv").entry_points.select(group="console_scripts", name="drosurv")
command.load()()
"""


def test_the_demonstration_runs_from_the_wheel_alone(dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    # What Python and numba compiled of the same sources, which would take a minute to do again.
    for cache in (ROOT / "src").rglob("__pycache__/*"):
        source = cache.parents[1] / f"{cache.name.split('.')[0]}.py"
        copy = tmp_path / source.relative_to(ROOT / "src")
        if copy.exists() and copy.read_bytes() == source.read_bytes():
            copy.with_name("__pycache__").mkdir(exist_ok=True)
            shutil.copy(cache, copy.parent / "__pycache__" / cache.name)
            times = source.stat()
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    # The repository, which is installed as well, comes later in the path.
    shown = subprocess.run(
        [sys.executable, "-c", DEMO, "demo"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    where, told = shown.stdout.split("\n", 1)
    assert where == str(tmp_path / "drosurv" / "__init__.py")
    assert "Wilms tumour" in told
