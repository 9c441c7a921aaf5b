import json
import re

import numpy as np
import pandas as pd
import pytest

from drosurv.judging.rules import CodedTable
from drosurv.judging.simultaneous_tests import SIGNIFICANT
from drosurv.workflows.saved_model import OpenedModel


@pytest.fixture
def held_out(fit_once, tmp_path):
    """A model and the patients kept away from it."""
    split = ("--hold-out", "{made}/test.csv", "--hold-out-share", "0.5")
    return fit_once(tmp_path, "m", "--model", "dro-cox", "--alpha", "0.5", *split), tmp_path / "test.csv"


def test_json_has_the_bounds_of_every_measure(drosurv, held_out):
    found = drosurv.json("certify", *held_out, "--replicates", "59", "--alpha", "0.2")
    assert set(found["bounds"]) == {"observed/expected, most", "observed/expected, least", "brier", "gain"}
    most, least = (found["bounds"][f"observed/expected, {name}"] for name in ("most", "least"))
    assert least["bound"] <= least["estimate"] <= most["estimate"] <= most["bound"]
    assert found["alpha"] == 0.2


def test_tables_and_picture_are_written(drosurv, held_out, tmp_path):
    groups, picture = tmp_path / "groups.csv", tmp_path / "bounds.png"
    shown = drosurv.ok("certify", *held_out, "--replicates", 59, "-o", groups, "--plot", picture)
    assert "With 95 % confidence" in shown.output
    assert "days" in shown.output
    # The table has the numbers of the sentence.
    words = " ".join(shown.output.split())
    (most,) = re.findall(r"none has more than ([\d.]+) times", words)
    assert re.search(rf"observed/expected, most [\d.]+ {re.escape(most)} ", words)
    assert "No subgroup is beyond the bound; the group in its row is the one with that bound" in words
    assert list(pd.read_csv(groups).columns) == list(SIGNIFICANT)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_audit_says_the_same_about_a_table_with_copies(drosurv, held_out, tmp_path):
    frame, copied = pd.read_csv(held_out[1]).drop(columns="id"), tmp_path / "copied.csv"
    pd.concat([frame, frame.head(20)]).to_csv(copied, index=False)
    certified = drosurv.ok("certify", held_out[0], copied, "--seed", 3)
    options = ("--seed", 3, "-o", tmp_path / "report.json")
    audited = drosurv.ok("audit", held_out[0], copied, *options)
    facts = json.loads((tmp_path / "report.json").read_text())["sections"]["missed"]["facts"]
    named = [bound["group"] for bound in facts["bounds"]["bounds"].values()]
    assert all(any(column in group for column in frame.columns) for group in named)
    assert named
    bounds = " ".join(certified.stdout.split()).partition("With 95 % confidence, of the ")[2]
    bounds = bounds.partition(" With these ")[0]
    assert "none has more than" in bounds
    assert bounds in " ".join(audited.stdout.split())
    # The same about what cannot be excluded for a subgroup, and how many patients would exclude it.
    words = r"subgroup of 5 % of average risk .* About .* for a subgroup of 5 %"
    said = [re.findall(words, " ".join(shown.stdout.split()), re.I) for shown in (certified, audited)]
    assert said[0] == said[1] != []
    for shown in (certified, audited):
        assert "20 rows of copied.csv are copies of another row" in shown.stderr


def test_events_are_counted_until_the_horizon(drosurv, held_out):
    horizon = float(pd.read_csv(held_out[1])["days"].median())
    whole, cut = (
        drosurv.json("certify", *held_out, "--replicates", "59", *options)["overall"]
        for options in ([], ["--horizon", horizon])
    )
    assert cut["observed"] < whole["observed"]


def test_a_column_to_keep_need_not_be_used_by_the_model(drosurv, held_out):
    drosurv.ok("certify", *held_out, "--keep-columns", "id", "--replicates", 59)


def test_codes_that_the_model_takes_as_categories_are_not_cut_as_numbers(drosurv, patients, target, tmp_path):
    table, model = tmp_path / "coded.csv", tmp_path / "coded"
    patients.assign(centre=np.arange(len(patients)) % 4).to_csv(table, index=False)
    drosurv.ok("fit", table, *target, "--model", "cox", "--categorical", "centre", "-o", model)
    opened = OpenedModel.open(model)
    found = opened.subgroup_columns(opened.table(pd.read_csv(table)))
    rules = CodedTable.from_table(found)
    assert not rules.numeric[found.columns.get_loc("centre")]
    assert pd.api.types.is_numeric_dtype(opened.describing(opened.table(pd.read_csv(table)))["centre"])
