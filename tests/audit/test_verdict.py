"""The first screen: verdicts follow from the numbers, and patients of 100 from who is in which group."""

import json
import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, DROCox, NullModel, Surv
from drosurv.audit import audit
from drosurv.audit.judgement import Grounds, next_steps, verdict
from drosurv.audit.report import SCHEMA, VERSION
from drosurv.audit.sections import causes
from drosurv.audit.standing import Standing, per_100
from drosurv.datasets import make_hidden_minority
from drosurv.evaluation import AgainstPlain, SmallGroupWarning, evaluate
from drosurv.evaluation.attributes import parse_attributes
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.insight import Condition, Rule
from drosurv.presentation import GroupGap, GroupNumber, p_text

NAN = float("nan")


def standing(attribute="overall", group="all", no_model="better", reference=""):
    return Standing(attribute, group, 100, 50, 50, (0.7, 0.6, 0.8), NAN, no_model, reference, NAN, NAN)


def gap(beyond):
    return GroupGap("sex", ("f", 0.6), ("m", 0.7), 0.0, 0.2, 0.01 if beyond else 0.4, 0.01, 1, beyond)


def beside_cox(*standings):
    """Plain Cox as the reference, beside which the groups stand so."""
    table = pd.DataFrame(
        {
            "attribute": [group.attribute for group in standings],
            "group": [group.group for group in standings],
            "verdict": [group.reference for group in standings],
            "difference": 0.01,
        }
    )
    return AgainstPlain(table, 1.0, 0.9, 1.1, 1.0)


MEN = standing("sex", "m")
OFF = GroupNumber("sex", "f", 0.1, 0.03, 0.17)


@pytest.mark.parametrize(
    ("everybody", "women", "beyond", "off", "status", "words"),
    [
        (standing(), standing("sex", "f"), False, [], "clear", "No group is seen to be badly served"),
        (standing(), standing("sex", "f", "worse"), True, [OFF], "harm", "Not fit for sex f"),
        (standing(reference="worse"), standing("sex", "f"), True, [], "dominated", "patients as a whole"),
        (
            standing(reference=""),
            standing("sex", "f", reference="worse"),
            True,
            [],
            "dominated",
            "sex f is served",
        ),
        (standing(reference="better"), standing("sex", "f", reference="worse"), True, [], "unequal", "sex f"),
        (standing(), standing("sex", "f"), True, [], "unequal", "sex f is served worst"),
        (
            standing(reference="better"),
            standing("sex", "f", reference="worse"),
            False,
            [],
            "unequal",
            "plain Cox would serve sex f better",
        ),
        (standing(), standing("sex", "f"), False, [OFF], "miscalibrated", "off for sex f"),
        (
            standing(),
            standing("sex", "f", "not shown"),
            False,
            [],
            "unclear",
            "that is not shown for sex f",
        ),
        (
            standing(no_model="not tested"),
            standing("sex", "f", "not tested"),
            False,
            [],
            "untested",
            "No intervals",
        ),
    ],
)
def test_the_gravest_finding_gives_the_verdict(everybody, women, beyond, off, status, words):
    against = beside_cox(everybody, women, MEN)
    found, text = verdict(Grounds(everybody, [women, MEN], gap(beyond), off, None, against))
    assert found == status
    assert words in text
    steps = next_steps(Grounds(everybody, [women, MEN], gap(beyond), off, None, against), status)
    # What the page speaks against, no step lets pass.
    assert any("Nothing on this page speaks against" in step for step in steps) == (status == "clear")


def test_a_group_that_only_the_search_found_is_harmed_too():
    rule = Rule((Condition("age", ">", 71.0),))
    for named in ([], [MEN, MEN]):
        found = Grounds(standing(), named, gap(False), rules=[rule])
        status, text = verdict(found)
        assert status == "harm"
        assert text.startswith("Not fit for patients with age > 71: there, predictions are worse")
    assert Grounds(standing(), [standing("sex", "f", "worse")], rules=[rule]).harmed == [
        "sex f",
        "patients with age > 71",
    ]


