import shutil

import numpy as np
import pandas as pd
import pytest

from drosurv.datasets import make_hidden_minority


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture(autouse=True)
def quick_commands(quick_check):
    """Checks train few models, and certificates draw few replicates."""


@pytest.fixture(scope="session")
def drosurv(command_line):
    """Runs commands of ``drosurv``."""
    from drosurv.cli import app

    return command_line(app)


@pytest.fixture(scope="session")
def patients():
    """A table as users have it: text, gaps, a patient number, an event in words."""
    data = make_hidden_minority(n_samples=400, random_state=0)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"patient {i}" for i in range(400)],
            "days": np.ceil(1000 * data.y["time"]).astype(int) + 1,
            "status": np.where(data.y["event"], "dead", "alive"),
            "age": np.round(60 + 10 * data.X["x1"]),
            "kappa": data.X["x2"],
            "sex": np.where(data.X["x3"] > 0, "f", "m"),
            "stage": rng.choice(["I", "II", "III"], 400, p=[0.5, 0.3, 0.2]),
        }
    )
    frame.loc[::10, "kappa"] = np.nan
    frame.loc[::25, "stage"] = None
    return frame


@pytest.fixture(scope="session")
def patients_csv(patients):
    return patients.to_csv(index=False)


@pytest.fixture
def data(patients_csv, tmp_path):
    path = tmp_path / "patients.csv"
    path.write_text(patients_csv)
    return path


@pytest.fixture(scope="session")
def target():
    return ["--time", "days", "--event", "status", "--event-value", "dead", "--drop", "id"]


@pytest.fixture(scope="session")
def plain():
    return ["--model", "cox"]


@pytest.fixture(scope="session")
def fit_once(drosurv, patients, target, tmp_path_factory):
    """Fits by the command line, each once for all tests: a test gets copies of the files, which it may change."""
    table = tmp_path_factory.mktemp("table") / "patients.csv"
    patients.to_csv(table, index=False)
    folders = {}

    def fit(folder, name, *options):
        if (name, options) not in folders:
            made = folders[name, options] = tmp_path_factory.mktemp("fitted")
            words = (word.format(made=made) for word in options)
            drosurv.ok("fit", table, *target, "--model", "cox", *words, "-o", made / name)
        shutil.copytree(folders[name, options], folder, dirs_exist_ok=True)
        return folder / name

    return fit


@pytest.fixture
def model(fit_once, tmp_path):
    return fit_once(tmp_path, "model")
