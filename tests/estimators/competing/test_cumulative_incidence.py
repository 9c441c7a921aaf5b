import numpy as np

from drosurv.curves import CompetingCurves, StepCurves, TableValues


def cumulative_incidence(hazards):
    """Incidences (causes, n, T) of causes with cumulative hazards (causes, n, T) at the times 1, 2, ..."""
    times = np.arange(1.0, hazards.shape[-1] + 1)
    *causes, any_cause = (
        StepCurves(TableValues(times, np.exp(-hazard)), times, own_hazard=True)
        for hazard in [*hazards, hazards.sum(axis=0)]
    )
    curves = CompetingCurves(tuple(causes), any_cause)
    return np.stack([curves.incidence(k + 1, times) for k in range(len(hazards))])


def test_incidences_of_small_jumps_are_the_integral_of_survival_by_hazard():
    times = np.linspace(0, 3, 20_001)[1:]
    hazards = np.stack([0.5 * times, 0.2 * times**2])[:, None, :]
    found = cumulative_incidence(hazards)[:, 0]
    # By the trapezoid rule from the definition, integral of S(u) h_k(u) du.
    survival = np.exp(-hazards.sum(axis=0))[0]
    for k, rate in enumerate([0.5 * np.ones_like(times), 0.4 * times]):
        density = survival * rate
        wanted = np.sum((density[1:] + density[:-1]) / 2) * (times[1] - times[0])
        np.testing.assert_allclose(found[k, -1] - found[k, 0], wanted, rtol=1e-3)


def test_incidences_and_survival_sum_to_one():
    jumps = np.random.default_rng(0).exponential(size=(3, 5, 40)) / 10
    jumps[:, :, ::3] = 0.0
    hazards = jumps.cumsum(axis=-1)
    found = cumulative_incidence(hazards)
    np.testing.assert_allclose(found.sum(axis=0) + np.exp(-hazards.sum(axis=0)), 1.0, rtol=1e-12)
    assert (np.diff(found, axis=-1) >= 0).all()
