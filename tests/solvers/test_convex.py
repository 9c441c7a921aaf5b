import numpy as np
import pytest
from scipy.optimize import minimize

from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Mean, uniform_mass
from drosurv.patients.target import Target
from drosurv.solvers import Criterion, LinearProblem, minimise
from drosurv.solvers import convex as convex_module

from ..differences import differences


def sample(seed=0, n=120, d=3, tied=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    time = rng.exponential(size=n) * np.exp(-X @ np.linspace(1, -1, d))
    time = np.ceil(5 * time) if tied else time
    return X, Target(rng.random(n) < 0.7, time)


LOSSES = {
    "breslow": lambda target: (CoxPartial(target), None),
    "efron": lambda target: (CoxPartial(target, "efron"), None),
    "split": lambda target: halves(target, both=True),
    "split one side": lambda target: halves(target, both=False),
}
# The tolerances that an estimator asks for.
OBJECTIVES = {
    "mean": (Mean, 1e-8),
    "chi2": (lambda: ChiSquare(0.2), 1e-8),
    "paper": (lambda: ChiSquare(0.5, "paper"), 1e-8),
    "cvar": (lambda: CVaR(0.3), 1e-5),
}


def halves(target, both):
    in_first = np.arange(len(target)) % 2 == 0
    rows = [np.flatnonzero(in_first), np.flatnonzero(~in_first)]
    return CoxSplit(target, in_first, both=both), rows if both else rows[:1]


def problem_of(X, target, loss="breslow", make=Mean, l2=0.0):
    prepared, blocks = LOSSES[loss](target)
    return LinearProblem(X, Criterion(prepared, make(), uniform_mass(len(X)), blocks), l2)


def best_by_scipy(problem, *starts):
    """The lowest value that general-purpose methods find."""

    def value_and_slope(theta):
        return problem.value(theta), problem.gradient()

    found = [
        minimize(value_and_slope, start, jac=True, method="BFGS", options={"gtol": 1e-11}) for start in starts
    ]
    found = minimize(
        problem.value,
        min(found, key=lambda one: one.fun).x,
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 3000},
    )
    return found.fun


# The ridge is added to any loss and objective alike: each has it once.
RIDGE = [(name, loss, 0.05) for name, loss in zip(OBJECTIVES, LOSSES, strict=True)]
NO_RIDGE = [
    ("mean", "split one side", 0.0),
    ("chi2", "breslow", 0.0),
    ("paper", "efron", 0.0),
    ("cvar", "split", 0.0),
]


@pytest.mark.parametrize(("name", "loss", "l2"), RIDGE + NO_RIDGE)
def test_the_optimum_is_reached_and_certified(name, loss, l2):
    make, tol = OBJECTIVES[name]
    X, target = sample()
    problem = problem_of(X, target, loss, make, l2)
    found = minimise(problem, tol=tol, max_iter=500)
    best = best_by_scipy(problem, found.x, np.zeros(3))
    assert found.status == "converged"
    assert found.gap <= tol
    assert found.value == pytest.approx(problem.value(found.x), rel=1e-14)
    assert found.value <= best * (1 + tol)
    # No method finds a value below the bound, up to rounding.
    assert found.lower_bound <= min(best, found.value) * (1 + 1e-12)


def test_smooth_optima_have_no_slope_left():
    X, target = sample()
    for name in ("mean", "chi2", "paper"):
        problem = problem_of(X, target, make=OBJECTIVES[name][0])
        found = minimise(problem, tol=1e-8, max_iter=100)
        problem.value(found.x)
        assert np.abs(problem.gradient()).max() < 1e-7


