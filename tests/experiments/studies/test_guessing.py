from functools import partial

import pandas as pd
import pytest

from experiments.studies.guessing import NONE, TABLES, checked, counts, document, told_by, truths

N = 60


@pytest.mark.parametrize(
    ("columns", "answer"),
    [
        ({"status": [0, 1] * 30}, "right"),
        # The documentation says otherwise.
        ({"death": [0, 1] * 30}, "wrong"),
        ({"cens": [0, 1] * 30}, "asked"),
        ({"smoker": [0, 1] * 30}, "asked"),
        ({"status": [0, 1] * 30, "cost": [*range(1, N), N * (N - 1) // 2]}, "stopped"),
    ],
)
def test_what_is_guessed_is_compared_with_the_documentation(tmp_path, columns, answer):
    ages = [40 + 7 * i % 31 for i in range(N)]
    pd.DataFrame({"time": range(1, N + 1), **columns, "age": ages}).to_csv(tmp_path / "t.csv", index=False)
    table, told = told_by(partial(checked, tmp_path / "t.csv"))
    if table is None:
        assert told == answer
    else:
        assert (table.columns.time, table.columns.event == "status") == ("time", answer == "right")


def test_each_table_is_listed_once_and_has_an_outcome_unless_it_has_none():
    listed = list(truths())
    assert len({name for _, name, _ in listed}) == len(listed) >= 60
    assert all(bool(outcomes) == (kind != NONE) for kind, _, outcomes in listed)
    assert ("start", "stop", "event", "1") in {name: outcomes for _, name, outcomes in listed}[
        "survival/heart"
    ]


def test_the_page_counts_answers_by_kind_and_names_what_is_wrong():
    rows = [{"kind": kind, "table": "t", "answer": "asked", "said": ""} for kind in TABLES]
    rows.append({"kind": NONE, "table": "x/y", "answer": "wrong", "said": "None time status 1"})
    rows = pd.DataFrame(rows)
    assert f"| {NONE} | 2 | 0 | 1 | 0 | 1 |" in counts(rows)
    assert f"| all | {len(TABLES) + 1} | 0 | {len(TABLES)} | 0 | 1 |" in counts(rows)
    named = pd.DataFrame([{"kind": "k", "table": "u", "way": "predictions", "answer": "asked"}])
    variants = pd.DataFrame([{"variant": "v", "table": "t", "way": "check", "answer": "right"}])
    assert "Silently wrong: x/y (None time status 1)." in document(rows, named, variants)
    right = document(rows[rows["answer"] != "wrong"], named, variants)
    assert "No table was read wrongly" in right
    assert "| k | 1 asked |" in right
    assert "| v | 1 right |" in right
    assert "No variant was read wrongly" in right
    assert "Silently wrong: v of t." in document(rows, named, variants.assign(answer="wrong"))
