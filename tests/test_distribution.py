"""The wheel is complete: unpacked outside of the repository it runs, without the packages of the extras.

Without torch, scikit-survival, LightGBM, Dask and pyarrow all but the extras works.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from drosurv import DROCox, datasets

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


BLOCKED = """
import sys

tried = set()


class Blocked:
    def find_spec(self, name, path=None, target=None):
        tried.add(name)
        if name.partition(".")[0] in {"torch", "sksurv", "lightgbm", "dask", "distributed", "pyarrow"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocked())
"""

# What others wrote is imported once, which takes longest: each script runs in a copy of the process.
SCRIPTS = """
import json
import os

import numba
import pandas
import sklearn.linear_model

for line in sys.stdin:
    script, arguments = json.loads(line)
    if not os.fork():
        sys.argv[1:] = arguments
        exec(script, {"__name__": "__main__", "tried": tried})
        break
    print("ended", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""

MODELS = """
import json
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np

import drosurv
from drosurv import datasets, losses
from drosurv.estimators import *
from drosurv.objectives import chi_square, cvar, worst_case_weights
from drosurv.objectives.balls import BALLS
from drosurv.paper import RegularizedCox

data = datasets.make_hidden_minority(n_samples=80, random_state=0)
X, y, groups = data.X.to_numpy(), data.y, data.sensitive_features["membership"]
works = {
    "CoxPH": (CoxPH(), {}),
    "DROCox": (DROCox(alpha=0.5), {}),
    "DROCoxSplit": (DROCoxSplit(alpha=0.5, random_state=0), {}),
    "SubgroupRobustCox": (SubgroupRobustCox(alpha=0.3, random_state=0), {}),
    "GroupDROCox": (GroupDROCox(), {"sensitive_features": groups}),
    "AcceleratedFailureTime": (AcceleratedFailureTime(), {}),
    "DiscreteTimeHazard": (DiscreteTimeHazard(5), {}),
    "NullModel": (NullModel(), {}),
}
found = {}
with tempfile.TemporaryDirectory() as folder:
    for name, (model, given) in works.items():
        model.fit(X, y, **given).save(f"{folder}/model")
        loaded = drosurv.load(f"{folder}/model")
        curves = loaded.predict_survival_function(X, times=[0.2, 0.5])
        found[name] = bool((loaded.predict(X) == model.predict(X)).all() and (np.diff(curves) <= 0).all())
        found[f"{name} saved"] = sha256(Path(folder, "model").read_bytes()).hexdigest()
found["tried"] = sorted(tried)
refused = {
    "mlp": CoxPH("mlp"),
    "callable": CoxPH(lambda d: None),
    "RegularizedCox": RegularizedCox(),
    "DeepHit": DeepHit(),
    "adam": DROCox(solver="adam"),
    "cuda": CoxPH(device="cuda"),
    "trees": CoxPH("trees"),
}
for name, model in refused.items():
    try:
        model.fit(X, y)
    except ImportError as error:
        found[name] = str(error)
try:
    drosurv.distributed.fit(CoxPH(), type("Frame", (), {"to_delayed": None})(), time="time", event="event")
except ImportError as error:
    found["dask"] = str(error)
try:
    drosurv.distributed.fit(CoxPH(), "patients.parquet", time="time", event="event")
except ImportError as error:
    found["parquet"] = str(error)
functions = {
    losses.cox_partial: 3, losses.cox_split: 5, losses.full_likelihood: 5, losses.TorchLoss: 2
}
for function, n in functions.items():
    try:
        function(*[None] * n)
    except ImportError as error:
        found[function.__name__] = str(error)
weights = [worst_case_weights([1.0, 2.0, 3.0, 4.0], 0.5, ball=ball).sum() for ball in BALLS]
found["objectives"] = bool(
    np.allclose(weights, 1, atol=1e-12)
    and cvar([1.0, 2.0, 3.0, 4.0], 0.5) == 3.5
    and chi_square([[0.0, 0.0, 0.0, 4.0]] * 2, [1.0, 0.25]).tolist() == [1.0, 4.0]
)
print(json.dumps(found))
"""

# Every sixteenth patient of one of the three datasets: all take longer, and are in files that a test looks for.
DEMO = """
import warnings
from importlib import import_module
from importlib.metadata import distribution

# pandas 2.2 warns of its own next version.
import pandas

warnings.simplefilter("error")
demo = import_module("drosurv.workflows.demo")
print(demo.__file__)
patients = demo.datasets()[demo.WILMS]()
demo.datasets = lambda random_state=0: {demo.WILMS: lambda: patients.take(range(0, len(patients), 16))}
(command,) = distribution("drosurv").entry_points.select(group="console_scripts", name="drosurv")
command.load()()
"""


@pytest.fixture(scope="module")
def unpacked(dist, tmp_path_factory):
    """Where the wheel was unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    # What Python and numba compiled of the same sources, which would take a minute to do again.
    for cache in (ROOT / "src").rglob("__pycache__/*"):
        source = cache.parents[1] / f"{cache.name.split('.')[0]}.py"
        copy = folder / source.relative_to(ROOT / "src")
        if copy.exists() and copy.read_bytes() == source.read_bytes():
            copy.with_name("__pycache__").mkdir(exist_ok=True)
            shutil.copy(cache, copy.parent / "__pycache__" / cache.name)
            times = source.stat()
            os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    return folder


@pytest.fixture(scope="module")
def said(unpacked):
    """A function that gives what a script prints where the wheel is, which comes before the repository in the path."""
    # Sets have another order there.
    environment = os.environ | {"PYTHONPATH": str(unpacked), "PYTHONHASHSEED": "7"}
    with (unpacked / "errors").open("w+") as errors, subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", BLOCKED + SCRIPTS],
        cwd=unpacked, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
    ) as process:  # fmt: skip

        def run(script, *arguments):
            process.stdin.write(json.dumps([script, arguments]) + "\n")
            process.stdin.flush()
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("ended"):
                    break
            assert (lines.pop(), (unpacked / "errors").read_text()) == ("ended 0\n", "")
            return "".join(lines)

        run("")
        yield run


@pytest.fixture(scope="module")
def found(said):
    return json.loads(said(MODELS))


def test_the_demonstration_runs_from_the_wheel_alone(said, unpacked):
    where, told = said(DEMO, "demo").split("\n", 1)
    assert where == str(unpacked / "drosurv" / "workflows" / "demo.py")
    assert "Wilms tumour" in told


def test_linear_models_fit_predict_save_and_load_without_the_extras(found):
    works = [name.removesuffix(" saved") for name in found if name.endswith(" saved")]
    assert len(works) == 8
    assert [name for name in works if found[name] is not True] == []


def test_the_same_model_gives_the_same_bytes_there_and_here(found, tmp_path):
    data = datasets.make_hidden_minority(n_samples=80, random_state=0)
    DROCox(alpha=0.5).fit(data.X.to_numpy(), data.y).save(tmp_path / "model")
    assert found["DROCox saved"] == sha256((tmp_path / "model").read_bytes()).hexdigest()


def test_linear_models_do_not_wait_for_torch_or_matplotlib(found):
    tried = {name.partition(".")[0] for name in found["tried"]}
    assert "sklearn" in tried
    assert tried.isdisjoint({"torch", "matplotlib", "sksurv", "lightgbm", "dask"})


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("mlp", "deep"),
        ("callable", "deep"),
        ("RegularizedCox", "deep"),
        ("DeepHit", "deep"),
        ("adam", "deep"),
        ("cuda", "deep"),
        ("trees", "trees"),
        ("dask", "dask"),
        ("parquet", "formats"),
        ("cox_partial", "deep"),
        ("cox_split", "deep"),
        ("full_likelihood", "deep"),
        ("TorchLoss", "deep"),
    ],
)
def test_what_needs_an_extra_says_how_to_install_it(found, name, extra):
    assert f'pip install "drosurv[{extra}]"' in found[name]


def test_objectives_of_arrays_need_no_torch(found):
    assert found["objectives"] is True
