import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from drosurv import CoxPH, DROCox, Surv, errors
from drosurv.errors import ArgumentError, ArgumentWarning, require


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
