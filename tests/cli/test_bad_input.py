"""What a command cannot use ends it with one line, which names the option, before anything is written."""

import shlex

import numpy as np
import pytest

from drosurv import all_estimators

# The words with which each command would run, after which come those of a case.
RUNS = {
    "fit": "{data} --time days --event status --event-value dead --drop id -o written",
    "predict": "{model} {data} -o written",
    "evaluate": "{model} {data} -o written",
    "certify": "{model} {data} -o written",
    "summary": "{model} -o written",
    "audit": "--no-rules -o written.html",
    "repair": "{data} --time days --event status --event-value dead --drop id -o written",
    "plan": "",
}
CASES = {
    "fit --time dyas": "time column 'dyas' is not in the table. Did you mean 'days'?",
    "fit --event sttus": "Did you mean 'status'?",
    "fit --time stage": "time column 'stage'",
    "fit --event sex": "--event-value 'dead' does not occur",
    "fit --event stage": "event column 'stage' is empty in 16 rows",
    "fit --time status": "both name column 'status'",
    "fit --drop idd": "drop column 'idd' is not in the table",
    "fit --categorical sexx": "Did you mean 'sex'?",
    "fit --unseen guess": "unseen must be one of",
    "fit --decimal ''": "decimal must be one character",
    "fit --separator ab": "separator must be one character",
    "fit --separator ';'": "pass --separator ','",
    "fit --model forest": f"model 'forest' is not one of {', '.join(dict(all_estimators(causes=True)))}.",
    "fit --model reparied-cox": "Did you mean 'RepairedCox'?",
    "fit --model dro-cox --alpha 0": "Error: --alpha must lie in (0, 1], got 0.0.",
    "fit --model dro-cox --ball square": "ball must be one of",
    "fit --alpha 0.2": "pass --model dro-cox, or another robust model.",
    "fit --network cnn": "network must be",
    "fit --network mlp --set network__hidden=a": "hidden must list widths",
    "fit --network trees --set lr=1": "is for a linear model: pass --set network__lr=1",
    "fit --set network__hidden=24": "pass --network mlp or --network trees",
    "fit --set network__lr=1": "--set network__lr has no meaning for CoxPH with this network: pass",
    "fit --set max_iter=many": "--set max_iter must be a whole number",
    "fit --set lr": "--set needs NAME=VALUE",
    "fit --set speed=3": "--set speed has no meaning for CoxPH",
    "fit --hold-out written": "would be written twice",
    "fit --hold-out-share 0.3": "--hold-out-share needs a file for the patients: pass --hold-out",
    "fit --hold-out x.csv --hold-out-share 2": "share must lie between 0 and 1",
    "fit -o none/m": "there is no folder",
    "predict --keep name": "keep column 'name'",
    "predict --times soon": "times must be numbers",
    "predict --times -1": "times must be",
    "predict --strata sex": "--strata changes survival, not log risks: pass --times",
    "evaluate --groups sexx": "groups column 'sexx' is not in the table. Did you mean 'sex'?",
    "evaluate --groups kappa": "cut it in two, for example --groups 'kappa>",
    "evaluate --groups age=60": "neither a column nor a cut",
    "evaluate --intersections": "--intersections needs groups: pass --groups COLUMNS.",
    "evaluate --time dayz": "time column 'dayz'",
    "evaluate --event age": "--event column 'age' holds 54 different values",
    "evaluate --reference nothing": "nothing is not a file: name a model that was saved.",
    "evaluate -o nowhere/out.csv": "there is no folder nowhere: make it first",
    "certify --horizon -1": "horizon must be a time above 0",
    "certify --horizon 1e9": "horizon",
    "certify --level 2": "level must lie in",
    "certify --alpha 0": "alpha must lie in",
    "certify --plot curves": "must end in .png",
    "certify --time dyas": "Did you mean 'days'?",
    "certify --keep-columns zz": "--keep-columns column 'zz' is not in the table",
    "audit": "name a model and a table",
    "audit {model} {data} --groups nonsense": "nonsense",
    "audit {model} {data} --train {data}": "holds no patient who is not also",
    "audit {model} {data} --keep-columns zz": "--keep-columns column 'zz' is not in the table",
    "audit {model} {data} --risk age": "--survival, --risk, --kind and --risk-kind describe --predictions FILE",
    "audit --predictions {data}": "pass --time and --event",
    "audit --predictions {data} --folds 3": "without a model, folds or training patients",
    "audit --predictions {data} --strata sex": "for each patient's stratum already: leave out --strata",
    "audit --predictions {data} --time days --event status --survival age": "COLUMN=TIME",
    "audit --predictions {data} --time days --event status --keep-columns zz": "--keep-columns column 'zz'",
    "repair --model {data} --predictions {data}": "--predictions takes the place of --model: pass one of them",
    "repair --predictions {data} --set l2=0.1": "--set is for a model that is trained here",
    "repair --set l2=0.1": "--set is for one model: name it, for example --model cox",
    "repair --corrected q.csv": "--corrected writes repaired --predictions",
    "summary --cause 2": "--cause has no meaning for CoxPH, which has one event",
    "summary --level 95": "--level must lie between 0 and 1",
    "plan": "name a pilot table",
    "plan --events 1.5": "--events must lie between 0 and 1, got 1.5",
    "plan --events 0.5 --groups sex": "must be a name and a share of the patients",
    "plan --events 0.5 --groups women=4": "--groups must give 'women' a share",
    "plan --events 0.5 --groups women=0.4:2": "--groups must give 'women' an event rate",
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line_and_nothing_is_written(drosurv, model, data, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    command, *words = shlex.split(case.format(model=model, data=data))
    usual = shlex.split(RUNS[command].format(model=model, data=data))
    found = drosurv(command, *usual, *words)
    assert (found.exit_code, found.stdout) == (2, "")
    # Lines before it are warnings.
    line = found.stderr.splitlines()[-1]
    assert line.startswith("Error: ")
    assert CASES[case] in line
    assert not list(tmp_path.glob("written*"))


@pytest.mark.parametrize("command", ["fit", "summary"])
def test_a_missing_file_is_named(drosurv, tmp_path, command):
    words = shlex.split(RUNS[command].format(model=tmp_path / "none", data=tmp_path / "none"))
    assert "is not a file" in drosurv.fails(command, *words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.drop(columns="age"), "feature column 'age' is not in the table"),
        (lambda table: table.assign(age=["old", *table["age"].iloc[1:]]), "column 'age' holds 1 text (first: row 1)"),
    ],
)  # fmt: skip
def test_a_table_without_a_feature_of_the_model_is_refused(drosurv, model, patients, tmp_path, change, words):
    change(patients).to_csv(tmp_path / "d.csv", index=False)
    assert words in drosurv.fails("predict", model, tmp_path / "d.csv")


@pytest.mark.parametrize(
    ("status", "question"),
    [
        (["cancer", "stroke"], "pass --event-value 'cancer' or --event-value 'stroke'"),
        ([3, 4], "pass --event-value '3' or --event-value '4'"),
        ([0, 1, 2], "as --event-value; every other then means censored"),
        ([0, 1, 2], "judge one with `drosurv check --cause 1`"),
        ([0, 7, 9], "number them 1 to 2 in the table, then judge one with `drosurv check --cause 1`"),
    ],
)
def test_a_coding_of_events_is_asked_for(drosurv, patients, tmp_path, status, question):
    patients.assign(status=np.resize(status, len(patients))).to_csv(tmp_path / "d.csv", index=False)
    words = ["--time", "days", "--event", "status", "--drop", "id", "-o"]
    line = drosurv.fails("fit", tmp_path / "d.csv", *words, tmp_path / "m")
    assert "which value of event column 'status' means the event?" in line
    assert question in line
