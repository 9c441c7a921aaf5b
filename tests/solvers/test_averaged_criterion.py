"""The averaged problem against its definition: losses term by term, W as a dense matrix, torch's derivatives."""

import numpy as np
import pytest
import torch
from scipy import optimize

from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Mean
from drosurv.patients.target import Target
from drosurv.solvers import Criterion, LinearProblem, convex, minimise
from drosurv.solvers.adam import adam
from drosurv.solvers.neighborhoods import MatrixAverages, Partitions, forest
from drosurv.solvers.networks import ModuleBatch

from ..differences import differences

ALPHA = 0.3
OBJECTIVES = {"mean": Mean(), "cvar": CVaR(ALPHA), "chi2": ChiSquare(ALPHA)}


class Patients:
    """Few patients, their losses by the definition and averages by a dense matrix."""

    def __init__(self, n=60, d=2, n_intervals=3, seed=0, weighted=False):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, d)) + 1.5
        time = np.round(rng.exponential(size=n) * np.exp(-0.7 * self.X[:, 0]), 3) + 0.001
        self.target = Target(rng.random(n) < 0.7, time)
        self.weight = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
        self.mass = self.weight / self.weight.sum()
        self.loss = PiecewiseExponential(self.target, n_intervals, self.weight)
        self.around = forest(self.X, rng.normal(size=n), min_group=6, n_trees=4, random_state=seed)
        if weighted:
            self.around = Partitions(self.around.labels, self.weight)
        same = self.around.labels[:, :, None] == self.around.labels[:, None, :]
        shares = same * self.weight
        self.W = torch.tensor((shares / shares.sum(axis=2, keepdims=True)).mean(axis=0))
        self.offset = self.loss.null_losses()
        edges = np.concatenate([[0.0], self.loss.intervals.cut_points, [np.inf]])
        spent = np.minimum(time[:, None], edges[1:]) - edges[:-1]
        self.exposure = torch.tensor(np.maximum(spent, 0.0))
        self.interval = torch.tensor((time[:, None] > edges[None, 1:-1]).sum(axis=1))
        self.event = torch.tensor(self.target.event.astype(float))

    def criterion(self, objective, around=None):
        around = self.around if around is None else around
        return Criterion(self.loss, objective, self.mass, neighborhoods=around, null_losses=self.offset)

    def problem(self, objective, l2=0.0, around=None):
        return LinearProblem(self.X, self.criterion(objective, around), l2)

    def losses(self, scores, psi):
        hazard = torch.exp(scores) * (self.exposure @ torch.exp(psi))
        return hazard - self.event * (scores + psi[self.interval])

    def averages(self, z, W=None):
        """W (l - l0) at a point of the problem, whose features are centred."""
        z = torch.as_tensor(z)
        d = self.X.shape[1]
        scores = torch.tensor(self.X - self.mass @ self.X) @ z[:d]
        regrets = self.losses(scores, torch.tensor(self.loss.start) + z[d:]) - torch.tensor(self.offset)
        return (self.W if W is None else W) @ regrets

    def ridge(self, z, l2=0.0):
        d, z = self.X.shape[1], torch.as_tensor(z)
        return 0.5 * l2 * (z[:d] ** 2).sum() + 0.5 * 1e-6 * (z[d:] ** 2).sum()

    def point(self, seed=1):
        return 0.3 * np.random.default_rng(seed).normal(size=self.X.shape[1] + self.loss.n_intervals)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_curvature_is_the_derivative_of_the_gradient(name):
    patients = Patients()
    objective = OBJECTIVES["cvar"].smoothed(0.3) if name == "cvar" else OBJECTIVES[name]
    problem, z = patients.problem(objective, l2=0.2), patients.point()
    problem.value(z)
    fixed, following = problem.curvature()
    held = torch.tensor(objective(patients.averages(z).numpy()[None], patients.mass).weights[0])

    def under_held_weights(point):
        return held @ patients.averages(point) + patients.ridge(point, 0.2)

    np.testing.assert_allclose(
        fixed, torch.autograd.functional.hessian(under_held_weights, torch.tensor(z)).numpy(), atol=1e-10
    )

    def gradient(point):
        problem.value(point)
        return problem.gradient()

    np.testing.assert_allclose(following, differences(gradient, z), rtol=1e-4, atol=1e-6)


def best_by_scipy(patients, name, W=None, groups=None):
    """The optimum by sequential quadratic programming: epigraph of the objective, derivatives by torch."""
    size, n = patients.X.shape[1] + patients.loss.n_intervals, len(patients.X)
    mass, start = torch.tensor(patients.mass), np.zeros(size)
    if name == "chi2":

        def chi_square(joint):
            joint = torch.tensor(joint, requires_grad=True)
            excess = torch.relu(patients.averages(joint[:-1], W) - joint[-1])
            value = joint[-1] + torch.sqrt(mass @ excess**2 / ALPHA) + patients.ridge(joint[:-1])
            value.backward()
            return value.item(), joint.grad.numpy()

        return optimize.minimize(chi_square, np.append(start, -1.0), jac=True, method="BFGS").fun

    def averages(z):
        return (
            patients.averages(z, W)
            if groups is None
            else groups @ patients.averages(z, torch.eye(n, dtype=torch.float64))
        )

    def ridge_slope(z):
        return np.concatenate([np.zeros(patients.X.shape[1]), 1e-6 * z[patients.X.shape[1] :]])

    m = len(averages(start))
    price = patients.mass / ALPHA if groups is None else np.zeros(m)
    slack = np.eye(m) if groups is None else np.zeros((m, m))

    def above(joint):
        return joint[size] + slack @ joint[size + 1 :] - averages(joint[:size]).numpy()

    def above_slope(joint):
        slope = -torch.autograd.functional.jacobian(averages, torch.tensor(joint[:size])).numpy()
        return np.concatenate([slope, np.ones((m, 1)), slack], axis=1)

    first = averages(start).numpy().max()
    return optimize.minimize(
        lambda joint: joint[size] + price @ joint[size + 1 :] + float(patients.ridge(joint[:size])),
        np.concatenate([start, [first], np.full(m, 0.1)]),
        jac=lambda joint: np.concatenate([ridge_slope(joint[:size]), [1.0], price]),
        constraints={"type": "ineq", "fun": above, "jac": above_slope},
        bounds=[(None, None)] * (size + 1) + [(0, None)] * m,
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    ).fun