def test_a_model_that_is_dominated_is_not_weighed_against_gains_of_others():
    women = standing("sex", "f", "worse", "worse")
    found = Grounds(standing(), [women, MEN], gap(False), against=beside_cox(standing(), women, MEN))
    status, _ = verdict(found)
    assert status == "harm"
    assert next_steps(found, status)[1].startswith("Use plain Cox, or write down")


def test_a_repair_that_passed_is_in_the_verdict_and_among_the_next_steps():
    found = Grounds(standing(), [MEN, MEN], gap(False), [OFF], repaired=["patients with age > 70"])
    status, text = verdict(found)
    assert (status, text) == (
        "miscalibrated",
        "The predicted probabilities are off for sex f and patients with age > 70.",
    )
    assert next_steps(found, status)[0].startswith("Repair the model for patients with age > 70 (see Remedy)")


def test_predictions_that_are_off_for_all_together_are_said_to_be():
    together = replace(OFF, attribute="overall", group="all")
    found = Grounds(standing(), [MEN, standing("sex", "f")], gap(False), [together])
    whole = "The predicted probabilities are off for patients as a whole."
    assert verdict(found) == ("miscalibrated", whole)
    assert next_steps(found, "miscalibrated")[0] == "Recalibrate before anybody is told a probability."
    assert verdict(found._replace(repaired=["patients as a whole"]))[1] == whole


