"""Other programs that fit Cox's model, each in a process of its own with the packages it needs.

``fit(name, X, y)`` runs one and returns its coefficients (boosted trees: the scores of new patients) and the seconds of
its fit alone: no imports, no compilation, no reading of data. Where a peer is not installed it raises :class:`Missing`
with the reason.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# lifelines needs an older pandas, skglm and XGBoost are no dependencies, so they live in folders of their own.
FOLDERS = {"lifelines": "peers", "skglm": "bench-peers", "xgboost": "bench-peers"}
# What a fit must be repeated for: the quick ones, of which the best of several is taken.
REPEATS = {
    "lifelines": 1,
    "scikit-survival": 1,
    "skglm": 3,
    "R": 3,
    "cv.glmnet": 2,
    "xgboost": 2,
    "scikit-survival's trees": 1,
}
R_PROGRAMS = {"R": "coxph_fit.R", "cv.glmnet": "cv_glmnet.R"}
# skglm's default tolerance leaves coefficients several digits short of the optimum.
SKGLM_TOLERANCE = 1e-6
# Of boosted trees: rounds, their shrinkage, and how many rounds of a booster are timed that is quadratic.
ROUNDS = 200
SHRINKAGE = 0.05
TIMED_ROUNDS = 2


class Missing(Exception):
    """A peer that is not on this machine."""


def fit(name, X, y, new=None, **observed):
    """Coefficients, or scores of new patients, and CPU seconds of a peer's fit of Cox's model with Breslow's ties.

    R also takes ``entry`` and ``strata``.
    """
    with tempfile.TemporaryDirectory() as folder:
        more = {} if new is None else {"new": new}
        np.savez(Path(folder, "data.npz"), X=X, event=y["event"], time=y["time"], **more)
        if name in R_PROGRAMS:
            _run_r(name, folder, X, y, **observed)
        else:
            _run_python(name, folder)
        found = json.loads(Path(folder, "fit.json").read_text())
    return np.array(found["coef"]), min(found["seconds"])


def _run_python(name, folder):
    paths = [str(Path(__file__).parents[2])]
    if name in FOLDERS:
        folder_of = Path(sys.prefix, FOLDERS[name])
        if not (folder_of / name).is_dir():
            raise Missing(f"{name} is not installed in {folder_of.name}")
        paths.insert(0, str(folder_of))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    _run([sys.executable, "-W", "ignore", "-m", "experiments.speed.peers", name, folder], environment)


def _run_r(name, folder, X, y, **observed):
    script = shutil.which("Rscript")
    if script is None:
        raise Missing("R is not installed (Debian: r-cran-survival)")
    np.asfortranarray(X).T.tofile(Path(folder, "X.bin"))
    y["time"].astype(np.float64).tofile(Path(folder, "time.bin"))
    y["event"].astype(np.float64).tofile(Path(folder, "event.bin"))
    for argument, values in observed.items():
        np.asarray(values, dtype=np.float64).tofile(Path(folder, f"{argument}.bin"))
    program = Path(__file__).with_name(R_PROGRAMS[name])
    _run([script, str(program), folder, *map(str, X.shape), str(REPEATS[name])], dict(os.environ))


def _run(command, environment):
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Missing(f"it did not run: {last[0]}")


def lifelines(X, event, time):
    """A fit by lifelines, to be timed."""
    import pandas as pd
    from lifelines import CoxPHFitter

    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    table["time"], table["event"] = time, event
    return lambda: CoxPHFitter().fit(table, "time", "event").params_.to_numpy()


def scikit_survival(X, event, time):
    """A fit by scikit-survival, to be timed."""
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.util import Surv

    y = Surv.from_arrays(event, time)
    return lambda: CoxPHSurvivalAnalysis(ties="breslow").fit(X, y).coef_


def skglm(X, event, time):
    """A fit by skglm's L-BFGS, to be timed after its kernels are compiled."""
    from skglm.datafits import Cox
    from skglm.penalties import L2
    from skglm.solvers import LBFGS

    features, y = np.asfortranarray(X), np.column_stack([time, event]).astype(np.float64)
    solver = LBFGS(max_iter=500, tol=SKGLM_TOLERANCE)
    solver.solve(features[:200], y[:200], Cox(use_efron=False), L2(0.0))
    return lambda: solver.solve(features, y, Cox(use_efron=False), L2(0.0))[0]


def xgboost(X, event, time):
    """Trees by XGBoost, to be timed; then the scores of any patients."""
    import xgboost as library

    settings = {
        "objective": "survival:cox",
        "max_depth": 3,
        "eta": SHRINKAGE,
        "nthread": 1,
        "tree_method": "hist",
    }

    def call():
        # Times of the censored are negative.
        data = library.QuantileDMatrix(X, np.where(event, time, -time), nthread=1)
        booster = library.train(settings, data, ROUNDS)
        return lambda new: booster.predict(library.DMatrix(new), output_margin=True).astype(float)

    return call


def scikit_survival_trees(X, event, time):
    """Some rounds of trees by scikit-survival, to be timed; then the scores of any patients."""
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis
    from sksurv.util import Surv

    y = Surv.from_arrays(event, time)
    model = GradientBoostingSurvivalAnalysis(random_state=0, n_estimators=TIMED_ROUNDS)
    return lambda: model.fit(X, y).predict


PROGRAMS = {
    "lifelines": lifelines,
    "scikit-survival": scikit_survival,
    "skglm": skglm,
    "xgboost": xgboost,
    "scikit-survival's trees": scikit_survival_trees,
}


def main():
    """Run one peer on stored data, as a process of its own."""
    name, folder = sys.argv[1:]
    data = np.load(Path(folder, "data.npz"))
    call, seconds, coef = PROGRAMS[name](data["X"], data["event"], data["time"]), [], None
    for _ in range(REPEATS[name]):
        began = time.process_time()
        coef = call()
        seconds.append(time.process_time() - began)
    if "new" in data:
        coef = coef(data["new"])
    Path(folder, "fit.json").write_text(json.dumps({"coef": coef.tolist(), "seconds": seconds}))


if __name__ == "__main__":
    main()
