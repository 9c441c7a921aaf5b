"""Random tables, tidy and broken: a command works or says in one line why not, and never fails otherwise."""

import random

import pytest

ODD = [
    *(
        "1",
        "2",
        "0",
        "3.5",
        "-1",
        "",
        "NA",
        "yes",
        "no",
        "True",
        "abc",
        "1e308",
        "-1e-300",
        "inf",
        "nan",
        "007",
    ),
    *("2020-01-01", "ü", "<script>", '"a,b"', " x ", "\x1b[31m", "1_000", "９", "None", "+3", ".5"),
]
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
    kinds = [
        rng.choice(["number", "number", "whole", "odd"]),
        rng.choice(["flag", "flag", "flag", "level", "odd"]),
    ]
    kinds += rng.choices(list(CELLS), k=rng.randint(1, 4))
    header = ",".join(["t", "e", *(f"x{j}" for j in range(len(kinds) - 2))])
    rows = [",".join(CELLS[kind](rng) for kind in kinds) for _ in range(rng.choice([1, 2, 3, 20, 60, 120]))]
    data = bytearray("\n".join([header, *rows]).encode())
    if rng.random() < 0.15:
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


@pytest.mark.parametrize("seed", range(2))
def test_fit_and_predict_work_or_say_why_not(drosurv, tmp_path, seed):
    rng = random.Random(seed)
    for _ in range(15):
        data, model = tmp_path / "d.csv", tmp_path / "m"
        data.write_bytes(random_table(rng))
        options = rng.choice(
            [
                [],
                ["--model", "cox", "--set", "l2=0.1"],
                ["--event-value", "a"],
                ["--model", "dro-cox", "--ball", "cvar"],
            ]
        )
        result = drosurv("fit", data, "--time", "t", "--event", "e", "-o", model, *options)
        assert result.exit_code in (0, 2), (data.read_bytes(), result.exception)
        lines = result.stderr.splitlines()
        assert all(line.startswith(("Error: ", "Warning: ", "Note: ")) for line in lines), lines
        assert sum(line.startswith("Error: ") for line in lines) == (result.exit_code == 2)
        if result.exit_code == 0:
            drosurv.ok("predict", model, data, "--times", "1,2")
