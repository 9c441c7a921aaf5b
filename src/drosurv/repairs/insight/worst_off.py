"""Who a model serves worst, as rules found on some patients and checked on others."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, as_number, require
from drosurv.estimators.parameters import check_count
from drosurv.folds import draw_folds
from drosurv.metrics.harm import likelihood_gains
from drosurv.metrics.inference import generator
from drosurv.observation import numbers
from drosurv.repairs.insight.curves import follow_up_of, predicted_curves
from drosurv.repairs.insight.findings import Estimate, Finding, WorstOff, Wrong
from drosurv.repairs.insight.group_finders import GroupFinder, HarmFinder, WrongnessFinder, residuals_of
from drosurv.repairs.insight.rules import CodedTable, readable_table
from drosurv.repairs.insight.wrongness import Limits
from drosurv.target import parse_target

LEAST_CHECKED = 20
MIN_EVENTS = 10


def worst_off(
    model: Any,
    X: Any,
    y: Any,
    *,
    kind: Wrong = "harm",
    y_train: Any = None,
    features: pd.DataFrame | None = None,
    harm: Any = None,
    max_rules: int = 3,
    max_conditions: int = 3,
    min_group: int = 50,
    confidence: float = 0.95,
    min_stability: float = 0.5,
    n_folds: int = 10,
    n_bootstraps: int = 50,
    random_state: int | np.random.Generator | None = 0,
) -> WorstOff:
    """Describe, in rules one can read, the patients whom a model serves badly.

    Three kinds of wrongness can be looked for. "harm": served worse than by no model. Harm is a patient's
    full-likelihood loss under the model minus that under the null model (everyone has the training set's curve).
    "level": more or fewer of them had the event than the model expected. "effects": the level or the effects of
    features differ from the model's. For these two, harm is the log likelihood that a correction learnt from other
    patients of the group would gain a patient. Real Cox models seldom harm a group, but often have its level wrong.

    What the search finds on all patients is then checked: the search is repeated without each tenth of the
    patients, and the same group's harm is measured on the tenth left out; and it is repeated on bootstrap
    samples. A rule is reported as a group only if the harm on patients not used to find it is above 0 with
    the given confidence (shared over the rules found), which is where its interval begins, and the group
    comes back in at least `min_stability` of the bootstraps.

    Parameters
    ----------
    model : fitted survival model, or a pair (times, survival), or None
        Anything with scikit-survival's ``predict_survival_function`` or ``predict_cumulative_hazard_function``,
        or survival probabilities (n, p) at p increasing times; None if `harm` is given.
    X : array or DataFrame, (n, d)
        Features as the model takes them, preferably of patients it was not trained on.
    y : structured array, (n,)
        Events and times of the same patients.
    kind : {"harm", "level", "effects"}
        What to look for.
    y_train : structured array or FollowUp, optional
        Target of the training set, for the null model; by default what the model keeps of it, else ``y``.
    features : DataFrame, (n, d'), optional
        Columns the rules may speak about, in units and names a reader knows; ``X`` by default.
    harm : (n,), optional
        With kind "harm", another measure of it, positive where a patient is badly served, for example the loss
        minus that of another model.
    max_rules, max_conditions : int
        At most so many rules with so many conditions each.
    min_group : int
        Least number of patients a rule may hold.
    confidence : float
        Of each end of the intervals, and so of the statement that a group is harmed; above 0.5.
    min_stability : float
        Least share of bootstraps in which a group must come back.
    n_folds, n_bootstraps : int
        How often the search is repeated for the check and for the stability.
    random_state : int, Generator or None
        Seed or source of folds and bootstraps.

    Returns
    -------
    WorstOff
        With ``.groups``, ``.status``, ``.to_frame()``, ``.to_markdown()`` and ``.plot(ax=...)``.

    Examples
    --------
    >>> from sksurv.linear_model import CoxPHSurvivalAnalysis
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.repairs.insight import worst_off
    >>> train, test = make_hidden_minority(random_state=0), make_hidden_minority(random_state=1)
    >>> model = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    >>> result = worst_off(model, test.X, test.y, y_train=train.y, n_bootstraps=5)
    >>> str(result.groups[0].rule)
    'x5 > 1.02'
    """
    target = parse_target(y)
    names = getattr(model, "feature_names_in_", None)
    table = readable_table(X, len(target), names, features)
    require(kind in get_args(Wrong), "kind", f"be one of {get_args(Wrong)}", kind)
    if kind != "harm" and harm is not None:
        raise ArgumentError.must("harm", f'be left away with kind="{kind}"', harm)
    require(0.5 < as_number(confidence) < 1, "confidence", "lie between 0.5 and 1", confidence)
    limits = {"max_rules": max_rules, "max_conditions": max_conditions}
    for name, count in {**limits, "n_folds": n_folds, "min_group": min_group}.items():
        check_count(name, count)
    require(0 <= as_number(min_stability) <= 1, "min_stability", "be a share in [0, 1]", min_stability)
    check_count("n_bootstraps", n_bootstraps, least=0)
    if n_folds < 2 or len(target) * (1 - 1 / n_folds) < 2 * min_group:
        raise ArgumentError(
            "min_group",
            f"{len(target)} patients in {n_folds} folds cannot hold two groups of min_group={min_group!r}; "
            "use n_folds >= 2 and a smaller min_group, or more patients.",
        )
    coded = CodedTable.from_table(table)
    finder: GroupFinder
    if kind == "harm":
        if harm is None:
            curves = predicted_curves(model, X, len(target))
            values = -likelihood_gains(follow_up_of(model, y_train, target), target, curves)
        else:
            values = numbers("harm", harm, len(target))
        finder = HarmFinder(coded, values, min_group, **limits)
    else:
        effects = table if X is None else readable_table(X, len(target), names)
        residuals = residuals_of(model, X, target, effects)
        least = Limits(min_group, MIN_EVENTS, level_only=kind == "level")
        finder = WrongnessFinder(coded, residuals, least, **limits)
    rng = generator(random_state)
    found = finder.find(np.ones(len(target)))
    covered = finder.held(found)
    checked, values, again = finder.check(covered, draw_folds(len(target), n_folds, rng, target.event))
    everyone = np.ones(len(target), dtype=np.bool_)
    stability = finder.stability(covered, n_bootstraps, rng)
    # The confidence is shared over the rules, since each had its chance to look harmful.
    doubt = (1 - confidence) / max(len(found), 1)
    findings = []
    for j, atoms in enumerate(found):
        inside, outside = values[j][checked[j] == 1], values[j][checked[j] == 0]
        harm_there = Estimate.mean(inside, 1 - 2 * doubt)
        findings.append(
            Finding(
                rule=coded.rule(atoms),
                n_patients=int(covered[j].sum()),
                share=float(covered[j].mean()),
                n_events=int(target.event[covered[j]].sum()),
                n_checked=len(inside),
                harm=harm_there,
                rest=Estimate.mean(outside, 1 - 2 * doubt),
                difference=Estimate.difference(inside, outside, 1 - 2 * doubt),
                harm_found=float(finder.harm(covered[j], everyone)[covered[j]].mean()),
                observed_expected=finder.observed_expected(checked[j] == 1, 1 - 2 * doubt),
                folds_found=int(again[j]),
                stability=float(stability[j]),
                harmed=len(inside) >= LEAST_CHECKED and harm_there.low > 0,
                stable=bool(stability[j] >= min_stability),
            )
        )
    # Corrections add up; harm over no model is the same whatever was found.
    total = finder.harm(everyone, everyone) if kind == "harm" else values.sum(axis=0)
    return WorstOff(
        kind=kind,
        findings=tuple(findings),
        overall=Estimate.mean(total, 2 * confidence - 1),
        n_patients=len(target),
        n_events=target.n_events,
        confidence=confidence,
        min_group=min_group,
    )