def test_the_first_screen_says_what_the_details_say_of_everybody():
    train, test = make_hidden_minority(300, random_state=0), make_hidden_minority(400, random_state=1)
    half = np.arange(400) % 20  # groups too small to show anything alone
    later = Surv.from_arrays(test.y["event"], 1.4 * test.y["time"])
    told = {"sensitive_features": {"part": half.astype(str)}, "n_bootstrap": 20, "search_rules": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit(CoxPH().fit(train.X, train.y), test.X, later, **told)
    (off,) = (s.text for s in report.audited.statements if s.code == "calibration")
    assert "too low for all patients together" in off
    steps = [s.text for s in report.parts["verdict"].statements if s.code == "next_step"]
    assert "Recalibrate before anybody is told a probability." in steps


def test_a_slope_far_from_1_is_said_in_the_verdict():
    slope = SimpleNamespace(value=5.08, low=3.0, high=7.0)
    status, text = verdict(Grounds(standing(), [MEN, MEN], gap(False), slope=slope))
    assert status == "miscalibrated"
    assert "too timid for patients as a whole: differences between patients are understated" in text


def test_a_model_that_does_as_well_as_plain_cox_is_no_reason_for_it():
    found = Grounds(standing(), [MEN, MEN], gap(False), against=beside_cox(standing(), MEN))
    assert any(step.startswith("Prefer plain Cox, which does as well") for step in next_steps(found, "clear"))
    same = replace(found.against, table=found.against.table.assign(difference=1e-9))
    assert str(same) == "The model predicts what plain Cox does."
    steps = next_steps(found._replace(against=same), "clear")
    assert not any(step.startswith("Prefer") for step in steps)


def test_patients_of_whom_something_is_missing_are_not_asked_for():
    named = [MEN, standing("sex", "f", "not shown"), standing("sex", "missing", "too few")]
    (step,) = (text for text in next_steps(Grounds(standing(), named), "unclear") if "Collect" in text)
    assert step == "Collect more patients of sex f: no benefit is shown for them yet."


def test_when_nobody_alone_is_shown_to_gain_the_groups_are_not_listed():
    unclear = [standing("sex", label, "not shown") for label in ("f", "m")]
    missing = standing("sex", "missing", "too few")
    found = Grounds(standing(), [*unclear, missing], gap(False))
    status, text = verdict(found)
    assert status == "unclear"
    assert text.startswith("No harm is shown, and patients as a whole are better served than without a model")
    assert text.endswith("that is not shown for any single group.")
    assert "Collect more patients of every group: no benefit is shown for them yet." in next_steps(
        found, status
    )
    one = verdict(found._replace(named=[MEN, *unclear[:1], missing]))[1]
    assert one.endswith("that is not shown for sex f.")
    nobody = verdict(found._replace(everybody=standing(no_model="not shown")))[1]
    assert nobody == (
        "No harm is shown, but patients as a whole are not shown to be better served than without a model."
    )


def test_scores_alone_are_held_against_chance():
    ranked = Grounds(standing(no_model="worse"), [MEN, MEN], gap(False), ranks_only=True)
    assert verdict(ranked)[1] == "Patients are ranked worse than by chance."
    found = verdict(ranked._replace(everybody=standing()))[1]
    assert "every group that can be judged is ranked better than by chance" in found


def test_without_replicates_no_group_is_called_small():
    named = [standing("sex", label, "not tested") for label in ("f", "m")]
    found = Grounds(standing(no_model="not tested"), named, gap(False))
    steps = next_steps(found, verdict(found)[0])
    assert steps[0] == "Audit again with bootstrap replicates, which tell a difference from noise."
    assert not any("Collect" in step for step in steps)


def test_when_every_group_is_off_none_is_above_all():
    both = Grounds(standing(), [MEN, standing("sex", "f")], gap(False), [OFF, replace(OFF, group="m")])
    assert "Recalibrate before anybody is told a probability." in next_steps(both, "miscalibrated")


def test_when_all_groups_of_an_attribute_are_off_alike_it_is_no_matter_of_theirs():
    women, old, young = standing("sex", "f"), standing("age", "old"), standing("age", "young")
    ages = [replace(OFF, attribute="age", group=group) for group in ("old", "young")]
    found = Grounds(standing(), [MEN, women, old, young], gap(False), [OFF, *ages])
    assert verdict(found)[1] == "The predicted probabilities are off for patients as a whole."
    opposed = found._replace(off=[ages[0], replace(ages[1], value=-0.1)])
    assert verdict(opposed)[1] == "The predicted probabilities are off for age old and age young."


def test_groups_that_may_be_one_are_pointed_out():
    steps = next_steps(Grounds(standing(), [MEN, MEN], gap(False), alike=["sex F/female"]), "clear")
    assert steps[0] == "Check the table: sex F/female may be one group in several spellings."


def test_one_group_and_cause_off_among_many_may_be_chance():
    """Alone the interval shows it; of thirty such intervals, one is there by chance."""
    column = {
        "horizon": 5.0,
        "cause": 1,
        "attribute": "ward",
        "events": 30,
        "patients": 60,
        "c_index": 0.7,
        "overstated": 0.1,
    }
    rows = [
        {**column, "group": str(k), "observed": 0.2, "low": 0.18, "high": 0.22, "others_censored": 0.3}
        for k in range(30)
    ]
    frame = pd.DataFrame(rows).assign(predicted=[0.225, *[0.2] * 29])

    def off(table):
        case = SimpleNamespace(also={"causes": table}, time_unit="days", level=0.95)
        return [s.text for s in causes.collect(case).statements if s.code == "cause_calibration"]

    assert off(frame.head(1)) == ["Cause 1: ward = 0 had it by 5 days in 20.0 %, predicted were 22.5 %."]
    assert off(frame) == []
    assert len(off(frame.assign(predicted=[0.3, *[0.2] * 29]))) == 1


def test_an_incidence_that_is_off_is_in_the_verdict():
    found = Grounds(standing(), [MEN, MEN], gap(False), causes=["sex f (cause 2)"])
    assert verdict(found) == ("miscalibrated", "The predicted probabilities are off for sex f (cause 2).")
    assert next_steps(found, "miscalibrated")[0].startswith("Look at Cause by cause")


def test_without_groups_or_without_two_large_ones_nothing_is_claimed():
    assert verdict(Grounds(standing(), []))[0] == "no_groups"
    assert verdict(Grounds(standing(), [MEN], against=beside_cox(standing(), MEN)))[0] == "too_few"


def test_a_patient_counts_by_the_worst_of_his_groups():
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["f", "m"], 300), rng.choice(["old", "young"], 300, p=[0.2, 0.8])
    shown = SimpleNamespace(target=range(300), attributes=parse_attributes({"sex": sex, "age": age}, 300))
    groups = [
        standing(),
        standing("sex", "f", "worse"),
        standing("sex", "m", "better"),
        standing("age", "old", "not shown"),
        standing("age", "young", "better"),
    ]
    found = per_100(shown, groups, "no_model")
    worse, unclear = (sex == "f"), (sex == "m") & (age == "old")
    assert found["worse"] == pytest.approx(100 * worse.mean(), abs=1)
    assert found["not shown"] == pytest.approx(100 * unclear.mean(), abs=1)
    assert sum(found.values()) == 100
    # Whoever is in a group that is not shown is in none that is shown to be better served.
    shown.attributes[1] = shown.attributes[1].without([("age", "old")])
    assert per_100(shown, groups[:3], "no_model")["too few"] == found["not shown"]


