"""How often right predictions are called wrong, how often wrong ones are found, and whether intervals hold the truth.

    python -m experiments.studies.false_alarms --runs 500 --seed 5000 --jobs 16 --tables docs/tables

Every setting is one kind of patients and one kind of predictions of them; each run draws new patients, asks all
questions of `drosurv.judging` about all patients and two groups, and notes which single tests reject at 5 %, and
which problems the verdict names after its adjustment. Results are written in parts of 25 runs, one JSON object per
line; started again with the same file, parts that are in it are not run again. The tables are false_alarms.csv and
power.csv.

- Exact predictions: true probabilities at one, three or many times, or as functions of time, of Weibull,
  log-logistic, log-normal, cure and fading-effect times, two arms (one early, one late), whole years and months,
  rare events, groups that are followed differently, censoring that depends on the risk; rounded; in clusters;
  weighted; with late entry, strata and causes; with a threshold.
- Fresh: settings in which no constant of the tests was chosen.
- Fitted: Cox, strata, late entry, causes, AFT, discrete time, each fitted to other patients, few and many.
- Cross-fitted: Cox and AFT in five folds.
- Wrong: level, group, slope, group slopes, timing, swapped groups, harm.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from drosurv import AcceleratedFailureTime, CauseSpecificCox, CoxPH, DiscreteTimeHazard, Surv, evaluate
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.questions import questions
from drosurv.judging.verdict import PROBLEMS, findings
from drosurv.patients.observation import Rows
from drosurv.predictions import Predictions, as_predictions
from drosurv.report.cross_fit import cross_fitted, fold_parts
from experiments.studies.coverage import FRESH, fresh_patients

PART = 25
LEVEL = 0.95
# Patients among whom it is seen whether a fitted model is worse than no model.
MANY = 20_000
TIMES = {"one time": (3.0,), "three times": (1.0, 3.0, 5.0), "many times": tuple(np.linspace(0.06, 6, 100))}
FURTHER_TIMES = {"every year": tuple(np.arange(1.0, 8.0)), "24 times": tuple(np.linspace(0.5, 12, 24))}
TABLES = Path("docs/tables")


@dataclass
class Drawn:
    """Patients of one run: outcomes, groups, true survival, and what else is known of them."""

    y: Any
    group: np.ndarray
    survival: Callable[[np.ndarray], np.ndarray]
    rows: Rows = field(default_factory=Rows)
    features: np.ndarray | None = None


# Exact predictions.


def draw(kind: str, n: int, rng: np.random.Generator, *, follow: str = "by risk") -> Drawn:
    """Draw patients of a kind; censoring depends on the risk, or differs between groups."""
    g, eta = rng.random(n) < 0.45, 0.8 * rng.normal(size=n)
    if kind == "groups of different risk":
        eta = eta + 0.5 * g
    e, u = np.exp(eta), rng.random(n)
    C = np.minimum(rng.exponential(6 * np.exp(-0.4 * eta)), 6.5)
    if follow == "by group":
        C = rng.exponential(np.where(g, 2.0, 10.0))
    if follow == "independent":
        C = rng.uniform(1, 8, n)
    T, S = _times(kind, e, eta, g, u, rng)
    happened, Y = T <= C, np.minimum(T, C)
    if kind in ("whole years", "whole months"):
        unit = 1.0 if kind == "whole years" else 1 / 12
        C = np.ceil(C / unit) * unit
        happened, Y = T <= C, np.ceil(np.minimum(T, C) / unit) * unit
    return Drawn(Surv.from_arrays(happened, Y), g, S, features=eta[:, None])


def _times(kind: str, e: Any, eta: Any, g: Any, u: Any, rng: Any) -> tuple[np.ndarray, Callable[[Any], Any]]:
    """Return event times, and the function of the true survival at times (k,)."""
    H = -np.log(u)
    c = e[:, None]
    if kind == "log-logistic":
        return np.sqrt(1 / u - 1) / e / 0.4, lambda t: 1 / (1 + (0.4 * t * c) ** 2)
    if kind == "log-normal":
        return np.exp(0.7 * norm.isf(u) - eta + 1), lambda t: norm.sf((np.log(t) - 1 + eta[:, None]) / 0.7)
    if kind == "cure":
        p = 1 / (1 + np.exp(0.3 - eta))
        T = np.where(rng.random(len(u)) < p, rng.exponential(1.5, len(u)), np.inf)
        return T, lambda t: 1 - p[:, None] * (1 - np.exp(-t / 1.5))
    if kind == "fading effect":
        first = 0.3 * e * 1.5
        T = np.where(first > H, H / (0.3 * e), 1.5 + (H - first) / 0.3)
        return T, lambda t: np.exp(-0.3 * (np.minimum(t, 1.5) * c + np.maximum(t - 1.5, 0)))
    if kind == "two arms":
        k = np.where(g, 0.6, 1.6)
        return 3 * (H / (0.75 * e)) ** (1 / k), lambda t: np.exp(-0.75 * c * (t / 3) ** k[:, None])
    if kind == "steep hazard":
        b = 3 + 6 * norm.cdf(-eta / 0.8)
        return b * H**0.1, lambda t: np.exp(-((t / b[:, None]) ** 10))
    if kind == "uniform lifetimes":
        # Some programs write a small probability in place of 0.
        b = 3 + 7 * norm.cdf(-eta / 0.8)
        return b * (1 - u), lambda t: np.clip(1 - t / b[:, None], 1e-9, 1)
    if kind == "rare events":
        return H / e * 60, lambda t: np.exp(-t / 60 * c)
    if kind == "common events":
        return H / e * 2, lambda t: np.exp(-t / 2 * c)
    shape = 1.0 if kind in ("whole years", "whole months") else 1.3
    return (H / e) ** (1 / shape) / 0.3, lambda t: np.exp(-c * (0.3 * t) ** shape)


def exact(kind: str, times: str, n: int, seed: int, **how: Any) -> dict[str, Any]:
    """Judge exact predictions at times, or as functions of time."""
    rng = np.random.default_rng(seed)
    decimals, threshold, follow = (how.get(name) for name in ("decimals", "threshold", "follow"))
    patients = draw(kind, n, rng, follow=follow or "by risk")
    at = np.array((TIMES | FURTHER_TIMES).get(times, (3.0,)))
    if times == "functions":
        predicted = as_predictions(_functions(patients.survival, n), None, n)
    else:
        S = patients.survival(at)
        predicted = as_predictions((at, S if decimals is None else S.round(decimals)), None, n)
    return ask(predicted, patients, threshold=threshold, horizon=3.0 if threshold else None)


def _functions(survival: Callable[[Any], Any], n: int) -> Predictions:
    """Predictions as one function of time for each patient."""
    grid = np.linspace(0, 12, 1201)
    values = survival(np.maximum(grid, 1e-9))
    return Predictions(survival=[partial(np.interp, xp=grid, fp=values[i]) for i in range(n)])


def tiny_group(n: int, tiny: int, shift: float, seed: int) -> dict[str, Any]:
    """Exact predictions, a threshold, and few patients with a label of their own."""
    rng = np.random.default_rng(seed)
    g = rng.integers(2, size=n)
    eta = 0.8 * rng.normal(size=n) + shift * g
    T, C, at = rng.exponential(5 * np.exp(-eta)), rng.uniform(2, 8, n), np.array([1.0, 2, 3, 5])
    S = np.exp(-0.2 * at * np.exp(eta)[:, None])
    labels = np.where(np.arange(n) < tiny, 2, g)
    patients = Drawn(Surv.from_arrays(T <= C, np.minimum(T, C)), labels, lambda t: S, features=eta[:, None])
    return ask(as_predictions((at, S), None, n), patients, threshold=0.3, horizon=3.0)


def copies(patients: int, per_patient: int, times: str, seed: int) -> dict[str, Any]:
    """Exact predictions of patients with several identical rows, as clusters."""
    rng = np.random.default_rng(seed)
    drawn, at = draw("Weibull", patients, rng), np.array(TIMES[times])
    i = np.repeat(np.arange(patients), per_patient)
    together = Drawn(drawn.y[i], drawn.group[i], drawn.survival, Rows(clusters=i), drawn.features[i])
    return ask(as_predictions((at, drawn.survival(at)[i]), None, len(i)), together)


def weighted(n: int, times: str, seed: int) -> dict[str, Any]:
    """Exact predictions of rows that stand for one to three patients each.

    Rows of w patients are drawn as such, so the rows' outcomes are those of w copies only in expectation: each copy is
    drawn, and equal rows are counted.
    """
    rng = np.random.default_rng(seed)
    drawn, at = draw("whole years", n, rng), np.array(TIMES[times])
    eta = np.round(drawn.features[:, 0] * 2) / 2
    p = 1 - np.exp(-0.3 * np.exp(eta))
    T, C = rng.geometric(p).astype(float), np.minimum(np.ceil(rng.exponential(6, n)), 7.0)
    happened, Y = T <= C, np.minimum(T, C)
    table = pd.DataFrame({"eta": eta, "Y": Y, "d": happened, "g": drawn.group}).value_counts().reset_index()
    S = np.exp(-0.3 * np.exp(table["eta"].to_numpy())[:, None] * at)
    i = np.repeat(np.arange(len(table)), table["count"])
    y = Surv.from_arrays(table["d"].to_numpy(), table["Y"].to_numpy())[i]
    counted = Drawn(y, table["g"].to_numpy()[i], lambda t: S[i], Rows(), table[["eta"]].to_numpy()[i])
    return ask(as_predictions((at, S[i]), None, len(i)), counted)


def late_entry(n: int, times: str, seed: int, *, late: float = 1.0) -> dict[str, Any]:
    """Exact predictions of patients of whom a share came under observation late."""
    rng = np.random.default_rng(seed)
    x, V = 0.8 * rng.normal(size=3 * n), rng.uniform(0, 2, 3 * n)
    V = np.where(rng.random(3 * n) < late, V, 0.0) if late < 1 else V
    T = (rng.exponential(size=3 * n) / np.exp(x)) ** (1 / 1.3) / 0.3
    kept = np.flatnonzero(T > V)[:n]
    x, V, T = x[kept], V[kept], T[kept]
    C, at = V + rng.uniform(0.5, 6, n), np.array(TIMES[times])
    S = np.exp(-np.exp(x)[:, None] * (0.3 * at) ** 1.3)
    y = Surv.from_arrays(T <= C, np.minimum(T, C))
    drawn = Drawn(y, rng.random(n) < 0.5, lambda t: S, Rows(entry=V), x[:, None])
    decided: dict[str, Any] = {"threshold": 0.4, "horizon": 3.0} if late < 1 and times != "many times" else {}
    return ask(as_predictions((at, S), None, n), drawn, **decided)


def one_cause(
    n: int, times: str, every_cause: bool, seed: int, *, threshold: float | None = None, factor: float = 1.0
) -> dict[str, Any]:
    """Incidences of one of two causes, given with or without those of the other; exact where the factor is 1."""
    rng = np.random.default_rng(seed)
    x = 0.8 * rng.normal(size=n)
    first, second = 0.15 * np.exp(x), 0.1 * np.exp(-0.5 * x)
    T, C = rng.exponential(1 / (first + second)), rng.uniform(1, 8, n)
    at = np.array(TIMES.get(times, np.arange(1.0, 8.0)))
    if times == "every year":
        T, C = np.ceil(T), np.ceil(C)
    cause = np.where(T > C, 0, np.where(rng.random(n) < first / (first + second), 1, 2))
    first = first * factor
    left = -np.expm1(-(first + second)[:, None] * at)
    F = {k: (rate / (first + second))[:, None] * left for k, rate in ((1, first), (2, second))}
    drawn = Drawn(
        Surv.competing(cause, np.minimum(T, C)), rng.random(n) < 0.5, lambda t: left, features=x[:, None]
    )
    given = Predictions(incidence=F, times=at) if every_cause else Predictions(survival=1 - F[1], times=at)
    horizon = 3.0 if threshold else None
    return ask(as_predictions(given, None, n), drawn, cause=1, threshold=threshold, horizon=horizon)


#: Censoring times of few-times kinds, given random numbers, the feature x and the sex.
CENSORING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "independent": lambda rng, x, sex: rng.exponential(12, len(x)),
    "where |x| > 1": lambda rng, x, sex: rng.exponential(1 / np.where(np.abs(x) > 1, 0.5, 1 / 12)),
    "sex and risk": lambda rng, x, sex: rng.exponential(1 / np.where((x > 0) == (sex > 0), 0.4, 0.06)),
    "exp |x|": lambda rng, x, sex: rng.exponential(1 / (0.05 * np.exp(1.2 * np.abs(x)))),
    "high risks followed shortly": lambda rng, x, sex: np.where(
        x > 0.8, rng.uniform(1, 3.5, len(x)), rng.uniform(4, 8, len(x))
    ),
    "two periods": lambda rng, x, sex: np.where(
        rng.random(len(x)) < 0.6, rng.uniform(0.5, 2.5, len(x)), rng.uniform(4, 7, len(x))
    ),
    "end of study": lambda rng, x, sex: np.minimum(
        rng.uniform(0.5, 10.5, len(x)), rng.exponential(30, len(x))
    ),
    "crossing hazards": lambda rng, x, sex: rng.exponential(8, len(x)),
    "crossing hazards, by arm": lambda rng, x, sex: rng.exponential(np.where(sex, 3.0, 14.0)),
    "heavy": lambda rng, x, sex: rng.exponential(1.5, len(x)) * np.exp(-0.5 * x),
    "very heavy": lambda rng, x, sex: rng.exponential(0.4, len(x)),
}


def censored(kind: str, at: tuple[float, ...], n: int, seed: int, *, factor: float = 1.0) -> dict[str, Any]:
    """Probabilities at few times with a kind of censoring; hazards of the patients are `factor` times those said."""
    rng = np.random.default_rng([seed, n])
    x, sex = rng.normal(size=n), rng.integers(0, 2, n)
    shape = np.where(sex, 0.7, 2.2) if kind.startswith("crossing") else np.full(n, 1.3)
    rate = 0.15 * np.exp(0.8 * x)
    T, C = (rng.exponential(size=n) / (factor * rate)) ** (1 / shape), CENSORING[kind](rng, x, sex)
    S = np.exp(-rate[:, None] * np.array(at) ** shape[:, None])
    drawn = Drawn(Surv.from_arrays(T <= C, np.minimum(T, C)), sex > 0, lambda t: S)
    return ask(as_predictions((np.array(at), S), None, n), drawn)


def fresh(setting: str, seed: int) -> dict[str, Any]:
    """Judge exact predictions in a setting in which no constant of the tests was chosen."""
    predicted, y, group, clusters = fresh_patients(FRESH[setting], FRESH[setting].n, seed)
    drawn = Drawn(y, group, lambda t: t, Rows(clusters=clusters))
    return ask(as_predictions(predicted, None, len(y)), drawn)


# Fitted models.


def cohort(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, Any, dict[str, Any]]:
    """Draw features, outcomes, and what else a model of the kind is given."""
    k = 3 * n
    X, s = rng.normal(size=(k, 3)), rng.integers(2, size=k)
    rate = np.exp(X @ [0.6, 0.4, 0.0])
    shape = np.where(s == 0, 0.7, 1.5) if kind == "strata" else np.full(k, 1.2)
    T = (rng.exponential(size=k) / rate) ** (1 / shape) / 0.3
    V = rng.uniform(0, 2, k) if kind == "late entry" else np.zeros(k)
    other = rng.exponential(6 * np.exp(-X @ [-0.3, 0.4, 0.2])) if kind == "causes" else np.full(k, np.inf)
    C = V + rng.uniform(1, 7, k)
    kept = np.flatnonzero(np.minimum(T, other) > V)[:n]
    X, s, T, V, other, C = (part[kept] for part in (X, s, T, V, other, C))
    first = np.minimum(T, other)
    Y, happened = np.minimum(first, C), first <= C
    if kind == "whole years":
        C = np.ceil(C)
        happened, Y = T <= C, np.ceil(np.minimum(T, C))
    if kind == "causes":
        y = Surv.competing(np.where(~happened, 0, np.where(other >= T, 1, 2)), Y)
    else:
        y = Surv.from_arrays(happened, Y, entry=V if kind == "late entry" else None)
    return X, y, {"strata": s} if kind == "strata" else {}


MODELS: dict[str, Callable[[], Any]] = {
    "causes": CauseSpecificCox,
    "AFT": partial(AcceleratedFailureTime, "weibull"),
    "discrete time": partial(DiscreteTimeHazard, 20, "cloglog"),
}


def fitted(kind: str, trained: int, n: int, seed: int, *, cause: int | None = None) -> dict[str, Any]:
    """Judge a right model that was fitted to other patients."""
    rng = np.random.default_rng(seed)
    (X, y, given), (X_test, y_test, given_test) = cohort(kind, trained, rng), cohort(kind, n, rng)
    model = MODELS.get(kind, CoxPH)().fit(X, y, **given)
    rows = Rows.parse(y_test, **given_test)
    drawn = Drawn(y_test, X_test[:, 0] > 0, lambda t: t, rows)

    def harmful() -> bool:
        X_more, y_more, given_more = cohort(kind, MANY, np.random.default_rng([seed, MANY]))
        found = evaluate(model, X_more, y_more, cause=cause, **given_more)
        return bool(found.overall["likelihood_gain"] < 0)

    return ask(as_predictions(model, X_test, n, rows=rows), drawn, cause=cause, harmful=harmful)


def folds(kind: str, n: int, seed: int) -> dict[str, Any]:
    """Judge predictions of five folds, each of a model fitted to the others."""
    rng = np.random.default_rng(seed)
    X, y, _ = cohort(kind, n, rng)
    found = cross_fitted(MODELS.get(kind, CoxPH)(), X, y, fold_parts(y["event"], 5, seed))
    drawn = Drawn(y, rng.random(n) < 0.5, lambda t: t)
    return ask(as_predictions(found, X, n), drawn)


# Wrong predictions.


def wrong(kind: str, times: str, n: int, seed: int) -> dict[str, Any]:
    """Judge predictions that are wrong in one way."""
    rng = np.random.default_rng(seed)
    g, x = rng.random(n) < 0.3, rng.normal(size=n)
    true = 0.8 * x + np.log(0.3)
    said = true.copy()
    shape = 1.0
    if kind == "level, 1.3 times":
        said = true - np.log(1.3)
    if kind == "group, 1.5 times":
        said = np.where(g, true - np.log(1.5), true)
    if kind == "slope 0.74":
        said = np.log(0.3) + 0.8 * x * 1.35
    if kind == "slope of a group 0":
        true = np.where(g, np.log(0.4), true)
    if kind == "swapped groups":
        true, said = np.where(g, true + 0.5, true - 0.5), np.where(g, true - 0.5, true + 0.5)
    if kind == "harm":
        said = np.log(0.3) - 0.8 * x
    if kind == "timing":
        shape = 2.0
    H = rng.exponential(size=n)
    T = (H / np.exp(true)) ** (1 / shape)
    if shape != 1.0:
        T = T * 1.2
    C, at = np.minimum(rng.exponential(8, n), 6.0), np.array(TIMES[times])
    happened, Y = T <= C, np.minimum(T, C)
    if kind == "timing":
        said = true + np.log(happened.sum() / (np.exp(true) * Y).sum())
    S = np.exp(-np.exp(said)[:, None] * at)
    drawn = Drawn(Surv.from_arrays(happened, Y), g, lambda t: S, features=x[:, None])
    return ask(as_predictions((at, S), None, n), drawn)


def ask(
    predicted: Any,
    drawn: Drawn,
    *,
    threshold: float | None = None,
    horizon: float | None = None,
    cause: int | None = None,
    harmful: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Return rejections of single tests at 5 %, and problems after adjustment.

    Overfitting is no false alarm: too large a spread of a fitted model, and harm of one that is worse than no model
    for very many patients too (`harmful`).
    """
    groups = {str(k): drawn.group == k for k in np.unique(drawn.group)}
    members = {
        ("overall", "all"): np.ones(len(drawn.y), bool),
        **{("group", k): m for k, m in groups.items()},
    }
    judged = judged_patients(
        predicted,
        drawn.y,
        drawn.rows,
        horizon=horizon,
        cause=cause,
    )
    asked = questions(judged, members, threshold=threshold)
    rows = findings(asked, LEVEL)
    problems = [row for row in rows if row.status in PROBLEMS]
    harm = any(row.status == "harm" for row in problems) and harmful()
    overfitted = [
        row
        for row in problems
        if (judged.trained and row.question == "slope" and row.value < 1) or (harm and row.status == "harm")
    ]
    single: dict[str, list[int]] = {}
    for question in asked:
        if question.estimate is not None and not question.question.startswith("gain"):
            whom = "" if question.attribute == "overall" else ", group"
            counts = single.setdefault(f"{question.question}{whom}", [0, 0])
            counts[0] += 1
            counts[1] += question.estimate.p < 1 - LEVEL
    return {
        "any problem": len(problems) > len(overfitted),
        "overfitting": bool(overfitted),
        "single": single,
        "problems": sorted({f"{row.question}, {row.status}" for row in problems if row not in overfitted}),
    }


