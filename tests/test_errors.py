import pickle
import warnings

import numpy as np
import pytest

from drosurv import CoxPH, DROCox, Surv
from drosurv.errors import Argument, ArgumentError, ArgumentWarning, require


def spelled(name, value):
    return f"--{name.replace('_', '-')} {value}".rstrip()


def test_each_surface_writes_arguments_in_its_own_way():
    error = ArgumentError(f"which? Pass {Argument('event_value', 'yes')} or name it in {Argument('drop')}.")
    assert str(error) == "which? Pass event_value='yes' or name it in drop."
    assert error.worded(spelled) == "which? Pass --event-value 'yes' or name it in --drop."
    assert error.argument == "event_value"
    assert error.args == (str(error),)


@pytest.mark.parametrize("value", ["a\"b'c=\n", 0.5, True, None, [1, "x"], -3])
def test_an_argument_formatted_into_a_sentence_is_still_known(value):
    error = ArgumentError(
        f"{Argument('X')} is odd: pass {Argument('event_value', value)}, or {Argument('drop')}."
    )
    assert str(error) == f"X is odd: pass event_value={value!r}, or drop."
    for copy in (error, pickle.loads(pickle.dumps(error)), ArgumentError(error.marked)):
        assert copy.worded(spelled) == f"--X is odd: pass --event-value {value!r}, or --drop."
        assert (copy.args, copy.argument) == (error.args, "X")


def test_numbers_of_numpy_are_written_as_pythons():
    assert str(ArgumentError(f"not {Argument('alpha', np.float64(0.3))}.")) == "not alpha=0.3."
    assert str(ArgumentError(Argument("kind", np.float64))) == f"kind={np.float64!r}"
    assert ArgumentError(f"not {Argument('n', np.int64(3))}.").worded(spelled) == "not --n 3."


def test_any_value_is_told_as_it_is_written():
    error = ArgumentError(f"not {Argument('network', np.mean)}, a function.")
    assert str(error) == f"not network={np.mean!r}, a function."
    assert error.worded(spelled) == f"not --network {np.mean!r}, a function."


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


def test_a_message_may_mention_no_argument():
    error = ArgumentError("the table is empty.")
    assert (str(error), error.argument) == ("the table is empty.", None)


def test_a_warning_is_worded_the_same_way():
    with pytest.warns(UserWarning, match="drop it with drop='id'") as found:
        warnings.warn(ArgumentWarning(f"drop it with {Argument('drop', 'id')}."), stacklevel=1)
    assert found[0].message.worded(spelled) == "drop it with --drop 'id'."


@pytest.mark.parametrize(
    ("model", "said"),
    [(CoxPH(max_iter=1), "before the optimum"), (DROCox(alpha=0.001), "single largest loss")],
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
