import os
from pathlib import Path

import pytest

from drosurv.cli.outputs import check_outputs, check_picture


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a\n1\n")
    return path


def test_new_files_and_old_ones_that_are_no_input_may_be_written(tmp_path, data):
    (tmp_path / "old").write_text("")
    check_outputs([tmp_path / "old", tmp_path / "new", None], [data, None, tmp_path / "not there"])


def test_an_input_is_not_overwritten_under_another_name_either(tmp_path, data):
    (tmp_path / "link").symlink_to(data)
    for path in (data, tmp_path / "link"):
        with pytest.raises(ValueError, match="is an input, which would be overwritten: choose another name"):
            check_outputs([path], [data])


def test_two_outputs_are_two_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="written twice"):
        check_outputs([Path("a"), tmp_path / "a"], [])


def test_a_folder_and_a_missing_folder_are_named(tmp_path):
    with pytest.raises(ValueError, match="is a folder: name a file"):
        check_outputs([tmp_path], [])
    with pytest.raises(ValueError, match=r"there is no folder .*none: make it first"):
        check_outputs([tmp_path / "none" / "m"], [])


def test_what_may_not_be_written_is_refused_before_the_work(tmp_path, data, monkeypatch):
    # The administrator may write everywhere, so the system's answer is replaced, not the folder's permissions.
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(ValueError, match="without permission"):
        check_outputs([tmp_path / "new"], [data])


@pytest.mark.parametrize("name", ["front", "front.txt"])
def test_a_picture_says_what_it_is(name):
    check_picture(None)
    check_picture(Path("front.SVG"))
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg, \.pdf"):
        check_picture(Path(name))