@pytest.fixture(scope="module")
def dominated():
    train, test = make_hidden_minority(500, random_state=0), make_hidden_minority(500, random_state=1)
    return audit(
        CoxPH(l2=3.0).fit(train.X, train.y),
        test.X,
        test.y,
        sensitive_features=test.sensitive_features,
        X_train=train.X,
        y_train=train.y,
        alpha_path=(),
        n_bootstrap=60,
        search_rules=False,
    )


def test_a_model_that_plain_cox_dominates_is_told_so_by_the_verdict(dominated):
    said = {statement.code: statement for statement in dominated.statements}
    assert said["dominated"].text.endswith("and nobody worse: use plain Cox.")
    # Each number says whose it is: the sentence is about plain Cox, the first number about the model.
    assert re.search(r"better than this model \([^;]+; plain Cox: [^;)]+\)", said["dominated"].text)
    assert dominated.parts["verdict"].facts["status"] in ("dominated", "harm")
    assert said["slope"].concern
    assert "Rescale the risk scores, which are too timid" in dominated.to_markdown()


@pytest.mark.filterwarnings("ignore::drosurv.evaluation.SmallGroupWarning")
def test_the_first_screen_says_what_the_evaluation_and_the_tables_say():
    """Groups of all sizes: a verdict, a p-value and a gap are the same wherever they stand."""
    train, test = make_hidden_minority(400, random_state=4), make_hidden_minority(400, random_state=5)
    ward = np.array(["a", "b", "c", "few", "tiny"])[np.repeat(range(5), [150, 140, 97, 10, 3])]
    groups = test.sensitive_features.assign(ward=ward)
    model, options = CoxPH().fit(train.X, train.y), {"n_bootstrap": 12, "random_state": 0}
    report = audit(model, test.X, test.y, sensitive_features=groups, search_rules=False, **options)
    shown = groups.assign(ward=np.where(ward == "tiny", None, ward))
    result = evaluate(model, test.X, test.y, sensitive_features=shown, missing="drop", **options)
    facts = report.parts["verdict"].facts
    told = {(group["attribute"], group["group"]): group["no_model"] for group in facts["groups"]}
    verdicts = result.harm.groupby(["attribute", "group"])["verdict"].agg(set).to_dict()
    assert {*told} == {*verdicts}
    for who, found in verdicts.items():
        if who == ("ward", "few"):
            assert told[who] == "too few"
        else:
            assert told[who] == {"harmed": "worse", "served": "better"}.get(
                "harmed" if "harmed" in found else "served" if "served" in found else "", "not shown"
            )
    gaps = [row for row in report.audited.tables["fairness"].rows if row["metric"] == "Gap of c-index"]
    by_size = sorted(gaps, key=lambda row: -row["value"])
    assert [gap["p_value"] for gap in facts["gaps"]] == [row["p_value"] for row in by_size]
    assert [gap["size"] for gap in facts["gaps"]] == pytest.approx(
        [row["value"] for row in by_size], abs=1e-5
    )
    assert [row["reading"] == "beyond chance" for row in by_size] == [
        gap["beyond_chance"] for gap in facts["gaps"]
    ]
    said = next(s for s in report.statements if s.code == "gap")
    assert p_text(by_size[0]["p_value"]) in said.text
    assert p_text(by_size[0]["p_value"]) in next(
        s.text for s in result.statements() if s.code == "worst_group"
    )


