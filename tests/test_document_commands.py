"""Every command that the README, a page, or a command's own help shows works as it is written."""

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from typer.main import get_command

from drosurv.cli import app
from drosurv.datasets import make_hidden_minority

ROOT = Path(__file__).parents[1]
GROUP = get_command(app)
SHOWN = re.compile(
    r"^```(?:console|bash|sh|shell)\n(.*?)^```|((?:^ {4}\S[^\n]*\n)+)", re.DOTALL | re.MULTILINE
)
FILE = re.compile(r"`([\w-]+\.csv)`:\n\n```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`((?:drosurv|make) [^`]+)`")
OUTPUTS = ("-o", "--output", "--hold-out", "--report", "--table", "--plot", "--document")

# Read, but not run: they take minutes, train on all of FLC, or download. Other tests run them on less.
READ_ONLY = ("demo", "reproduce", "benchmark", "datasets fetch")
# Fewer replicates, folds and rules than by default; nothing else is changed.
FASTER = {"audit": ["--no-rules"], "certify": ["--replicates", "59"], "repair": ["--max-conditions", "1"]}


def pages():
    """Text by name: the pages, and the examples of all commands' help as one more."""
    files = [
        *ROOT.glob("*.md"),
        *(
            file
            for file in sorted((ROOT / "docs").rglob("*.md"))
            if not {"_build", "gallery"} & set(file.parts)
        ),
    ]
    found = {str(file.relative_to(ROOT)): file.read_text() for file in files}
    commands = [*GROUP.commands.values(), *GROUP.commands["datasets"].commands.values()]
    # Commands that left are hidden, and have no example.
    examples = [re.search(r"Example: (.*)", command.help)[1] for command in commands if not command.hidden]
    return {**found, "--help": "".join(f"    {example}\n" for example in examples)}


def shown(text):
    """The command lines of a page's blocks, without prompts and comments."""
    blocks = "".join(block or indented for block, indented in SHOWN.findall(text)).replace("\\\n", " ")
    lines = (line.strip().removeprefix("$ ") for line in blocks.splitlines())
    return [shlex.split(line, comments=True) for line in lines if line.startswith(("drosurv ", "make "))]


PAGES = pages()
DROSURV = {page: [line[1:] for line in shown(text) if line[0] == "drosurv"] for page, text in PAGES.items()}


def command_of(words):
    """The command that a line names, and the words after its name."""
    command = GROUP
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def read(words):
    """Parse a command line as the command would, or fail as it would; nothing runs."""
    command, rest = command_of(words)
    assert command is not GROUP, f"drosurv has no command {words[0]!r}"
    command.make_context("drosurv", list(rest))


# Patients of each table.
N = 200


@pytest.fixture
def folder(tmp_path, monkeypatch, quick_check, quick_base):
    """The files that a reader has: those that no command on a page writes."""
    data = make_hidden_minority(n_samples=N, random_state=0)
    patients = pd.DataFrame(
        {
            "id": range(1, N + 1),
            "months": np.ceil(40 * data.y["time"]),
            "died": data.y["event"].astype(int),
            "age": np.round(64 + 9 * data.X["x1"]),
            "marker": data.X["x2"].round(3),
            "sex": np.where(data.X["x3"] > 0, "f", "m"),
        }
    )
    patients.to_csv(tmp_path / "patients.csv", index=False)
    patients.head(20).drop(columns=["months", "died"]).to_csv(tmp_path / "new_patients.csv", index=False)
    entered = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) * 3, unit="D")
    last_seen = entered + pd.to_timedelta(np.ceil(30.4 * patients["months"]), unit="D")
    log = patients.drop(columns="months").assign(admitted=entered, last_seen=last_seen)
    log.to_csv(tmp_path / "log.csv", index=False, date_format="%Y-%m-%d")
    cause = patients["died"] * np.where(patients["age"] > 60, 2, 1)
    patients.drop(columns="died").assign(cause=cause).to_csv(tmp_path / "causes.csv", index=False)
    another_programs = patients[["months", "died", "sex"]].assign(risk=data.X["x1"].round(3))
    another_programs.to_csv(tmp_path / "theirs.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROSURV_DATA", str(tmp_path / "cache"))
    return tmp_path


_written = {}


def run(words, folder):
    """Run a command; one that another page has run on the same files writes what it wrote there."""
    read = [word for before, word in pairwise(["", *words]) if before not in OUTPUTS]
    inputs = (*words, *((folder / word).read_bytes() for word in read if (folder / word).is_file()))
    if inputs not in _written:
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        result = CliRunner().invoke(GROUP, [*words, *FASTER.get(words[0], [])])
        assert result.exit_code == 0, (words, result.output, result.exception)
        written = [path for path in folder.rglob("*") if before.get(path) != path.stat().st_mtime_ns]
        _written[inputs] = {path.relative_to(folder): path.read_bytes() for path in written if path.is_file()}
    for name, content in _written[inputs].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


# Four at a time, after those above them, which were run before.
PARTS = [
    pytest.param(page, stop, id=f"{page}, {min(stop, len(commands))} of {len(commands)}")
    for page, commands in DROSURV.items()
    for stop in range(4, len(commands) + 4, 4)
]


@pytest.mark.sections("verdict")
@pytest.mark.parametrize(("page", "stop"), PARTS)
def test_the_commands_of_a_page_work_from_top_to_bottom(page, stop, folder):
    for name, content in FILE.findall(PAGES[page]):
        (folder / name).write_text(content)
    for words in DROSURV[page][:stop]:
        if " ".join(words).startswith(READ_ONLY):
            read(words)
            continue
        run(words, folder)
        for option, value in pairwise(words):
            assert option not in OUTPUTS or (folder / value).stat().st_size > 0, (words, value)


def test_the_way_from_a_table_to_a_report_is_on_the_pages():
    for page in ("README.md", "docs/getting_started.md"):
        assert {"check", "fit", "audit"} <= {words[0] for words in DROSURV[page]}


def test_what_a_sentence_calls_a_command_is_one():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(PAGES.values())
    made = [line[1] for line in shown(text) if line[0] == "make"]
    for program, *words in (shlex.split(inline) for inline in INLINE.findall(text)):
        if program == "make":
            made.append(words[0])
            continue
        command, rest = command_of(words)
        assert command is not GROUP, f"drosurv has no command {words[0]!r}"
        known = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {word for word in rest if word.startswith("-")} <= known, words
    assert set(made) <= targets


@pytest.mark.parametrize("words", [["fti", "patients.csv"], ["fit", "patients.csv", "--tiem", "months"]])
def test_a_wrong_line_would_be_noticed(words):
    with pytest.raises(Exception, match=r"no command|No such option"):
        read(words)


def test_links_between_pages_lead_to_files():
    # The gallery is made from the examples when the site is built.
    made = {f"gallery/{file.stem}.rst" for file in (ROOT / "docs" / "examples").glob("*.py")} | {
        "gallery/index.rst"
    }
    broken = [
        (page, target)
        for page, text in PAGES.items()
        for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", text)
        if not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert [(page, target) for page, target in broken if page != "docs/index.md" or target not in made] == []


def test_links_and_pictures_of_the_readme_work_on_a_package_index():
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    places = (
        f"{source}/blob/main/",
        source.replace("//github.com", "//raw.githubusercontent.com") + "/main/",
    )
    targets = re.findall(r"\]\(([^)\s]+)", PAGES["README.md"])
    files = [
        target.partition("#")[0].removeprefix(places[target.startswith(places[1])]) for target in targets
    ]
    assert len(files) > 8
    assert [file for file in files if not (ROOT / file).is_file()] == []
