"""How often a repair changes frozen models that are right, by the type of their curves.

    python -m experiments.studies.curve_types --runs 500 --jobs 16 -o curve_types.json

Required: at most 5 % of runs changed. "years": events at whole years only, survival predicted for each year.
"discrete": a discrete-time model with 20 intervals, trained on 20,000 other patients; its own error counts too.
"coarse": exact survival at five times, under hazards that fall (Weibull shape 0.5) and rise (2). "lognormal": the same
where the timing of events within intervals depends on the features.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from drosurv import DiscreteTimeHazard, Surv, repair
from experiments.studies.repeated import parser, repeat

N = 1000


def features(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Three normal columns and a flag."""
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    return X.assign(flag=(rng.random(n) < 0.4).astype(float))


def score(X: pd.DataFrame) -> np.ndarray:
    """Log hazard ratio."""
    return (0.7 * X["a"] - 0.5 * X["b"] + 0.5 * X["flag"]).to_numpy()


def observed(time: np.ndarray, end: np.ndarray) -> Any:
    """Target of patients who are censored at the end."""
    return Surv.from_arrays(time <= end, np.minimum(time, end))


def years(rng: np.random.Generator) -> tuple[Any, pd.DataFrame, Any]:
    """Events and censoring at the end of years."""
    X = features(N, rng)
    rate, at = 0.2 * np.exp(score(X)), np.arange(1.0, 9.0)
    time, end = np.ceil(rng.exponential(size=N) / rate), rng.integers(1, 9, N).astype(float)
    return (at, np.exp(-np.outer(rate, at))), X, observed(time, end)


def weibull(n: int, shape: float, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, np.ndarray]:
    """Features, target and rates of patients with Weibull times and exponential censoring."""
    X = features(n, rng)
    rate = np.exp(score(X))
    time, end = (rng.exponential(size=n) / rate) ** (1 / shape), np.minimum(rng.exponential(1.5, n), 3.0)
    return X, observed(time, end), rate


def coarse(shape: float, rng: np.random.Generator) -> tuple[Any, pd.DataFrame, Any]:
    """Exact predictions at five times."""
    X, y, rate = weibull(N, shape, rng)
    at = np.array([0.25, 0.5, 1.0, 2.0, 3.0])
    return (at, np.exp(-np.outer(rate, at**shape))), X, y


def lognormal(rng: np.random.Generator) -> tuple[Any, pd.DataFrame, Any]:
    """Exact predictions at five times of an accelerated failure time model."""
    X = features(N, rng)
    mean, at = -score(X), np.array([0.25, 0.5, 1.0, 2.0, 3.0])
    time, end = np.exp(mean + 0.8 * rng.normal(size=N)), np.minimum(rng.exponential(1.5, N), 3.0)
    return (at, norm.sf((np.log(at) - mean[:, None]) / 0.8)), X, observed(time, end)


@cache
def discrete_model() -> DiscreteTimeHazard:
    """Trained once in each process."""
    X, y, _ = weibull(20_000, 1.3, np.random.default_rng(10**6))
    return DiscreteTimeHazard(20, link="cloglog", random_state=0).fit(X, y)


def discrete(rng: np.random.Generator) -> tuple[Any, pd.DataFrame, Any]:
    """A discrete-time model, whose curves are smooth inside of its intervals."""
    X, y, _ = weibull(N, 1.3, rng)
    return discrete_model(), X, y


CASES: dict[str, Callable[[np.random.Generator], tuple[Any, pd.DataFrame, Any]]] = {
    "years": years,
    "discrete": discrete,
    "coarse, shape 0.5": partial(coarse, 0.5),
    "coarse, shape 2": partial(coarse, 2.0),
    "coarse, lognormal": lognormal,
}


def changed(name: str, seed: int) -> dict[str, float]:
    """Whether the model was changed, and whether it would be on e-values alone."""
    model, X, y = CASES[name](np.random.default_rng(seed))
    found = repair(model, X, y, frozen=True, random_state=seed)
    return {
        "changed": float(len(found.repairs_) > 0),
        "e_of_20": float(np.nanmax([attempt.e for attempt in found.attempts_], initial=0.0) >= 20),
    }


def main() -> None:
    """Run the simulations, print the rates, and write them as JSON."""
    options = parser(__doc__)
    options.add_argument("--cases", nargs="*", choices=CASES, default=CASES)
    given = options.parse_args()
    repeat([({"case": name}, partial(changed, name)) for name in given.cases], given)


if __name__ == "__main__":
    main()
