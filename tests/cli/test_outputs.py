import inspect
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from drosurv.cli.options import COMMANDS
from drosurv.cli.outputs import check_outputs, print_times
from drosurv.presentation import Column, Table

TARGET = ("--time", "days", "--event", "status")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a\n1\n")
    return path


def test_new_files_and_old_ones_that_are_no_input_may_be_written(tmp_path, table):
    (tmp_path / "old").write_text("")
    outputs = [tmp_path / "old", tmp_path / "new", None]
    assert check_outputs(outputs, [table, None, tmp_path / "not there"]) is None


def test_an_input_is_not_overwritten_under_another_name_either(tmp_path, table):
    (tmp_path / "link").symlink_to(table)
    for path in (table, tmp_path / "link"):
        with pytest.raises(ValueError, match="is an input, which would be overwritten: choose another name"):
            check_outputs([path], [table])


@pytest.mark.parametrize(
    ("content", "ours"),
    [
        ("id,log_risk\n1,0.5\n", True),
        ("log_risk,survival_12,survival_24.5\n", True),
        ("attribute,group,metric,kind,better,value\n", True),
        ('<meta name="generator" content="drosurv 0.3">', True),
        ("# Audit\n\ndrosurv 0.3.0, 2026-01-02.\n", True),
        ("", True),
        ("id,days,died\n1,2,3\n", False),
        # Predictions of another program beside what happened, and a table with the times in such a column.
        ("time,event,log_risk\n1,2,3\n", False),
        ("survival_12,survival_24\n.9,.8\n", False),
        ("survival_months,metric,alpha\n1,2,3\n", False),
        ("notes of mine on drosurv", False),
        ("drosurv fit patients.csv -o model\n", False),
    ],
)
def test_only_files_that_drosurv_wrote_are_overwritten_unless_forced(tmp_path, content, ours):
    path = tmp_path / "file"
    path.write_text(content)
    check_outputs([path], [], force=True)
    if ours:
        check_outputs([path], [])
    else:
        with pytest.raises(
            ValueError, match="was not written by drosurv: choose another name, or pass --force"
        ):
            check_outputs([path], [])


# Arguments that name a file to read; those that name any other file write it.
READ = {"data", "model", "predictions", "coefficients", "reference", "train", "hold_out"}
# What a command needs beside an output; its inputs are patients, model and theirs.
NEEDS = {
    "demo": (),
    "plan": ("patients", *TARGET, "--model", "model"),
    "check": ("patients",),
    "fit": ("patients", *TARGET),
    "summary": ("model",),
    "predict": ("model", "patients"),
    "evaluate": ("model", "patients"),
    "audit": ("model", "patients"),
    "repair": ("patients", *TARGET, "--predictions", "theirs"),
    "certify": ("model", "patients"),
    "monitor": ("model", "patients"),
}


def outputs():
    """Every command with each of its options that name a file to write."""
    for command in COMMANDS:
        for name, parameter in inspect.signature(command).parameters.items():
            if name not in READ and parameter.annotation.__origin__ in (Path, Path | None):
                yield command.__name__, f"--{name}"


@pytest.mark.parametrize(("command", "option"), [*outputs()])
def test_no_command_overwrites_an_input_or_a_file_that_drosurv_did_not_write(
    drosurv, data, model, monkeypatch, command, option
):
    monkeypatch.chdir(data.parent)
    suffix = ".png" if option == "--plot" else ".html" if command in ("audit", "check", "demo") else ".csv"
    mine = {"mine": b"mine", "mine_plain": b"mine"}  # Pages of the demo have a suffix.
    files = {"patients": data.read_bytes(), "model": model.read_bytes(), "theirs": b"12\n", **mine}
    for name, content in files.items():
        Path(name + suffix).write_bytes(content)
    words = [word + suffix if word in files else word for word in NEEDS[command]]
    for name in {*files} & {*NEEDS[command]}:
        line = drosurv.fails(command, *words, option, name + suffix)
        assert "is an input, which would be overwritten" in line
    line = drosurv.fails(command, *words, option, f"mine{suffix}")
    assert "exists and was not written by drosurv: choose another name, or pass --force" in line
    assert {name: Path(name + suffix).read_bytes() for name in files} == files


