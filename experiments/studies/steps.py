"""A step beside curves: a cut that the splines of CoxPHCV partly follow, and an attempt to find it all the same.

Three columns have a linear effect; below a cut of another one the hazard is 2.5 times as high. The attempt: if CoxPHCV
chose splines, a rule is searched for in the residuals of the linear model, and CoxPHCV is fitted again with the rule as
a column. If that passes the tests of a repair, RepairedCox repairs this model. PATH is as in experiments.neutral.

python -m experiments.studies.steps --output results/steps --neutral PATH    # resumable
python -m experiments.studies.steps --output results/steps --write           # into docs/repair.md
"""

from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import norm

from drosurv import CoxPH, CoxPHCV, RepairedCox
from drosurv.judging.rules import CodedTable, readable_table
from drosurv.patients.draws import draw_folds
from drosurv.patients.target import parse_target
from drosurv.predictions import as_predictions
from drosurv.repairs.bayes_factors import Limits, Residuals, propose
from drosurv.repairs.checked_search import CheckedSearch
from drosurv.repairs.expected import FoldFits, expected_of_fitted
from drosurv.repairs.repair_search import Correction, Found, RepairSearch
from experiments.neutral.repository import load_fold
from experiments.studies.gains import patient_gains
from experiments.studies.pages import mean_se, table, write_part
from experiments.studies.repair_data import MAJORITY, one_draw
from experiments.studies.rows import load, measure, parser

SIZES, SHARES, DATASETS = (1000, 3000), (0.10, 0.16), ("colrec", "support")
MODELS = ("RepairedCox()", "RepairedCox(CoxPH())", "fitted again with the rule")


@dataclass(frozen=True, eq=False)
class Refitted(Found):
    """A rule with which CoxPHCV was fitted again; `r` (n,) is how much that changes the log risks."""

    r: np.ndarray | None = None
    choices = (("level", 1.0),)


class RefitSearch(RepairSearch):
    """A search for rules in the residuals of the linear model, fitted to the counted patients."""

    def __init__(self, X, y, search):
        super().__init__(search.table, search.residuals, search.counted, search.max_conditions)
        self.X, self.y = X, y

    def _find(self, kind, limits):
        own, linear = self.counted, self._fitted(self.X, splines=False)
        left = Residuals(self.residuals.events, self._expected(linear), np.ones((len(own), 2)))
        found = propose(self.table, left, own, limits, self.max_conditions)
        if found is None or found.log_odds <= 0:
            return None
        inside = self.table.covers(found.atoms)
        before, columns = self._fitted(self.X), with_rule(self.X, inside)
        r, expected = self._fitted(columns).predict(columns) - before.predict(self.X), self._expected(before)
        r -= np.log(expected[own] @ np.exp(r[own]) / expected[own].sum())
        none = Correction(*np.zeros((2, 2)))
        return Refitted(found.atoms, inside, {"level": none}, found.log_odds, r=np.clip(r, -2.5, 2.5))

    def ratios(self, found, rows=slice(None), choice=None):
        return found.r[None, rows]

    def _fitted(self, X, **options):
        return CoxPHCV(random_state=0, **options).fit(X[self.counted], self.y[self.counted])

    def _expected(self, model):
        curves = as_predictions(model, self.X, len(self.y)).survival_curves
        return np.clip(expected_of_fitted(curves, parse_target(self.y), np.ones(1)).hazard, 1e-4, None)


def with_rule(X, inside):
    return X.assign(**{"in the group": inside.astype(float)})


def step(X, y, seed):
    """The accepted rule of a step beside the curves of CoxPHCV, or None."""
    base = CoxPHCV(random_state=0).fit(X, y)
    if not any(map(len, base.knots_.values())):
        return None
    folds = draw_folds(len(y), 5, np.random.default_rng(seed), y["event"])
    fits = FoldFits(CoxPHCV(random_state=0), base, X, y, folds, np.ones(1), np.zeros(0))
    known = fits.joined(fits.out_of_fold(lambda *_: None))
    residuals = Residuals(known.events, known.hazard, np.ones((len(y), 2)))
    coded = CodedTable.from_table(readable_table(X, len(y)))
    checked = CheckedSearch(coded, residuals, folds, 2, 20.0, lambda *_: None)
    again = partial(RefitSearch, X, y)
    checked.on_all, checked.without_fold = again(checked.on_all), list(map(again, checked.without_fold))
    checked.on_first = {key: again(search) for key, search in checked.on_first.items()}
    trial = checked.try_kind("level", Limits(int(min(50, max(20, len(y) / 80))), 10, level_only=True))
    return trial.rule if trial is not None and trial.accepted else None


def draw(share, n, seed):
    """A dataset of six columns, and who of its patients is below the cut."""
    options = {"effects": MAJORITY, "level": np.log(2.5), "d": 6}
    return one_draw({"member": lambda x, _: x[:, 4] < norm.ppf(share), **options}, n, 170_000 + seed)


def work(data, n, seed, path=None):
    """Gains of the three models on other patients, and of planted steps whether a rule is nearly the group."""
    if isinstance(data, str):
        fold, inside = load_fold(path, data, 1), None
        X, y, new_X, new_y = fold.X_train, fold.y_train, fold.X_test, fold.y_test
    else:
        (train, _), (test, inside) = draw(data, n, seed), draw(data, 4000, 1000 + seed)
        X, y, new_X, new_y = train.X, train.y, test.X, test.y
    rule = step(X, y, seed)
    own, new = (part if rule is None else with_rule(part, rule.holds(part)) for part in (X, new_X))
    row, fits = {"rule": str(rule)}, ((None, X, new_X), (CoxPH(), X, new_X), (None, own, new))
    for name, (base, known, others) in zip(MODELS, fits, strict=True):
        model = RepairedCox(base, random_state=seed).fit(known, y)
        row[name] = patient_gains(model, y, others, new_y).mean()
        rules = [one for one in (*(repair.rule for repair in model.repairs_), known is own and rule) if one]
        groups = [group for one in rules for group in (one.holds(others), ~one.holds(others))]
        if inside is not None:
            row[f"{name}, found"] = any(2 * (g & inside).sum() >= (g | inside).sum() for g in groups)
    return [row]


def summary(rows):
    body = []
    for (data, n), own in rows.groupby(["data", "n"], sort=False):
        found = {m: f", {own[f'{m}, found'].sum():.0f} of {len(own)}" if n else "" for m in MODELS}
        cells = [mean_se(own[m], 4) + found[m] for m in MODELS]
        body.append([f"{data:.0%} of {n:,} patients" if n else data, *cells])
    return "\n".join(table(["", *MODELS], body)).rstrip()


def main():
    options = parser(__doc__, "steps", seeds=6)
    options.add_argument("--neutral", type=Path, help="checkout with two real datasets")
    options = options.parse_args()
    if not options.write:
        wanted = [*product(SHARES, SIZES, range(options.seeds))]
        wanted += [(name, 0, 0) for name in DATASETS if options.neutral]
        units = [dict(zip(("data", "n", "seed"), unit, strict=True)) for unit in wanted]
        measure(options.output, units, partial(work, path=options.neutral), options.jobs, options.minutes)
    print(text := summary(load(options.output)))
    if options.write:
        write_part("repair.md", "python -m experiments.studies.steps", text)


if __name__ == "__main__":
    main()
