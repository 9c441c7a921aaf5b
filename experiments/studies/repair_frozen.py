"""Models that are repaired as they are, without being fitted again."""

import numpy as np

from drosurv import CoxPH, Surv, repair
from drosurv.curves import StepFunction
from drosurv.datasets import make_hidden_minority
from experiments.studies.repair_data import normal, skewed
from experiments.studies.repair_scores import measured


def frozen(setting, seed):
    """A model that stays as it is: right, right but for everyone's level or slope, or trained in another place."""
    rng = np.random.default_rng(90_000 + seed)
    if setting.startswith("another place"):
        there = make_hidden_minority(4000, minority=0.0, random_state=90_000 + seed)
        share = 0.0 if "no group" in setting else 0.15
        here, test = (
            make_hidden_minority(n, minority=share, random_state=k + seed)
            for n, k in ((2000, 91_000), (4000, 92_000))
        )
        inside = (test.sensitive_features["membership"] == "minority").to_numpy()
        model = CoxPH().fit(there.X, there.y)
        models = {
            "as it came": model,
            "repaired": repair(model, here.X, here.y, frozen=True, random_state=seed),
            "Cox fitted here": CoxPH().fit(here.X, here.y),
        }
        return [measured(name, one, here.y, test, inside) for name, one in models.items()]
    n = 600
    X = skewed(rng, n) if seed % 2 else normal(rng, n)
    z = (X - X.mean()) / X.std()
    risk = z.to_numpy() @ rng.normal(scale=0.4, size=X.shape[1])
    said = {"level off": risk + 0.7, "slope off": 0.5 * risk}.get(setting, risk)
    event, end = rng.exponential(size=n) / np.exp(risk), 1.5 * rng.exponential(size=n)
    times = np.linspace(0.02, 5.0, 250)
    if setting == "right, in steps":
        # Events happen at ten times only, where the curves step.
        times = np.arange(1, 11) / 4
        chance = 1 - np.exp(-0.25 * np.exp(risk))
        event = rng.geometric(chance) / 4
        end = np.ceil(4 * end) / 4
    survival = np.exp(-np.outer(np.exp(said), times))
    y = Surv.from_arrays(event <= end, np.minimum(event, end))
    model = _Steps(times, survival) if "steps" in setting else (times, survival)
    found = repair(model, X, y, frozen=True, random_state=seed)
    row = {"method": "repair", "rules": "; ".join(r.who for r in found.repairs_)}
    row |= {"repairs": sum(r.rule is not None for r in found.repairs_)}
    row |= {"recalibrated": sum(r.rule is None for r in found.repairs_)}
    # Nothing was looked at where no rule had the odds on its side: that is an e-value of 1.
    for kind in ("everyone", "effects", "level"):
        row[f"e_{kind}"] = next((a.e for a in found.attempts_ if a.kind == kind), 1.0)
    return [row]


class _Steps:
    """A model whose curves step at given times."""

    def __init__(self, times, survival):
        self.times, self.survival = times, survival

    def predict_survival_function(self, X):
        return np.array([StepFunction(self.times, self.survival[i]) for i in X.index], dtype=object)