KINDS = ("Weibull", "log-logistic", "log-normal", "cure", "fading effect", "two arms")
EXACT: dict[str, Callable[[int], dict[str, Any]]] = {
    **{
        f"{kind}, {times}, n = {n:,}": partial(exact, kind, times, n)
        for kind in KINDS
        for times in (*TIMES, "functions")
        for n in ((600, 2_000) if times != "functions" else (600,))
    },
    **{
        f"whole years, {times}": partial(exact, "whole years", times, 1_000)
        for times in ("every year", "one time")
    },
    **{
        f"{kind}, 24 times, n = {n:,}": partial(exact, kind, "24 times", n, follow="independent")
        for kind in ("steep hazard", "uniform lifetimes")
        for n in (800, 3_000)
    },
    "whole months, three times": partial(exact, "whole months", "three times", 1_000),
    **{
        f"{kind}, followed by group, {times}": partial(exact, kind, times, 1_000, follow="by group")
        for kind in ("Weibull", "log-logistic", "whole years")
        for times in ("one time", "three times", "many times" if kind != "whole years" else "every year")
    },
    **{
        f"{kind}, {decimals} decimals, {times}": partial(exact, kind, times, n, decimals=decimals)
        for kind, n in (("common events", 1_000), ("rare events", 2_000))
        for decimals in (2, 3)
        for times in ("three times", "every year", "many times")
    },
    **{
        f"threshold, groups of different risk, {times}": partial(
            exact, "groups of different risk", times, 1_000, threshold=0.5
        )
        for times in ("one time", "three times")
    },
    **{f"threshold, {tiny} others": partial(tiny_group, 600, tiny, 0.0) for tiny in (0, 6, 15, 30, 60)},
    "threshold, risk shifted": partial(tiny_group, 1_000, 0, 0.5),
    **{
        f"{m} patients x {k} rows, {times}": partial(copies, m, k, times)
        for m, k in ((400, 2), (200, 5))
        for times in ("one time", "many times")
    },
    **{f"counted rows, {times}": partial(weighted, 1_000, times) for times in ("one time", "three times")},
    **{f"late entry, {times}": partial(late_entry, 800, times) for times in TIMES},
    **{f"half entered late, {times}": partial(late_entry, 1_500, times, late=0.5) for times in TIMES},
    **{
        f"{name}, {times}": partial(one_cause, 1_000, times, every)
        for name, every in (
            ("incidence of each of two causes", True),
            ("incidence of one of two causes", False),
        )
        for times in (*TIMES, "every year")
    },
    **{
        f"threshold, incidence of each of two causes, {times}": partial(
            one_cause, 1_000, times, True, threshold=0.3
        )
        for times in TIMES
    },
    **{
        f"fresh setting: {setting}": partial(fresh, setting)
        for setting in FRESH
        if setting.startswith(("right", "one right curve"))
    },
}
EXACT |= {
    f"censoring: {kind}, {'three times' if len(at) > 1 else 'one time'}, n = {n:,}": partial(
        censored, kind, at, n
    )
    for kind, at in (
        *((kind, TIMES["three times"]) for kind in CENSORING if kind not in ("two periods", "end of study")),
        ("where |x| > 1", (3.0,)),
        ("two periods", (3.0,)),
        ("end of study", (5.0,)),
    )
    for n in (300, 1_500, 8_000)
}
FITTED: dict[str, Callable[[int], dict[str, Any]]] = {
    **{
        f"{kind}, {trained:,} to train, {n:,} judged": partial(fitted, kind, trained, n)
        for kind in ("plain", "strata", "late entry", "causes", "AFT", "discrete time", "whole years")
        for trained, n in ((1_000, 600), (500, 2_000), (150, 400))
    },
    **{
        f"cause {cause}, {trained:,} to train, {n:,} judged": partial(
            fitted, "causes", trained, n, cause=cause
        )
        for cause in (1, 2)
        for trained, n in ((1_000, 600), (500, 2_000), (150, 400))
    },
    **{
        f"{kind} in folds, n = {n}": partial(folds, kind, n)
        for kind in ("plain", "AFT", "whole years")
        for n in (300, 800)
    },
}
WRONG: dict[str, Callable[[int], dict[str, Any]]] = {
    f"{kind}, {times}, n = {n:,}": partial(wrong, kind, times, n)
    for kind in (
        "level, 1.3 times",
        "group, 1.5 times",
        "slope 0.74",
        "slope of a group 0",
        "swapped groups",
        "harm",
        "timing",
    )
    for times in TIMES
    for n in (500, 2_000)
    if not (kind == "timing" and times == "one time")
} | {
    f"{name}, 1.4 times, {times}": partial(one_cause, 1_000, times, every, factor=1 / 1.4)
    for name, every in (("incidence of each of two causes", True), ("incidence of one of two causes", False))
    for times in TIMES
}
# With very heavy censoring nobody is followed until 3.
WRONG |= {
    f"censoring: {kind}, 1.35 times, n = 1,500": partial(
        censored, kind, (1.0 if kind == "very heavy" else 3.0,), 1_500, factor=1.35
    )
    for kind in CENSORING
}
SETTINGS = {**EXACT, **FITTED, **WRONG}


