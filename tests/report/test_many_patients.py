"""Of very many patients, some sections and replicates use a random sample, and the method card says so."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv import CoxPH, audit
from drosurv.datasets import make_hidden_minority
from drosurv.patients import observation
from drosurv.patients.observation import Rows, sample_rows, sample_size
from drosurv.report.evidence import AuditedModel, Evidence

SIZE = 250


@pytest.fixture
def many(monkeypatch):
    """Patients who count as very many, and a model that is wrong for some of them."""
    monkeypatch.setattr(observation, "MANY_PATIENTS", SIZE)
    train, test = (
        make_hidden_minority(350, n_features=6, minority=0.25, random_state=seed) for seed in (0, 1)
    )
    return make_pipeline(StandardScaler(), CoxPH()).fit(train.X, train.y), test


@pytest.mark.sections("verdict", "missed", "remedy", "method")
def test_the_card_says_that_repairs_and_curves_are_of_a_sample(many, monkeypatch):
    model, test = many
    given = {"sensitive_features": test.sensitive_features, "features": test.X[["x1", "x5"]]}
    sampled = audit(model, test.X, test.y, **given)
    monkeypatch.setattr(observation, "MANY_PATIENTS", 350)
    whole = audit(model, test.X, test.y, **given)
    said = f"random sample of {SIZE} patients"
    limits = [" ".join(report.parts["method"].facts["limits"]) for report in (sampled, whole)]
    assert said in limits[0]
    assert "random sample" not in limits[1]
    # Findings, bounds and the group table are of all patients.
    for fact in ("status", "problems", "findings"):
        assert sampled.parts["verdict"].facts[fact] == whole.parts["verdict"].facts[fact]
    # The intervals of the c-index are those of replicates.
    tables = [
        [
            {name: value for name, value in row.items() if name not in ("c_index_low", "c_index_high")}
            for row in report.parts["verdict"].tables[0].rows
        ]
        for report in (sampled, whole)
    ]
    assert tables[0] == tables[1]
    assert sampled.parts["missed"].facts == whole.parts["missed"].facts
    counts = [
        {row["patients"] for row in report.parts["remedy"].table("remedies").rows}
        for report in (sampled, whole)
    ]
    assert max(counts[0]) < max(counts[1])


def test_rows_of_one_patient_are_drawn_together(many):
    model, test = many
    id = np.arange(350) // 5
    evidence = Evidence(
        audited_model=AuditedModel("CoxPH", model, test.X),
        y=test.y,
        follow_up=model[-1].follow_up_,
        sensitive_features=None,
        features=test.X,
        rows=Rows(patient=id),
    )
    drawn = evidence.sample
    assert SIZE <= len(drawn.y) < SIZE + 5
    assert (np.unique(drawn.rows.patient, return_counts=True)[1] == 5).all()
    assert len(drawn.audited_model.X) == len(drawn.features) == len(drawn.y)


@pytest.mark.parametrize(
    ("n", "events", "size"), [(1e6, 5e5, 40_000), (1e6, 1e4, 100_000), (1e6, 1e6, 20_000)]
)
def test_a_sample_has_twenty_thousand_events_within_limits(n, events, size):
    assert sample_size(n, events, 100_000, 20_000) == size


def test_a_sample_has_no_row_twice():
    rows = sample_rows(50, 20, np.random.default_rng(0))
    assert len(np.unique(rows)) == 20