def test_the_measure_that_shows_it_is_explained_on_the_first_screen(dominated):
    said = {statement.code: statement.text for statement in dominated.statements}
    (label,) = re.findall(r"\(([^(]*?) [\d.]+; plain Cox: [\d.]+\)", said["dominated"])
    (metric,) = (metric for metric in CATALOGUE.values() if metric.label == label)
    assert f": {metric.meaning}." in dominated.parts["verdict"].facts["note"]


def test_observed_curves_end_with_the_last_five_patients(dominated):
    rows = dominated.audited.tables["survival"].rows
    assert {row["observed"] is None for row in rows if row["at_risk"] < 5} == {True}
    assert all(row["low"] <= row["observed"] <= row["high"] for row in rows if row["at_risk"] >= 5)


def test_where_no_unit_is_known_a_time_is_a_time(dominated):
    assert re.search(r"free of the event at time [\d.]+;", dominated.parts["verdict"].statements[2].text)
    assert re.search(r">at time [\d.]+<", dominated.to_html())
    assert " time:" not in dominated.to_html()


@pytest.fixture(scope="module")
def report():
    train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(500, random_state=1)
    return audit(
        DROCox(alpha=0.1).fit(train.X, train.y),
        test.X,
        test.y,
        sensitive_features=test.sensitive_features,
        reference=CoxPH().fit(train.X, train.y),
        n_bootstrap=20,
        search_rules=False,
        time_title="years",
    )


def test_the_first_screen_answers_what_for_whom_how_sure_and_what_next(report):
    codes = [statement.code for statement in report.parts["verdict"].statements]
    assert codes[:3] == ["verdict", "ranking", "expectation"]
    assert {"size", "gap", "next_step"} <= set(codes)
    html = report.to_html()
    first = html[html.index('id="verdict"') : html.index('id="groups"')]
    for words in (
        "What it does",
        "How sure",
        "What to do next",
        "Against no model",
        "Against plain Cox",
        "years",
        "No model: every patient is given the same curve.",
        "Plain Cox: the usual statistical model, trained on the same patients.",
    ):
        assert words in first


def test_the_first_screen_has_no_numbers_of_a_handful_of_patients():
    train, test = make_hidden_minority(300, random_state=0), make_hidden_minority(300, random_state=1)
    group = np.where(np.arange(300) < 8, "few", np.where(np.arange(300) % 2, "odd", "even"))
    told = {"sensitive_features": {"group": group}, "y_train": train.y, "search_rules": False}
    model = CoxPH().fit(train.X, train.y)
    with pytest.warns(SmallGroupWarning, match="few: 8 patients"):
        found = audit(model, test.X, test.y, n_bootstrap=20, **told)
    rows = {row["group"]: row for row in found.parts["verdict"].tables[0].rows}
    html = found.to_html()
    first = html[html.index('id="verdict"') : html.index('id="groups"')]
    assert "Too small to be judged: group few." in first
    assert ">group few</th>" not in first
    assert ">group odd</th>" in first
    assert rows["group few"]["of_100"] == 3
    assert rows["group few"]["no_model"] == "too few to judge"
    for name in ("ranked", "expected", "observed"):
        assert rows["group few"][name] is None
        assert rows["group odd"][name] > 0


