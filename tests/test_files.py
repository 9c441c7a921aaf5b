"""Outputs are whole or not there: links, modes, odd targets, threads and full disks."""

import ast
import os
import re
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from drosurv.files import whole_file, write_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out"


def test_bytes_and_text_are_written_as_given(path):
    write_file(path, b"\x00\xff\r\n")
    assert path.read_bytes() == b"\x00\xff\r\n"
    write_file(str(path), "größe\n")
    assert path.read_bytes() == "größe\n".encode()


def test_a_link_stays_a_link_and_what_it_points_to_is_written(tmp_path):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target")
    write_file(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_an_existing_files_mode_is_kept(path, mode):
    path.write_text("old")
    path.chmod(mode)
    write_file(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_any_program_gives(path, tmp_path):
    (tmp_path / "usual").write_text("")
    write_file(path, "new")
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_pipe_is_refused_and_left_alone(path):
    os.mkfifo(path)
    with pytest.raises(OSError, match=r"out is a device, a pipe or a socket.*name a file"):
        write_file(path, "new")
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_is_refused():
    with pytest.raises(OSError, match="/dev/null is a device"):
        write_file("/dev/null", "new")


def test_a_link_to_a_device_is_refused(path):
    path.symlink_to("/dev/null")
    with pytest.raises(OSError, match="out is a device"):
        write_file(path, "new")
    assert path.is_symlink()


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file"):
        write_file(tmp_path, "new")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"nowhere/out cannot be written, as there is no folder .*nowhere"
    ):
        write_file(tmp_path / "nowhere" / "out", "new")


def test_a_file_in_place_of_a_folder_is_named(path):
    path.write_text("")
    with pytest.raises(NotADirectoryError, match=r"out/deeper cannot be written"):
        write_file(path / "deeper", "new")


def test_links_in_a_circle_are_named(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(OSError, match="one cannot be written"):
        write_file(one, "new")


def test_the_longest_name_that_fits_is_written(tmp_path):
    path = tmp_path / ("x" * 255)
    write_file(path, "new")
    assert path.read_text() == "new"
    with pytest.raises(OSError, match="cannot be written: File name too long"):
        write_file(tmp_path / ("x" * 256), "new")


def test_a_full_disk_keeps_the_old_file_and_leaves_no_part(path, monkeypatch):
    path.write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="out cannot be written: No space left on device"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["out"]


def test_a_writer_that_fails_keeps_the_old_file_and_its_own_error(path):
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as part:
        part.write_text(f"half {1 / 0}")
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["out"]


def test_a_writers_own_disk_error_names_the_file_and_not_its_part(path):
    with (
        pytest.raises(OSError, match="out cannot be written: No space left on device"),
        whole_file(path) as part,
    ):
        raise OSError(28, "No space left on device", str(part))
    assert os.listdir(path.parent) == []


def test_a_disk_error_that_names_nothing_names_the_file(path):
    """As a write to a full disk has it: only opening a file puts its name into the error."""
    path.write_text("old")
    with pytest.raises(OSError, match="out cannot be written: No space left on device"), whole_file(path):
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["out"]


def test_the_next_save_removes_what_a_killed_program_left_and_not_what_a_live_one_writes(path):
    program = (
        "import sys, time; from drosurv.files import whole_file\n"
        "with whole_file(sys.argv[1]) as part: print(part, flush=True); time.sleep(60)"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        dead, alive = (Path(writer.stdout.readline().strip()) for writer in writers)
        writers[0].kill()
        writers[0].wait()
        other = path.with_name(".notes.part")
        other.write_text("of another program")
        long_ago = time.time() - 10
        for part in (dead, alive, other):
            os.utime(part, (long_ago, long_ago))
        write_file(path, "new")
        assert not dead.exists()
        assert alive.exists()
        assert other.exists()
        assert path.read_text() == "new"
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()


def test_threads_that_write_at_once_each_write_a_whole_file(path):
    contents = [bytes([k]) * 100_000 for k in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: write_file(path, content), contents))
    assert path.read_bytes() in contents
    assert os.listdir(path.parent) == ["out"]


IN_ONE_CALL = ("write_text", "write_bytes")
TABLES_AND_FIGURES = ("savefig", "to_csv", "to_excel", "to_parquet")


def own_writes(source: str) -> list[str]:
    """Calls that write a file under its final name, not to the `part` of `whole_file` or a run's `scratch` file."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in (*IN_ONE_CALL, *TABLES_AND_FIGURES, "open"):
            continue
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        first = ast.unparse(node.args[0]) if node.args else ""
        modes = [
            arg.value
            for arg in (*node.args, *(word.value for word in node.keywords))
            if isinstance(arg, ast.Constant)
        ]
        writes = (
            (name in IN_ONE_CALL and owner not in ("part", "scratch"))
            or (name in TABLES_AND_FIGURES and first not in ("", "part"))
            or (name == "open" and any(mode in ("w", "wb", "wt", "x", "xb") for mode in modes))
        )
        if writes:
            found.append(ast.unparse(node))
    return found


def test_every_output_of_the_program_is_written_whole():
    names = re.compile("|".join((*IN_ONE_CALL, *TABLES_AND_FIGURES, "open")))
    sources = {path: path.read_text() for path in (Path(__file__).parents[1] / "src").rglob("*.py")}
    # Parsing takes most of the time, and most files name none of these.
    found = {path.name: own_writes(source) for path, source in sources.items() if names.search(source)}
    assert {name: writes for name, writes in found.items() if writes} == {}


def test_the_check_sees_a_file_that_is_written_in_place():
    seen = [
        "path.write_text(x)",
        "open(path, 'w')",
        "path.open(mode='wb')",
        "figure.savefig(path)",
        "f.to_csv(path)",
    ]
    assert [own_writes(line) for line in seen] == [[line] for line in seen]
    assert own_writes("part.write_bytes(x); f.to_csv(index=False); f.savefig(part); open(path)") == []
