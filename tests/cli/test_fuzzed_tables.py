"""Random tables, tidy and broken: a command works or says in one line why not, and never fails otherwise."""

import random

import pytest

ODD = [
    "1", "2", "0", "3.5", "-1", "", "NA", "yes", "no", "True", "abc", "1e308", "-1e-300", "inf", "nan", "007",
    "2020-01-01", "ü", "<script>", '"a,b"', " x ", "\x1b[31m", "1_000", "９", "None", "+3", ".5",
]  # fmt: skip
CELLS = {
    "number": lambda rng: f"{10 * rng.random():.3f}",
    "whole": lambda rng: str(rng.randint(1, 30)),
    "level": lambda rng: rng.choice("abcd"),
    "gaps": lambda rng: rng.choice([f"{rng.random():.2f}", "", "NA"]),
    "odd": lambda rng: rng.choice(ODD),
    "same": lambda rng: "5",
    "flag": lambda rng: rng.choice("01"),
}


def random_table(rng):
    """Bytes of a table and what fit needs to read its events, or not."""
    # Most targets are tidy, because a fit ends at an odd one.
    kinds = rng.choices(["number", "whole", "odd"], [5, 2, 1])
    kinds += rng.choices(["flag", "level", "odd"], [5, 2, 1])
    kinds += rng.choices(list(CELLS), k=rng.randint(1, 4))
    header = ",".join(["t", "e", *(f"x{j}" for j in range(len(kinds) - 2))])
    rows = [",".join(CELLS[kind](rng) for kind in kinds) for _ in range(rng.choice([1, 3, 20, 60, 120]))]
    data = bytearray("\n".join([header, *rows]).encode())
    if rng.random() < 0.15:
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
    options = ["--event-value", "a"] if kinds[1] == "level" or rng.random() < 0.1 else []
    return bytes(data), options


@pytest.mark.parametrize("seed", range(2))
def test_fit_and_predict_work_or_say_why_not(drosurv, tmp_path, seed):
    rng, fits = random.Random(seed), 0
    # The default model with one penalty.
    default = ["--set", "l2s=0.1,"]
    plain, robust = ["--model", "cox", "--set", "l2=0.1"], ["--model", "dro-cox", "--ball", "cvar"]
    for _ in range(7):
        data, model = tmp_path / "d.csv", tmp_path / "m"
        table, options = random_table(rng)
        data.write_bytes(table)
        options += rng.choice([default, plain, robust])
        result = drosurv("fit", data, "--time", "t", "--event", "e", "-o", model, *options)
        assert result.exit_code in (0, 2), (data.read_bytes(), result.exception)
        lines = result.stderr.splitlines()
        assert all(line.startswith(("Error: ", "Warning: ", "Note: ")) for line in lines), lines
        assert sum(line.startswith("Error: ") for line in lines) == (result.exit_code == 2)
        if result.exit_code == 0:
            drosurv.ok("predict", model, data, "--times", "1,2")
            fits += 1
    assert 1 <= fits <= 6
