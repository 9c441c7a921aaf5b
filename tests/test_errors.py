import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drosurv import AcceleratedFailureTime, CoxPH, DROCox, Surv, audit, certify, errors, evaluate, repair
from drosurv.curves import parse_survival
from drosurv.datasets import make_hidden_minority
from drosurv.errors import ArgumentError, ArgumentWarning, require, row_labels, row_number
from drosurv.metrics import concordance_index, decisions
from drosurv.paper import individual_disparity
from drosurv.patients.observation import Rows
from drosurv.patients.target import parse_target, with_fields
from drosurv.predictions.columns import prediction_numbers
from drosurv.solvers.neighborhoods import as_neighborhoods


def test_an_error_is_its_message_and_knows_its_argument():
    error = ArgumentError("event_value", "which? Pass event_value='yes' or name it in drop.")
    assert str(error) == "which? Pass event_value='yes' or name it in drop."
    assert error.argument == "event_value"


def test_an_argument_that_is_not_as_it_must_be():
    error = ArgumentError.must("alpha", "lie in (0, 1]", 0, "pass a share such as 0.2")
    assert str(error) == "alpha must lie in (0, 1], got 0: pass a share such as 0.2."
    assert error.argument == "alpha"


def test_what_is_required_is_an_error_only_where_it_does_not_hold():
    require(True, "alpha", "lie in (0, 1]", 0.5)
    with pytest.raises(ArgumentError, match=r"^alpha must lie in \(0, 1\], got 2: pass a share\.$") as found:
        require(False, "alpha", "lie in (0, 1]", 2, "pass a share")
    assert found.value.argument == "alpha"


def test_it_is_a_value_error_and_survives_pickling():
    error = pickle.loads(pickle.dumps(ArgumentError.must("alpha", "lie in (0, 1]", 0)))
    assert isinstance(error, ValueError)
    assert (str(error), error.argument) == ("alpha must lie in (0, 1], got 0.", "alpha")


DATA = make_hidden_minority(40, random_state=0)
COX = CoxPH(l2=0.1).fit(DATA.X, DATA.y)


@pytest.mark.parametrize("weight", [0.5, 0])
@pytest.mark.parametrize("judge", [evaluate, audit, certify, repair])
def test_weights_count_copies(judge, weight):
    model = CoxPH() if judge is repair else COX
    said = (
        "is 0 in every row"
        if weight == 0
        else "must hold whole numbers, the copies of each row, .* row 1 has 0.5"
    )
    with pytest.raises(ArgumentError, match=f"^weight {said}"):
        judge(model, DATA.X, with_fields(DATA.y, weight=np.full(40, weight)))


def test_a_message_may_be_about_no_argument():
    error = ArgumentError(None, "the table is empty.")
    assert (str(error), error.argument) == ("the table is empty.", None)


def test_a_warning_knows_its_argument():
    with pytest.warns(UserWarning, match="drop it with drop='id'") as found:
        warnings.warn(ArgumentWarning("drop", "drop it with drop='id'."), stacklevel=1)
    assert found[0].message.argument == "drop"


@pytest.mark.parametrize(
    ("model", "said"),
    [(CoxPH(max_iter=1), "before the optimum"), (DROCox(alpha=0.001), "minimises only the largest loss")],
)
def test_a_warning_from_deep_inside_names_the_users_line(model, said):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), Surv.from_arrays(rng.random(40) < 0.7, rng.exponential(size=40))
    with pytest.warns(UserWarning, match=said) as found:
        model.fit(X, y)
    assert {one.filename for one in found} == {__file__}


def test_of_many_values_only_their_number_is_written():
    text = str(ArgumentError.must("entry", "be before time", np.linspace(0, 1, 1500)))
    assert text == "entry must be before time, got ndarray of length 1,500."
    assert "[0.5, 1.5]" in str(ArgumentError.must("times", "be whole", [0.5, 1.5]))


def test_a_number_of_numpy_is_written_as_python_writes_it():
    assert (
        str(ArgumentError.must("alpha", "lie in (0, 1]", np.float64(2.0)))
        == "alpha must lie in (0, 1], got 2.0."
    )


def test_bad_input_is_an_input_error_so_that_a_value_error_is_an_error_of_ours():
    sources = Path(errors.__file__).parent.rglob("*.py")
    raised = [
        path.name for path in sources if re.search(r"^\s*raise ValueError\b", path.read_text(), re.MULTILINE)
    ]
    assert raised == [], "raise drosurv.errors.InputError, or ArgumentError if one argument is wrong"


