"""CoxPHCV where the truth is known: straight, curved and stepped effects.

Six columns, three of them with an effect, correlated; hazards rise with time, about 60 % have the event. Every model is
judged by its gain on 4,000 new patients, and as a share of the gain of the true log hazards with an estimated baseline.

python -m experiments.studies.curved_effects --output results/curved --seeds 20          # resumable
python -m experiments.studies.curved_effects --output results/curved --write             # into docs/guide/cox_cv.md
"""

from itertools import product

import numpy as np
import pandas as pd

from drosurv import CoxPH, CoxPHCV, Surv
from experiments.studies.gains import patient_gains
from experiments.studies.pages import table, write_part
from experiments.studies.rows import load, measure, parser

SIZES = (300, 1000, 3000)
# The effects of the first three columns, each with about the same spread.
SHAPES = {
    "straight": (lambda x: 0.6 * x, lambda x: 0.4 * x, lambda x: -0.3 * x),
    "one curve": (lambda x: 0.5 * (x**2 - 1), lambda x: 0.4 * x, lambda x: -0.3 * x),
    "three curves": (
        lambda x: 0.5 * (x**2 - 1),
        lambda x: 1.2 * np.tanh(1.5 * x),
        lambda x: 0.6 * np.exp(-2 * x**2),
    ),
    "a step": (lambda x: 1.2 * (x > 0.5), lambda x: 0.4 * x, lambda x: -0.3 * x),
}
MODELS = {
    "Cox": lambda: CoxPH(),
    "CoxPHCV(splines=False)": lambda: CoxPHCV(splines=False, random_state=0),
    "CoxPHCV()": lambda: CoxPHCV(random_state=0),
}


def draw(shape, n, rng):
    """Patients and their true log hazards."""
    common = rng.normal(size=(n, 1))
    x = np.sqrt(0.3) * common + np.sqrt(0.7) * rng.normal(size=(n, 6))
    risk = np.sum([effect(x[:, j]) for j, effect in enumerate(SHAPES[shape])], axis=0)
    event = (rng.exponential(size=n) / np.exp(risk)) ** (1 / 1.3)
    end = rng.uniform(0.2, 2.5, size=n)
    frame = pd.DataFrame(x, columns=[f"x{j + 1}" for j in range(6)])
    return frame, Surv.from_arrays(event <= end, np.minimum(event, end)), pd.DataFrame({"risk": risk})


def work(shape, n, seed):
    """The gains of every model and of the truth, in one row."""
    rng = np.random.default_rng([seed, n, list(SHAPES).index(shape)])
    X, y, risk = draw(shape, n, rng)
    new_X, new_y, new_risk = draw(shape, 4000, rng)
    found = {"truth": patient_gains(CoxPH().fit(risk, y), y, new_risk, new_y).mean()}
    for name, make in MODELS.items():
        model = make().fit(X, y)
        found[name] = patient_gains(model, y, new_X, new_y).mean()
    return [{**found, "splined": any(len(knots) for knots in model.knots_.values())}]


def summary(rows):
    """Mean gains, and how often splines were chosen."""
    body = []
    for shape, n in product(SHAPES, SIZES):
        own = rows[(rows["shape"] == shape) & (rows["n"] == n)]
        if own.empty:
            continue
        gained = own["CoxPHCV()"] - own["Cox"]
        error = gained.std(ddof=1) / np.sqrt(len(own))
        means = [f"{own[name].mean():.3f}" for name in ("truth", *MODELS)]
        body.append(
            [
                shape,
                f"{n:,}",
                *means,
                f"{gained.mean():+.4f} ({error:.4f})",
                f"{int(own['splined'].sum())} of {len(own)}",
            ]
        )
    header = [
        "effects",
        "patients",
        "truth",
        *MODELS,
        "CoxPHCV() less Cox (standard error)",
        "splines chosen",
    ]
    return "\n".join(table(header, body))


def main():
    options = parser(__doc__, "curved", seeds=20).parse_args()
    if not options.write:
        units = [
            {"shape": shape, "n": n, "seed": seed}
            for seed, shape, n in product(range(options.seeds), SHAPES, SIZES)
        ]
        measure(options.output, units, work, options.jobs, options.minutes)
    text = summary(load(options.output))
    print(text)
    if options.write:
        write_part("guide/cox_cv.md", "python -m experiments.studies.curved_effects", text)


if __name__ == "__main__":
    main()
