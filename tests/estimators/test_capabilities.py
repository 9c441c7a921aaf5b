"""What models say of themselves is true: each value of their capabilities is checked by what the model does."""

import inspect
from dataclasses import dataclass, fields
from typing import get_args, get_type_hints

import numpy as np
import pytest

import drosurv
from drosurv import Surv
from drosurv.errors import ArgumentError
from drosurv.estimators.base import SurvivalModel
from drosurv.estimators.capabilities import ROW_ARGUMENTS, WEIGHTED, Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from experiments import rivals

from .test_every_estimator import GROUPS, TIME, N, X, Y, fit, fitted, quick

ROWS = {
    "entry": TIME / 2,
    "strata": GROUPS,
    "clusters": np.arange(N) // 2,
    "offset": np.linspace(0, 0.1, N),
    "id": np.arange(N),
}
MODELS = [cls for _, cls in drosurv.all_estimators() if issubclass(cls, SurvivalModel)]
RIVALS = [getattr(rivals, name) for name in rivals.__all__]

pytestmark = pytest.mark.filterwarnings("ignore:.*is the null model:UserWarning")


def each(classes):
    return pytest.mark.parametrize("cls", [*classes], ids=lambda cls: cls.__name__)


def each_if(is_meant):
    """Parametrize over the models that are meant; tests of a new model ask `is_meant` too."""

    def parametrized(test):
        test.is_meant = is_meant
        return each(filter(is_meant, MODELS))(test)

    return parametrized


def each_with(parameter):
    return each_if(lambda cls: parameter in inspect.signature(cls).parameters)


@each([*MODELS, drosurv.CauseSpecificCox, *RIVALS])
def test_every_value_is_one_of_the_documented_ones(cls):
    stated = quick(cls).capabilities
    assert isinstance(stated, Capabilities)
    for name, kind in get_type_hints(Capabilities).items():
        options = get_args(kind)
        literals = [value for option in options for value in get_args(option) or (option,)]
        if literals and literals != [str, ...]:
            assert getattr(stated, name) in [None if value is type(None) else value for value in literals]
    assert set(stated.row_arguments) <= set(ROW_ARGUMENTS)
    assert bool(stated.no_row_arguments) == (set(stated.row_arguments) != set(ROW_ARGUMENTS))


def test_the_record_has_no_defaults():
    with pytest.raises(
        TypeError, match=f"missing {len(fields(Capabilities))} required keyword-only arguments"
    ):
        Capabilities()


@pytest.mark.parametrize("base", [SurvivalModel, NetworkEstimator])
def test_a_model_that_states_nothing_is_an_error_that_says_what_to_add(base):
    with pytest.raises(TypeError, match="Mine does not state what it is: add `capabilities = Capab") as error:

        @dataclass
        class Mine(base):
            """A model."""

    assert all(f"{field.name}=..." in str(error.value) for field in fields(Capabilities))


def test_a_model_without_a_problem_to_solve_cannot_be_made():
    @dataclass
    class Mine(NetworkEstimator):
        """A model."""

        capabilities = drosurv.CoxPH.capabilities

    with pytest.raises(TypeError, match="_problem"):
        Mine()


@each(MODELS)
def test_a_model_of_log_hazards_with_curves_of_cox_has_proportional_hazards(cls):
    model, times = fitted(cls), np.quantile(TIME, [0.3, 0.6])
    hazard = np.log(model.predict_cumulative_hazard_function(X[:20], times=times))
    ratio = hazard - hazard[0]
    if not model.capabilities.own_curves:
        np.testing.assert_allclose(ratio[:, 0], ratio[:, 1], atol=1e-9)
    if model.capabilities.score == "log hazard":
        np.testing.assert_allclose(ratio[:, 0], model.predict(X[:20]) - model.predict(X[:1]), atol=1e-6)


@each_if(lambda cls: cls().capabilities.score == "log time")
def test_scores_of_log_times_are_minus_the_log_of_the_median_up_to_a_constant(cls):
    log_median = np.log(fitted(cls).predict_median(X))
    np.testing.assert_allclose(np.ptp(log_median + fitted(cls).predict(X)), 0.0, atol=1e-9)


@each_if(lambda cls: getattr(cls, "network", None) == "linear")
def test_only_models_whose_exp_coef_has_a_meaning_show_it(cls):
    table = fit(quick(cls, alpha=1.0)).summary()
    stated = fitted(cls).capabilities.exp_coef
    assert ("exp(coef)" in table.columns) == (stated is not None)
    assert table.ratio == stated
    assert (stated or "standard error") in table.to_markdown()


@each(MODELS)
def test_fit_supports_the_row_arguments_that_it_states_and_refuses_the_others(cls):
    stated = quick(cls).capabilities
    steps = 500 if stated.convex else 30
    given = {name: values for name, values in ROWS.items() if name in stated.row_arguments}
    # A patient is one cluster.
    given.pop("clusters" if "id" in given else "", None)
    model = fit(quick(cls, max_iter=steps), **given)
    assert model.n_patients_ == N
    for name in set(ROWS) - set(stated.row_arguments):
        with pytest.raises((ArgumentError, TypeError), match=name):
            fit(quick(cls), **{name: ROWS[name]})


@each_with("recalibrate")
def test_recalibration_is_an_error_where_it_is_not_defined(cls):
    model = quick(cls, recalibrate=True)
    if model.capabilities.no_recalibration:
        with pytest.raises(ArgumentError, match=f"{cls.__name__} {model.capabilities.no_recalibration}"):
            fit(model)
    else:
        assert fit(model).recalibration_ > 0


@each(MODELS)
def test_only_models_that_weight_losses_have_weights_of_patients(cls):
    model = fitted(cls)
    assert hasattr(model, "worst_case_weights_") == (model.capabilities.objective in WEIGHTED)
    assert hasattr(model, "eta_") == (model.capabilities.objective == "worst case")


@each_with("ties")
def test_ties_matter_unless_the_model_says_that_its_loss_has_none(cls):
    model = quick(cls, ties="efron")
    if model.capabilities.no_ties:
        with pytest.raises(ArgumentError, match=f"ties must be 'breslow' for {model.capabilities.no_ties}"):
            fit(model)
    else:
        tied = Surv.from_arrays(Y["event"], np.ceil(3 * TIME))
        difference = fit(model, y=tied).predict(X) - fit(quick(cls, ties="breslow"), y=tied).predict(X)
        assert abs(difference).max() > 1e-3


@each_with("solver")
def test_convex_models_are_solved_to_the_optimum_and_others_refuse_the_convex_solver(cls):
    model = quick(cls, network="linear", solver="convex", max_iter=500)
    if model.capabilities.convex:
        assert fit(model).status_ == "converged"
    else:
        with pytest.raises(ArgumentError, match="solver='convex' cannot train"):
            fit(model)