def part_of(setting: str, first: int, runs: int) -> dict[str, Any]:
    """Count over seeds from the first on."""
    begun = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        found = [SETTINGS[setting](seed) for seed in range(first, first + runs)]
    single: dict[str, list[int]] = {}
    named: dict[str, int] = {}
    for run in found:
        for question, (asked, rejected) in run["single"].items():
            counts = single.setdefault(question, [0, 0])
            counts[0], counts[1] = counts[0] + asked, counts[1] + int(rejected)
        for problem in run["problems"]:
            named[problem] = named.get(problem, 0) + 1
    return {
        "setting": setting,
        "first": first,
        "runs": runs,
        "any problem": sum(run["any problem"] for run in found),
        "overfitting": sum(run["overfitting"] for run in found),
        "single": single,
        "problems": named,
        "seconds": round(time.process_time() - begun, 1),
    }


def limits(asked: int, share: float = 0.05, outside: float = 0.001) -> tuple[float, float]:
    """Return the exact limits of a rejection rate, in percent, that chance leaves with 99.9 %."""
    low, high = binom.ppf([outside / 2, 1 - outside / 2], asked, share)
    return 100 * low / asked, 100 * high / asked


def summarized(parts: list[dict[str, Any]], chosen: dict[str, Any]) -> pd.DataFrame:
    """Percent of runs with any problem, and of rejected single tests, one row per setting."""
    rows = []
    for setting in chosen:
        own = [part for part in parts if part["setting"] == setting]
        runs = sum(part["runs"] for part in own)
        if not runs:
            continue
        row: dict[str, Any] = {"setting": setting, "runs": runs}
        for name in ("any problem", "overfitting"):
            row[name] = round(100 * sum(part[name] for part in own) / runs, 1)
        for question in dict.fromkeys(q for part in own for q in part["single"]):
            asked, rejected = (sum(part["single"].get(question, (0, 0))[k] for part in own) for k in (0, 1))
            row[question] = round(100 * rejected / max(asked, 1), 1)
            low, high = limits(max(asked, 1))
            if setting in EXACT and ", group" not in question and not low <= row[question] <= high:
                row["outside"] = f"{row.get('outside', '')} {question}".strip()
        named = pd.Series(
            [problem for part in own for problem, k in part["problems"].items() for _ in range(k)]
        )
        row["most often"] = "" if named.empty else str(named.mode()[0])
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Run what is not in the file yet, print the rates, and write the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.false_alarms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=500, help="runs of each setting")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--settings", nargs="*", default=[], help="only those whose name holds one of these")
    parser.add_argument("-o", "--output", type=Path, default=Path("false_alarms.jsonl"))
    parser.add_argument(
        "--tables", type=Path, default=None, help=f"folder of the tables; {TABLES} for the documents"
    )
    options = parser.parse_args()
    parts = []
    if options.output.exists():
        parts = [json.loads(line) for line in options.output.read_text().splitlines()]
    known = {(part["setting"], part["first"], part["runs"]) for part in parts}
    chosen = [
        name for name in SETTINGS if not options.settings or any(one in name for one in options.settings)
    ]
    end = options.seed + options.runs
    # Seeds in the outer loop, so that whatever is finished has about as many runs of every setting.
    units = [
        (name, first, min(PART, end - first)) for first in range(options.seed, end, PART) for name in chosen
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(part_of, *unit) for unit in units if unit not in known]
        for done in as_completed(waiting):
            if done.exception() is not None:
                pool.shutdown(cancel_futures=True)
            parts.append(done.result())
            with options.output.open("a") as file:
                file.write(json.dumps(parts[-1]) + "\n")
    for name, settings in (("false_alarms", {**EXACT, **FITTED}), ("power", WRONG)):
        table = summarized(parts, settings)
        with pd.option_context("display.width", 250, "display.max_columns", 30, "display.max_rows", 300):
            print(table.to_string(index=False, na_rep=""))
        if options.tables is not None:
            options.tables.mkdir(parents=True, exist_ok=True)
            table.to_csv(options.tables / f"{name}.csv", index=False)
    print(f"{sum(part['seconds'] for part in parts) / 60:.0f} core-minutes")


if __name__ == "__main__":
    main()