@pytest.mark.parametrize(("name", "weighted"), [("cvar", True), ("chi2", False)])
def test_the_optimum_is_scipys_and_lies_above_its_certificate(name, weighted):
    patients = Patients(weighted=weighted)
    solution = minimise(patients.problem(OBJECTIVES[name]), tol=1e-7, max_iter=300)
    expected = best_by_scipy(patients, name)
    assert solution.status == "converged"
    assert solution.value == pytest.approx(expected, abs=1e-6)
    assert solution.lower_bound <= expected + 1e-9
    assert solution.value - solution.lower_bound <= 1e-7 * solution.scale


def test_averages_of_nobody_give_the_worst_share_of_patients():
    patients = Patients()
    alone = MatrixAverages(np.eye(len(patients.X)))
    solution = minimise(patients.problem(CVaR(ALPHA), around=alone), tol=1e-7, max_iter=300)
    assert solution.value == pytest.approx(
        best_by_scipy(patients, "cvar", torch.eye(60, dtype=torch.float64)), abs=1e-6
    )


def test_averages_of_groups_give_the_worst_group():
    patients = Patients()
    codes = (patients.X[:, 0] > 2.2).astype(int)
    share = np.bincount(codes).min() / len(codes)
    solution = minimise(patients.problem(CVaR(share), around=Partitions(codes[None])), tol=1e-7, max_iter=300)
    means = torch.tensor(np.stack([(codes == g) / (codes == g).sum() for g in (0, 1)]))
    assert solution.value == pytest.approx(best_by_scipy(patients, "groups", groups=means), abs=1e-6)


@pytest.mark.parametrize("name", ["cvar", "chi2"])
def test_a_sampled_curvature_leads_to_the_same_optimum(name, monkeypatch):
    patients = Patients(n=600, d=4, n_intervals=5, weighted=True)
    exact = minimise(patients.problem(OBJECTIVES[name]), tol=1e-7, max_iter=300)
    monkeypatch.setattr(convex, "_AVERAGED_WORK", 300 * 9)
    problem = patients.problem(OBJECTIVES[name])
    sampled = minimise(problem, tol=1e-7, max_iter=300)
    assert len(problem.sample.X) == 300
    assert sampled.status == exact.status == "converged"
    assert sampled.value == pytest.approx(exact.value, abs=1e-6)
    np.testing.assert_allclose(sampled.x[:4], exact.x[:4], atol=2e-3)


def test_an_interval_whose_events_lose_all_weight_keeps_a_finite_hazard():
    patients = Patients()
    late = patients.target.time > patients.loss.intervals.cut_points[-1]
    # Only patients who left before the last interval are averaged over by anybody.
    W = np.tile(np.where(late, 0.0, 1.0) / (~late).sum(), (len(late), 1))
    solution = minimise(patients.problem(Mean(), around=MatrixAverages(W)), tol=1e-8, max_iter=300)
    assert solution.status == "converged"
    assert abs(solution.x).max() < 20


def test_a_constant_feature_gets_no_coefficient():
    patients = Patients()
    patients.X = np.column_stack([patients.X, np.full(60, 0.1)])
    solution = minimise(patients.problem(CVaR(ALPHA)), tol=1e-6, max_iter=300)
    assert solution.status == "converged"
    assert solution.x[2] == 0.0


@pytest.mark.parametrize("l2", [0.0, 0.4])
def test_adam_follows_torchs_own_on_the_definition(l2, torch_adam):
    patients = Patients()
    steps, lr, objective = 10, 0.05, CVaR(ALPHA)
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()
    delta = torch.zeros(patients.loss.n_intervals, dtype=torch.float64, requires_grad=True)
    network, extra = ModuleBatch([_copy(module)], patients.X), patients.loss.start[None].copy()
    history = adam(network, patients.criterion(objective), np.array([lr]), steps, l2, extra=extra)[0]

    step = torch_adam([*module.parameters(), delta], lr)
    expected = []
    for _ in range(steps):
        scores = module(torch.tensor(patients.X))[:, 0]
        losses = patients.losses(scores, torch.tensor(patients.loss.start) + delta)
        averages = patients.W @ (losses - torch.tensor(patients.offset))
        worst = torch.sort(averages, descending=True).values[: int(ALPHA * 60)].mean()
        ridge = l2 / 2 * sum((p**2).sum() for p in module.parameters()) + 0.5e-6 * (delta**2).sum()
        (worst + ridge).backward()
        step()
        expected.append((worst + ridge).item())
    np.testing.assert_allclose(history, expected, rtol=1e-7)
    np.testing.assert_allclose(extra[0] - patients.loss.start, delta.detach().numpy(), rtol=1e-5, atol=1e-8)


def _copy(module):
    other = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()
    other.load_state_dict(module.state_dict())
    return other