X, TIMES = np.arange(8.0).reshape(4, 2), np.array([4.0, 3.0, 1.0, 2.0])
Y = Surv.from_arrays([True, True, False, True], TIMES)


def with_third(values, wrong, dtype=float):
    """The values with another one in the third row."""
    changed = np.array(values, dtype)
    changed[2] = wrong
    return changed


def y_with_third(time):
    return np.array(list(zip(Y["event"], with_third(TIMES, time), strict=True)), Y.dtype)


OF_TABLES = {
    "survival above 1": lambda a: parse_survival(a(with_third([[0.9, 0.8]] * 4, [0.9, 2])), 4, [1, 2]),
    "survival rises": lambda a: parse_survival(a(with_third([[0.9, 0.8]] * 4, [0.8, 0.9])), 4, [1, 2]),
    "prediction is missing": lambda a: prediction_numbers(a(with_third([[0.9, 0.8]] * 4, np.nan))),
    "score": lambda a: concordance_index(Y, a(with_third(TIMES, np.nan))),
    "weight": lambda a: concordance_index(Y, TIMES, sample_weight=a(with_third(TIMES, -1))),
    "probability": lambda a: decisions(Y, a(with_third([0.1] * 4, 2)), threshold=0.5, horizon=2.0),
    "features": lambda a: individual_disparity(TIMES, a(with_third(X, np.nan))),
    "offset": lambda a: Rows.parse(Y, offset=a(with_third(TIMES, np.nan))),
    "entry": lambda a: Surv.from_arrays(Y["event"], Y["time"], entry=a(with_third([0.0] * 4, 9))),
    "cluster": lambda a: Surv.from_arrays(
        Y["event"], Y["time"], clusters=a(with_third(list("abcd"), None, object))
    ),
}
OF_ARRAYS = {
    "time is missing": lambda: parse_target(y_with_third(np.nan)),
    "time below 0": lambda: parse_target(y_with_third(-1.0)),
    "time is 0": lambda: AcceleratedFailureTime().fit(X, y_with_third(0.0)),
    "id": lambda: Rows.parse(with_fields(Y, id=[1, 2, 3, 3]), judged=False),
    "kernel": lambda: as_neighborhoods(np.diag([1.0, 1.0, 0.5, 1.0]), 4),
}


@pytest.mark.parametrize("given", OF_ARRAYS)
def test_messages_count_rows_of_arrays_from_1(given):
    with pytest.raises(ValueError, match=r"\brow 3\b"):
        OF_ARRAYS[given]()


@pytest.mark.parametrize("given", OF_TABLES)
def test_messages_count_rows_from_1_or_name_them_as_the_table_does(given):
    def in_pandas(values):
        return (pd.DataFrame if values.ndim == 2 else pd.Series)(values, index=[0, 4, 9, 12])

    for table, said in ((np.asarray, "3"), (in_pandas, "10")):
        with pytest.raises(ValueError, match=rf"\brow {said}\b"):
            OF_TABLES[given](table)


def test_rows_without_numbers_of_a_file_are_counted_from_1():
    for index in (["a", "b"], [7, 3], [5, 5]):
        assert row_number(1, pd.DataFrame(index=index)) == 2
    assert row_labels(pd.DataFrame(index=["a", "b"])).tolist() == ["a", "b"]
    assert row_labels(pd.DataFrame(index=[7, 3])) is row_labels([[1.0]]) is None


# Methods that look for words in a text, and words that are looked for in a message.
READS_WORDS = re.compile(
    r"""\.(startswith|endswith|removeprefix|removesuffix|r?partition|r?find|r?split|replace|count|index)\(\s*f?
        (?P<of>["'])(?=[^"']*[a-z]{2})[^"']*\ [^"']*(?P=of)
    |   ["'](?=[^"']*[a-z]{2})[^"']*["']\ (not\ )?in\ (str\(|[\w.]*(text|note|message|reason|why|caption|summary)\b)""",
    re.VERBOSE,
)


def test_no_rule_reads_the_words_of_a_message():
    for rule in (
        'if "contains NaN" not in str(error):',
        'name = event.removeprefix("the event ")',
        'return "events" in test.why',
    ):
        assert READS_WORDS.search(rule)
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(Path(errors.__file__).parent.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if READS_WORDS.search(line) and not line.lstrip().startswith((">>>", "#"))
    ]
    assert found == [], "give the rule a field or an attribute of the exception to read"