def test_the_summary_beside_a_report_is_not_overwritten_either(drosurv, data, model, monkeypatch):
    monkeypatch.chdir(data.parent)
    Path("report.summary.json").write_text("{}")
    line = drosurv.fails("audit", model, data, "-o", "report.html")
    assert "report.summary.json exists and was not written by drosurv" in line


@pytest.mark.sections("verdict", "method")
def test_what_a_command_wrote_may_be_written_again(drosurv, data, model, tmp_path):
    at = tmp_path
    for command, *outputs in (
        (("predict", model, data, "--times", "100", "--keep", "id"), "-o", at / "p.csv"),
        (("summary", model), "-o", at / "s.csv"),
        (("evaluate", model, data), "-o", at / "e.csv"),
        (("audit", model, data, "--no-rules"), "-o", at / "a.md"),
        (("certify", model, data, "--replicates", "59"), "--plot", at / "c.svg", "-o", at / "c.csv"),
    ):
        drosurv.ok(*command, *outputs)
        assert check_outputs(outputs[1::2], []) is None


def test_two_outputs_are_two_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="written twice"):
        check_outputs([Path("a"), tmp_path / "a"], [])


def test_a_folder_and_a_missing_folder_are_named(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file"):
        check_outputs([tmp_path], [])
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none: make it first"):
        check_outputs([tmp_path / "none" / "m"], [])


def test_what_may_not_be_written_is_refused_before_the_work(tmp_path, table, monkeypatch):
    # The administrator may write everywhere, so the system's answer is replaced, not the folder's permissions.
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(PermissionError, match="without permission"):
        check_outputs([tmp_path / "new"], [table])


@pytest.mark.parametrize("name", ["front", "front.txt"])
def test_a_picture_says_what_it_is(name):
    check_outputs([], [], plot=None)
    check_outputs([], [], plot=Path("front.SVG"))
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg, \.pdf"):
        check_outputs([], [], plot=Path(name))


FULL = OSError(28, "No space left on device")


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that is full from now on: what is written by any means fails as the system says it."""

    def fill():
        def no_space(*_, **__):
            raise FULL

        monkeypatch.setattr(Path, "write_bytes", no_space)
        monkeypatch.setattr(pd.DataFrame, "to_csv", no_space)
        monkeypatch.setattr(os, "fsync", no_space)

    return fill


@pytest.fixture(scope="module")
def trained(drosurv, patients, tmp_path_factory):
    """A folder with a table and a model trained on it."""
    folder = tmp_path_factory.mktemp("trained")
    patients.head(150).to_csv(folder / "p.csv", index=False)
    drosurv.ok("fit", folder / "p.csv", *TARGET, "--drop", "id,stage", "--model", "cox", "-o", folder / "m")
    return folder


@pytest.mark.sections("verdict", "method")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["fit", "p.csv", *TARGET, "--drop", "id", "--model", "cox", "-o", "old"], "old"),
        (["predict", "m", "p.csv", "-o", "old"], "old"),
        (["evaluate", "m", "p.csv", "-o", "old"], "old"),
        (["summary", "m", "-o", "old"], "old"),
        (["audit", "m", "p.csv", "--no-rules", "-o", "old.html"], "old.html"),
        (["certify", "m", "p.csv", "--horizon", "300", "--replicates", "59", "--plot", "old.png"], "old.png"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_full_disk_leaves_the_old_file_and_no_part_of_a_new_one(
    drosurv, trained, tmp_path, monkeypatch, full_disk, command, output
):
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path(output).write_text('{"drosurv": 0}')
    before = set(os.listdir())
    full_disk()
    result = drosurv(*command)
    assert result.exit_code == 2, (result.output, result.exception)
    assert f"Error: {output} cannot be written: No space left on device." in result.stderr
    assert Path(output).read_text() == '{"drosurv": 0}'
    assert set(os.listdir()) == before


def test_of_many_groups_the_first_are_printed_and_the_others_are_counted(capsys):
    groups = tuple({"who": f"site {k:02}", "2": f"{k} (1 to 40), 9 expected"} for k in range(14))
    columns = (Column("who", "Group"), Column("2", "By 2 years"))
    print_times(Table("of_100_patients", "Of 100 patients", columns, groups), "the page")
    shown = capsys.readouterr().out
    assert "site 11" in shown
    assert "site 12" not in shown
    assert "2 more groups are in the page." in shown