def test_a_handful_of_patients_judges_no_model():
    patients = make_hidden_minority(40, random_state=0)
    # Learned from eight patients: far too bold, which the others must not say beyond chance.
    model = CoxPH(l2=0.01).fit(patients.X[:8], patients.y[:8])
    options = {"n_bootstrap": 20, "search_rules": False, "random_state": 0}
    wards = {"ward": np.where(np.arange(32) < 3, "attic", "main")}
    found = audit(model, patients.X[8:], patients.y[8:], sensitive_features=wards, **options)
    assert found.parts["verdict"].facts["status"] == "too_few"
    text = found.to_markdown()
    assert "Too few to judge a model by: 32 patients with" in text
    assert "Rescale" not in text
    assert "Recalibrate" not in text
    # Two were named, of which one is too small to be shown.
    assert "There are no two groups to compare." in text
    assert "No groups were named" not in text


def test_no_group_is_ranked_less_well_by_nothing():
    train, test = make_hidden_minority(100, random_state=0), make_hidden_minority(400, random_state=1)
    options = {"n_bootstrap": 10, "search_rules": False, "sensitive_features": test.sensitive_features}
    with warnings.catch_warnings(action="ignore"):
        text = audit(NullModel().fit(train.X, train.y), test.X, test.y, **options).to_markdown()
    assert "ranks the patients of no group better" in text
    assert "less well than" not in text


def test_the_page_tells_of_no_patient_alone():
    train, test = make_hidden_minority(300, random_state=0), make_hidden_minority(300, random_state=1)
    ward = np.where(np.arange(300) < 3, "attic", np.where(np.arange(300) % 2, "odd", "even"))
    kind = np.where(np.arange(300) < 1, "only", "usual")
    model = CoxPH().fit(train.X, train.y)
    options = {"n_bootstrap": 20, "search_rules": False, "random_state": 0}
    found = audit(model, test.X, test.y, sensitive_features={"ward": ward, "kind": kind}, **options)
    (said,) = (text for text in found.parts["method"].facts["limits"] if "recognised" in text)
    assert said == (
        "Groups of fewer than 5 patients are not shown, so that nobody can be recognised: ward attic and kind only."
    )
    everything = found.to_json().replace(said, "")
    assert "attic" not in everything
    assert "usual" not in everything
    groups = [
        (group["attribute"], group["group"], group["patients"])
        for group in json.loads(found.to_summary())["groups"]
    ]
    assert groups == [
        ("overall", "all", 300),
        ("ward", "even", int((ward == "even").sum())),
        ("ward", "odd", int((ward == "odd").sum())),
    ]


def test_the_summary_for_programs_keeps_its_schema(report):
    read = json.loads(report.to_summary())
    assert (read["schema"], read["version"]) == (SCHEMA, VERSION)
    assert set(read) == {
        *(
            "schema",
            "version",
            "title",
            "created",
            "drosurv",
            "model",
            "level",
            "time_unit",
            "verdict",
            "per_100",
        ),
        *("groups", "gaps", "statements", "next_steps", "not_computed", "limits", "guidelines"),
    }
    assert set(read["groups"][0]) == {
        *("name", "attribute", "group", "patients", "events", "of_100", "c_index", "reference_c_index"),
        *("no_model", "reference", "expected", "observed"),
    }
    assert set(read["gaps"][0]) == {
        *(
            "attribute",
            "worst",
            "best",
            "low",
            "high",
            "p_value",
            "p_alone",
            "looks",
            "beyond_chance",
            "with_small",
        ),
        "size",
    }
    assert sum(read["per_100"]["no_model"].values()) == 100
    assert {row["status"] for row in read["guidelines"]} == {"answered", "partly", "to be filled in"}