def test_cvar_reaches_the_optimum_of_an_independent_program():
    # CVaR of convex losses as a smooth program with one slack per patient.
    X, target = sample(n=30, d=2)
    problem = problem_of(X, target, make=lambda: CVaR(0.3))
    found = minimise(problem, tol=1e-6, max_iter=500)
    loss, n, rows = CoxPartial(target), 30, CoxPartial(target).rows

    def full_losses(theta):
        out = np.zeros(n)
        out[rows] = loss((X @ theta)[None, :])[0]
        return out

    def full_jacobian(theta):
        loss((X @ theta)[None, :])
        out = np.zeros((n, 2))
        out[rows] = loss.jacobian(X, np.arange(len(rows)))
        return out

    # z = (theta, eta, slack): minimise eta + mean(slack) / alpha, slack >= loss - eta, slack >= 0.
    cost = np.concatenate([np.zeros(2), [1.0], np.full(n, 1 / (n * 0.3))])
    start = np.concatenate([found.x, [0.0], full_losses(found.x)])
    program = minimize(
        lambda z: cost @ z,
        start,
        jac=lambda z: cost,
        bounds=[(None, None)] * 3 + [(0, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda z: z[3:] + z[2] - full_losses(z[:2]),
            "jac": lambda z: np.hstack([-full_jacobian(z[:2]), np.ones((n, 1)), np.eye(n)]),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert found.value == pytest.approx(program.fun, rel=1e-5)


def test_an_optimum_on_a_kink_is_reached_and_certified():
    # The largest of few losses: at the optimum d + 1 of them are equal, and no gradient vanishes.
    for seed, objective in enumerate((ChiSquare(0.05), ChiSquare(0.08), ChiSquare(0.3, "paper"))):
        X, target = sample(seed, n=25, tied=False)
        problem = problem_of(X, target, make=lambda objective=objective: objective, l2=1e-3)
        found = minimise(problem, tol=1e-8, max_iter=500)
        assert found.status == "converged"
        assert found.gap <= 1e-8
        # No direction goes down any more.
        moves = 1e-5 * np.random.default_rng(0).normal(size=(50, 3))
        assert all(problem.value(found.x + move) >= found.value * (1 - 1e-8) for move in moves)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_any_start_leads_to_the_same_optimum(name):
    make, tol = OBJECTIVES[name]
    X, target = sample()
    problem = problem_of(X, target, make=make)
    values = [
        minimise(problem, tol=tol, max_iter=500, start=start).value
        for start in (np.zeros(3), np.array([5.0, -5.0, 5.0]), np.array([-3.0, 1.0, 0.0]))
    ]
    np.testing.assert_allclose(values, values[0], rtol=2 * tol)


def test_derivatives_of_the_problem_follow_finite_differences():
    X, target = sample(n=60)
    theta = np.array([0.3, -0.2, 0.5])
    for make in (Mean, lambda: ChiSquare(0.3), lambda: CVaR(0.3).smoothed(0.2)):
        for loss in LOSSES:
            problem = problem_of(X, target, loss, make, l2=0.1)

            def gradient(at, problem=problem):
                problem.value(at)
                return problem.gradient()

            slope, bend = differences(problem.value, theta), differences(gradient, theta)
            np.testing.assert_allclose(gradient(theta), slope, atol=1e-7)
            _, following = problem.curvature()
            np.testing.assert_allclose(following, bend, atol=1e-6)


def test_curvature_with_fixed_weights_is_that_of_the_weighted_losses():
    X, target = sample(n=60)
    problem, theta = problem_of(X, target, make=lambda: ChiSquare(0.3)), np.array([0.3, -0.2, 0.5])
    problem.value(theta)
    fixed, _ = problem.curvature()
    q = problem._evaluation.weights.copy()

    def weighted(at):
        return float(problem.criterion.losses((problem.X @ at)[None, :])[0] @ q[0])

    bend = differences(lambda at: differences(weighted, at, 1e-5), theta, 1e-5)
    np.testing.assert_allclose(fixed, bend, atol=1e-4)


def test_too_few_iterations_are_admitted():
    X, target = sample()
    for name in OBJECTIVES:
        make, tol = OBJECTIVES[name]
        found = minimise(problem_of(X, target, make=make), tol=tol, max_iter=1)
        assert found.status == "max_iter"
        assert found.gap > tol
        assert found.n_iter == 1
        # The bound holds where it stopped, too.
        assert found.lower_bound <= minimise(problem_of(X, target, make=make), tol=tol, max_iter=500).value


@pytest.mark.parametrize("name", OBJECTIVES)
def test_separated_data_are_recognised(name):
    # Whoever has the larger feature dies first: the larger the coefficient, the better.
    x = np.linspace(-1, 1, 30)[:, None]
    target = Target(np.ones(30, bool), np.arange(30, 0, -1.0))
    for scale in (1e-3, 1.0, 1e3):
        found = minimise(problem_of(scale * x, target, make=OBJECTIVES[name][0]), tol=1e-8, max_iter=500)
        assert found.status == "separated"
        assert found.n_iter < 100
        ridge = minimise(
            problem_of(scale * x, target, make=OBJECTIVES[name][0], l2=scale**2 / 10), tol=1e-5, max_iter=500
        )
        assert ridge.status == "converged"


@pytest.mark.parametrize("seed", [12, 19, 24])
def test_a_rare_level_that_dies_early_is_no_reason_to_stall(seed):
    # Newton's first step overshoots so far that the level's curvature vanishes, and the next step is endless.
    rng = np.random.default_rng(seed)
    rare, others = rng.integers(2, 8), rng.standard_normal((200, 2))
    X = np.c_[np.arange(200) < rare, others]
    died = rng.exponential(size=200) * np.exp(-X @ [8.0, 1.0, -1.0])
    left = 2 * rng.exponential(size=200)
    problem = problem_of(X, Target(died <= left, np.minimum(died, left)))
    found = minimise(problem, max_iter=500)
    assert found.status == "converged"
    assert found.value <= best_by_scipy(problem, found.x) + 1e-12
    np.testing.assert_allclose(found.x, [8, 1, -1], atol=1.5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_constant_and_collinear_features_change_nothing_but_their_own_coefficients(name):
    make, tol = OBJECTIVES[name]
    X, target = sample()
    plain = minimise(problem_of(X, target, make=make), tol=tol, max_iter=500)
    for extra in (np.full(120, 0.1), np.full(120, -1e6), np.full(120, 1 / 3), np.zeros(120)):
        found = minimise(problem_of(np.column_stack([X, extra]), target, make=make), tol=tol, max_iter=500)
        assert found.status == "converged"
        assert found.x[3] == 0.0
        np.testing.assert_allclose(found.x[:3], plain.x, atol=1e-6 if tol == 1e-8 else 1e-2)
    twice = np.column_stack([X, X[:, 0], X[:, 1] - 2 * X[:, 2]])
    found = minimise(problem_of(twice, target, make=make), tol=tol, max_iter=500)
    assert found.status == "converged"
    assert found.value == pytest.approx(plain.value, rel=10 * tol)
    assert np.abs(found.x).max() < 10


@pytest.mark.parametrize("name", OBJECTIVES)
def test_units_and_offsets_of_features_do_not_matter(name):
    make, tol = OBJECTIVES[name]
    X, target = sample()
    plain = minimise(problem_of(X, target, make=make), tol=tol, max_iter=500)
    units = np.array([1e-8, 1.0, 1e8])
    found = minimise(problem_of((X + 100) * units, target, make=make), tol=tol, max_iter=500)
    assert found.status == "converged"
    assert found.value == pytest.approx(plain.value, rel=tol)
    np.testing.assert_allclose(found.x * units, plain.x, atol=1e-6 if tol == 1e-8 else 1e-2)


@pytest.mark.parametrize(("name", "loss"), [*((name, "breslow") for name in OBJECTIVES), ("chi2", "split")])
def test_curvature_from_a_sample_of_patients_leads_to_the_same_optimum(name, loss, monkeypatch):
    make, tol = OBJECTIVES[name]
    rng = np.random.default_rng(0)
    n, d = 6000, 24
    X = rng.normal(size=(n, d)) * np.sqrt(0.5) + np.sqrt(0.5) * rng.normal(size=(n, 1))
    time = rng.exponential(size=n) * np.exp(-X @ rng.normal(size=d) / 5)
    target = Target(rng.random(n) < 0.6, time)
    sampled = problem_of(X, target, loss, make)
    assert sampled.sample is not None
    found = minimise(sampled, tol=tol, max_iter=500)
    monkeypatch.setattr(convex_module, "_NEWTON_WORK", 1e18)
    exact = problem_of(X, target, loss, make)
    assert exact.sample is None
    wanted = minimise(exact, tol=tol, max_iter=500)
    assert found.status == wanted.status == "converged"
    assert found.value == pytest.approx(wanted.value, rel=tol)
    assert found.lower_bound <= wanted.value * (1 + 1e-12)
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-5 if tol == 1e-8 else 2e-2)


def test_a_sample_that_misses_a_tiny_half_is_not_used():
    # Fourteen of 8,000 patients make up D1, and the sample of patients holds none of them.
    rng = np.random.default_rng(0)
    n, d = 8000, 30
    X, time = rng.normal(size=(n, d)), rng.exponential(size=n)
    in_first = np.zeros(n, bool)
    in_first[np.random.default_rng(convex_module._SAMPLE_SEED).permutation(n)[-14:]] = True
    blocks = [np.flatnonzero(in_first), np.flatnonzero(~in_first)]
    target = Target(np.ones(n, bool), time)
    criterion = Criterion(CoxSplit(target, in_first), Mean(), uniform_mass(n), blocks)
    found = minimise(LinearProblem(X, criterion, 0.01), tol=1e-8, max_iter=200)
    assert found.status == "converged"


def test_without_anything_to_learn_the_start_is_optimal():
    # The only event is the last patient at risk: its loss is zero whatever the scores.
    target = Target(np.array([False, True]), np.array([1.0, 2.0]))
    for make, _ in OBJECTIVES.values():
        found = minimise(problem_of(np.array([[1.0], [2.0]]), target, make=make), tol=1e-8, max_iter=10)
        assert (found.status, found.value, found.x.tolist()) == ("converged", 0.0, [0.0])


def test_more_features_than_patients_are_no_more_directions_than_patients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 70))
    problem = problem_of(X, Target(rng.random(20) < 0.7, rng.exponential(size=20)), l2=0.2)
    assert problem.size == 20
    # Any coefficients of those directions give the scores that the problem sees.
    theta = rng.normal(size=20)
    coef = problem.coefficients(theta)
    assert coef.shape == (70,)
    np.testing.assert_allclose((X - problem.centre) @ coef, problem.X @ theta, atol=1e-10)


@pytest.mark.parametrize("from_sample", [True, False])
@pytest.mark.parametrize("make", [Mean, lambda: ChiSquare(0.3)], ids=["mean", "chi2"])
@pytest.mark.parametrize("loss", ["breslow", "split"])
def test_hessians_without_a_fold_are_nearly_those_of_the_other_patients(loss, make, from_sample, monkeypatch):
    monkeypatch.setattr(convex_module, "_NEWTON_WORK", 2e5 if from_sample else np.inf)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 12)) * np.logspace(-2, 2, 12)
    target = Target(
        rng.random(6000) < 0.7, rng.exponential(size=6000) * np.exp(0.4 * X[:, 5] / X[:, 5].std())
    )
    problem = problem_of(X, target, loss, make, l2=1e-6)
    assert (problem.sample is not None) == from_sample
    theta = minimise(problem, max_iter=200).x
    fold = rng.integers(0, 5, len(X))
    found, differences = problem.hessians_without(theta, fold), []
    # Of all patients, or from the sample.
    whole = problem.curvature()[1]
    problem.sample = None
    for k, hessian in enumerate(found):
        part = problem.without(fold == k)
        part.value(theta)
        exact = part.curvature()[1]
        root = np.linalg.cholesky(np.linalg.inv(exact))
        differences.append([np.linalg.norm(root.T @ (h - exact) @ root, 2) for h in (hessian, whole)])
    print(differences)
    near, far = np.mean(differences, axis=0)
    assert near < 0.5 * far
