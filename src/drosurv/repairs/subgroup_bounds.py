"""Simultaneous bounds on the error of a model in all subgroups that one or two conditions define."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, as_number, as_whole, each_warning_once, require, warn_caller
from drosurv.evaluation.group_picture import GroupPicture, PictureRow
from drosurv.findings.estimation_error import EstimationError
from drosurv.findings.from_predictions import judged_patients
from drosurv.findings.judged import Judged
from drosurv.findings.known_columns import known_columns
from drosurv.findings.questions import group_sums
from drosurv.findings.questions import n_patients as count_patients
from drosurv.findings.residual_tests import level as level_test
from drosurv.findings.residual_tests import timing as timing_test
from drosurv.findings.residuals import PatientResiduals, WeightedResiduals
from drosurv.findings.words import period, subgroup_events
from drosurv.metrics import FollowUp
from drosurv.metrics.scores import parse_weights
from drosurv.observation import Rows, generator
from drosurv.planning import excluded_errors
from drosurv.predictions import as_predictions, of_causes, one_row_each
from drosurv.presentation import (
    Column,
    Table,
    cause_in_words,
    counted,
    counted_patients,
    first_upper,
    moment,
    p_text,
    plain,
    plain_rows,
    ratio_text,
    written,
)
from drosurv.repairs.drawn_events import PatientEvents
from drosurv.repairs.rules import Rule, readable_table
from drosurv.repairs.simultaneous_tests import (
    LEAST,
    LEAST_EXPECTED,
    MOST,
    bounded_means,
    compare_events,
    events_of,
    judged_subgroups,
)
from drosurv.repairs.subgroup_sums import MOST_PAIRED, Subgroups
from drosurv.target import (
    BoolArray,
    FloatArray,
    Target,
    cause_names,
    has_causes,
    of_any_cause,
    parse_target,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_PATIENTS = 50
REPLICATES = 999
BRIER, GAIN = "brier", "gain"
_RATIOS = (MOST, LEAST)


@each_warning_once
def certify(
    model: Any,
    X: Any,
    y: Any,
    *,
    alpha: float = 0.05,
    horizon: float | None = None,
    brier_time: float | None = None,
    level: float = 0.95,
    features: Any = None,
    keep_columns: Sequence[str] = (),
    id: Any = None,
    n_bootstrap: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    entry: Any = None,
    strata: Any = None,
    offset: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    cause: int | str | None = None,
) -> SubgroupBounds:
    """Bound how wrong a model is in every subgroup that one or two conditions on the columns define.

    Subgroups are made of conditions on the columns: numbers above or not above a decile, a category or any other, a
    missing value; one condition, or two joined by "and", with more than 60 columns on the same column only. Those with
    at least the share `alpha` of the patients and at least 10 predicted events are tested all at once, on patients that
    the model was not trained on.

    Parameters
    ----------
    model : fitted survival model, :class:`drosurv.evaluation.Predictions`, or a pair (times, survival)
        It must predict survival curves: risk scores alone do not give a number of events.
    X : (n, d) array or DataFrame
        Features, as the model takes them, of patients that it was not trained on.
    y : structured array (n,)
        Events and times of the same patients; with competing causes, an event of any cause unless `cause` says which.
    alpha : float
        Size of the smallest subgroup, as a share of the patients in (0, 1]; the rows of one patient have equal shares.
    horizon : float, optional
        Time until which events are counted, and of the Brier score; by default the whole follow-up is counted.
    brier_time : float, optional
        Time of the Brier score, if not the `horizon`. Without both it is the median follow-up, but at most the last
        time at which a tenth of the patients is at risk, and one of the times of predictions at few times.
    level : float
        Confidence of the bounds, for all subgroups at once; 1 - level is the chance of a false alarm.
    features : DataFrame (n, d'), optional
        Columns that may define subgroups, in units and names that a reader knows; ``X`` by default.
    keep_columns : sequence of str
        Columns that are known when a prediction is made although they look like the outcome. Others that look like it
        define no subgroups.
    id : (n,) labels, optional
        Patient of each row. With `entry`, each patient is predicted from the first row; else the rows of a patient are
        a cluster.
    n_bootstrap : int, optional
        Number of simulations of events, and of bootstrap multipliers, by default 999. The smallest p-value is
        3 / (n_bootstrap + 1), so that with fewer than 59 nothing is significant at the level 0.95.
    random_state : int, Generator or None
        Seed or source of randomness.
    entry, strata, offset : (n,), optional
        Entry times, strata and offset of the patients, for models that take them.
    sample_weight : (n,), optional
        Weights of the patients; 2 counts a patient twice.
    clusters : (n,) labels, optional
        Patients with the same label, such as those of one hospital, may be correlated. All rows of an `id` are in one
        cluster.
    cause : int or str, optional
        Judge one of several causes; the Brier score is that of its incidence.

    Returns
    -------
    SubgroupBounds

    Notes
    -----
    *Observed / expected events* are those of :mod:`drosurv.findings`: over the follow-up where curves are known
    throughout, by the last predicted time, weighted for censoring, where predictions are known at few times. The
    statistic of a subgroup is the signed root of the Poisson deviance over the dispersion.

    *Timing.* The whole follow-up (not with `horizon`) is cut into at most four parts with equal numbers of
    expected events. The events of a subgroup in a part with at least 5 expected events are compared with its share
    of all events of the subgroup, whether their total is right or wrong: the statistic is the difference of square
    roots of counts, over the dispersion.

    *Adjustment.* The distribution of the largest and smallest statistic of the number of events, and of the largest
    absolute statistic of parts, over all subgroups, if the model is right, is simulated: p-values are shares of these
    simulations, times three. Events are drawn from the model's curves, until the patient's censoring time. This is the
    observed one; for patients with an event it is drawn from the Kaplan-Meier curve of censoring after the event. So a
    right model has a significant subgroup with probability of at most 1 - level, for any number of events. Bounds on
    the ratio are those that the same statistic does not reject on either side. With clusters, the rows of a cluster
    have the same outcome in a share of the simulations, chosen so that the sums of clusters vary as much as observed.

    The predictions of a fitted model have an estimation error, which is added to the variance if the number of
    training events is known; of predictions in folds, errors cancel, and it is subtracted. Bounds are for the given
    predictions, and do not contain this error.

    *Brier score and gain over the null model.* Means over a subgroup with one-sided bounds from the largest
    studentised deviation, by a multiplier bootstrap with one multiplier per patient or cluster.

    *Assumptions.* Patients (or clusters) are independent, and censoring is independent of the event time given the
    features; where curves are known throughout, for the Brier score, and for simulated censoring times after an event,
    censoring has the same distribution for all patients. Subgroups that need more than two columns, finer cuts, or
    columns that were not measured are not covered.

    *Many patients.* The simulations are of a sample of at most 200,000 patients, with 10,000 expected events if there
    are as many: the distribution of the most extreme statistic hardly changes with more. Replicates run in threads on
    all cores; the result does not depend on the number of threads.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(random_state=0), make_hidden_minority(random_state=1)
    >>> model = drosurv.CoxPH().fit(train.X, train.y)
    >>> bounds = drosurv.certify(model, test.X, test.y, n_bootstrap=59)
    >>> "x5 > " in bounds.significant["group"].iloc[0]
    True
    """
    weight = parse_weights(sample_weight, len(y))
    rows = Rows.parse(y, entry=entry, strata=strata, offset=offset, id=id, clusters=clusters)
    model, number = of_causes(model, cause, y)
    known = known_columns(model, X, y, features, entry=entry, keep_columns=keep_columns)
    known.warn()
    found = certify_rows(
        model,
        X,
        y,
        replace(rows, weight=weight),
        alpha=alpha,
        horizon=horizon,
        brier_time=brier_time,
        level=level,
        features=known.features,
        n_bootstrap=n_bootstrap,
        random_state=random_state,
        cause=number,
    )
    if n_bootstrap is not None and n_bootstrap < (fewest := _fewest_replicates(level)):
        warn_caller(
            f"with {arg('n_bootstrap', n_bootstrap)}, no subgroup can be significant at the level {level:g}: the "
            f"smallest p-value is 3/{n_bootstrap + 1}. At least {fewest:,} are needed.",
            argument="n_bootstrap",
        )
    notes = (*found.notes, *filter(None, (known.problem, known.note)))
    if rows.n_clusters:
        who = counted_patients(found.n_patients, 0, rows.n_clusters, rows.clusters_name)
        notes = (*notes, f"there are {who}.")
    if has_causes(y):
        notes = (*notes, f"events are those of {cause_in_words(number, cause_names(y))}.")
    return replace(found, notes=notes)


@each_warning_once
def certify_rows(
    model: Any,
    X: Any,
    y: Any,
    rows: Rows,
    *,
    alpha: float = 0.05,
    horizon: float | None = None,
    brier_time: float | None = None,
    level: float = 0.95,
    features: Any = None,
    n_bootstrap: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    cause: int | None = None,
    y_train: Any = None,
    groups: FloatArray | None = None,
    time_unit: str = "",
) -> SubgroupBounds:
    """Bound errors in subgroups, with arguments as in :func:`certify`; `rows` are checked already.

    `y_train` and indicators of `groups` (n, q) are what an evaluation of the same patients used besides, for the null
    model and for censoring, so that both give the same numbers of all patients. `time_unit` is that of times in notes.
    """
    require(0 < as_number(alpha) <= 1, "alpha", "lie in (0, 1]", alpha)
    require(0.5 <= as_number(level) < 1, "level", "lie in [0.5, 1)", level)
    n_bootstrap = REPLICATES if n_bootstrap is None else n_bootstrap
    require(as_whole(n_bootstrap) >= 19, "n_bootstrap", "be a whole number of at least 19", n_bootstrap)
    table = readable_table(X, len(y), getattr(model, "feature_names_in_", None), features)
    weight = np.ones(len(y)) if rows.weight is None else rows.weight
    patients = one_row_each(y, replace(rows, weight=None))
    y, rows, notes = patients.y, patients.observed, patients.notes
    model, X, table, weight, groups = map(patients.of, (model, X, table, weight, groups))
    if rows.entry is not None:
        notes = (*notes, "patients are judged from their entry on.")
    n = len(y)
    rows = replace(rows, weight=weight)
    _check_times(parse_target(of_any_cause(y)).take(weight > 0), horizon, brier_time)
    predicted = as_predictions(model, X, n, rows=replace(rows, weight=None), need_curves=True)
    columns = table if X is None else X
    how_judged: dict[str, Any] = {"follow_up": y_train, "groups": groups, "features": columns, "cause": cause}
    judge = partial(judged_patients, predicted, y, rows, **how_judged)
    judged = judge(horizon=brier_time if horizon is None else horizon)
    at_brier = judged if horizon is None or brier_time in (None, horizon) else judge(horizon=brier_time)
    everybody = np.ones(n, np.bool_)
    if judged.not_judged:
        notes = (*notes, judged.not_judged)
    n_patients = round(count_patients(judged, everybody))
    if n_patients < LEAST_PATIENTS:
        raise ArgumentError(
            "y",
            f"there are {n_patients} patients, too few for subgroups: at least {LEAST_PATIENTS} are needed.",
        )
    rng = generator(random_state)
    residuals, error, until = judged.residuals, judged.error, np.full(n, np.inf)
    if horizon is not None:
        residuals, error, until = judged.at_horizon, judged.error_at_horizon, judged.cohort.since + horizon
    events = PatientEvents.of(judged, residuals, until, rng)
    if judged.few_times:
        counted_by = f"events are counted by {moment(float(events.ends[-1]), time_unit)}"
        notes = (*notes, f"{counted_by}; observed ones are weighted for those censored before.")
    subgroups = judged_subgroups(table, events, alpha * events.counts.sum())
    if len(subgroups) == 0:
        raise ArgumentError(
            "alpha",
            f"no subgroup has at least {arg('alpha', alpha)} of the {n_patients:,} patients and {LEAST_EXPECTED:g} "
            "expected events: test more patients.",
        )
    sample = events.sample(rng)
    how = (level, n_bootstrap, rng)
    test = compare_events(subgroups, events, sample, *how, error)
    overall, timing = _overall(residuals, everybody, error)
    rescaled, wrong_timing = None, timing is not None and timing["p"] <= 1 - level
    if wrong_timing or overall["p"] <= 1 - level:
        ratios = np.full(len(events.ends), overall["ratio"])
        if wrong_timing:
            observed, expected = (weight @ part for part in (events.observed, events.expected))
            ratios = np.maximum(observed, 0.0) / np.maximum(expected, 1e-12)
        again = events.rescaled(ratios)
        rescaled = compare_events(subgroups, again, again.sample(rng), *how, error)
    means = {BRIER: brier_losses(at_brier), GAIN: -judged.gains}
    if not at_brier.scores_brier:
        del means[BRIER]
    bounded = bounded_means(subgroups, means, events.weight, sample, *how)
    if BRIER in bounded:
        bounded[BRIER]["bound"] = min(bounded[BRIER]["bound"], 1.0)
    bounded[GAIN] |= {name: -bounded[GAIN][name] for name in ("estimate", "bound", "all patients")}
    return SubgroupBounds(
        bounds=pd.DataFrame({**test.bounds, **bounded}).T[["estimate", "bound", "group"]],
        significant=test.significant,
        rules=test.rules,
        overall={**overall, **{name: bounded[name]["all patients"] for name in means}},
        rescaled=None if rescaled is None else rescaled.significant,
        timing=timing if wrong_timing else None,
        n_subgroups=len(subgroups),
        n_patients=n_patients,
        n_events=_counted(judged, events, until),
        alpha=float(alpha),
        level=float(level),
        horizon=at_brier.horizon,
        counted_until=None if horizon is None else float(horizon),
        notes=notes,
        subgroups=subgroups,
        n_bootstrap=int(n_bootstrap),
    )


def _counted(judged: Judged, events: PatientEvents, until: FloatArray) -> int:
    """Return the number of events that were counted: with predictions at few times, those by the last known one."""
    target = judged.cohort.target
    last = np.minimum(until, events.ends[-1]) if judged.few_times else until
    return round(float(events.weight @ (target.event & (target.time <= last))))


def enough_replicates(level: float, factor: float) -> int:
    """Return a number of replicates with which p-values can be significant after multiplication by a factor."""
    # The smallest p-value is 3 / (replicates + 1): with 999 replicates and a factor of 5, three tenths of 0.05.
    return int(np.ceil(REPLICATES * max(1.0, factor / 5 * 0.05 / (1 - level))))


def _fewest_replicates(level: float) -> int:
    """Return the smallest number of replicates with which a p-value can be at most 1 - level."""
    return int(np.ceil(3 / (1 - level))) - 1


def _check_times(target: Target, horizon: float | None, brier_time: float | None) -> None:
    """Raise if a time is not within the follow-up."""
    longest = float(target.time.max())
    for name, time in (("horizon", horizon), ("brier_time", brier_time)):
        require(time is None or as_number(time) > 0, name, "be a time above 0", time)
        if time is not None and time > longest:
            raise ArgumentError(
                name, f"{arg(name, time)} must not lie after the longest time in y, {longest:g}."
            )


def _overall(
    residuals: PatientResiduals, everybody: BoolArray, error: EstimationError | None
) -> tuple[dict[str, float], dict[str, Any] | None]:
    """Return the events of all patients together with the test of the level, and those of the most extreme part.

    p-values are adjusted for both tests. None if the timing of events is not tested.
    """
    sums = group_sums(residuals, everybody, error)
    assert sums is not None
    found, ends = level_test(sums), residuals.ends[: len(sums.observed)]
    counts = {"observed": max(float(sums.observed.sum()), 0.0), "expected": float(sums.expected.sum())}
    tested = timing_test(sums, ends)
    if tested is None:
        return {**counts, "ratio": found.value, "p": found.p}, None
    events = events_of(sums.observed, sums.expected, ends, int(np.searchsorted(ends, tested.time)))
    timing = {**events, "p": min(2 * tested.p, 1.0)}
    return {**counts, "ratio": found.value, "p": min(2 * found.p, 1.0)}, timing


def brier_losses(judged: Judged) -> FloatArray:
    r"""Return squared errors (n,) of predictions at the horizon, weighted by the inverse probability of censoring.

    .. math:: w_i = \frac{1[Y_i \le t, d_i = 1]}{G(Y_i-)} + \frac{1[T_i > t]}{G(t-)}

    With causes, d is an event of any cause; patients who had another one are free of this event. T > t is known if the
    patient was observed longer than t, or censored at t. At few times, G depends on the features.
    """
    at = judged.at_horizon
    if isinstance(at, WeightedResiduals):
        found: FloatArray = at.inverse[:, -1] * (at.happened[:, -1] - at.probability[:, -1]) ** 2
        return found
    durations, other = judged.cohort.durations, judged.cohort.other
    ends = replace(durations, other=other)
    horizon = np.array([judged.horizon])
    weights = FollowUp.of(ends, judged.cohort.copies).censoring_weights(ends, horizon)
    return weights.squared_errors(horizon, judged.risk[:, None]).ravel()


@dataclass(frozen=True, eq=False, repr=False)
class SubgroupBounds:
    """Bounds on how wrong a model is in any subgroup that one or two conditions define, from :func:`certify`.

    Parameters
    ----------
    bounds : DataFrame
        Rows "observed/expected, most", "observed/expected, least", "brier" (not with late entry and predictions at few
        times) and "gain". Columns: ``estimate``, the most
        extreme value of a subgroup; ``bound``, which no subgroup exceeds, with confidence `level` for all subgroups at
        once; and ``group``, the subgroup that has this bound.
    significant : DataFrame
        Subgroups with more or fewer events than expected (``question`` "level"), or with events at other times than
        expected ("timing"), after adjustment for all subgroups and both questions: group, patients, question,
        observed, expected, ratio, p (adjusted), events, since, until. For the timing of events, observed and expected
        are events from ``since`` to ``until``, the expected ones as a share of all ``events`` of the subgroup; NaN
        is the end of the follow-up. Empty if there are none.
    rules : tuple of Rule
        The groups of `significant`.
    overall : dict
        All patients together: observed, expected, ratio, p, brier, gain.
    rescaled : DataFrame or None
        As `significant`, after the model's hazards are multiplied by the overall ratio, in each part of the follow-up
        if the timing is wrong for all patients; None if the model is not significantly wrong for all together.
    n_subgroups, n_patients, n_events : int
        Numbers of subgroups that were tested together, of patients who were judged, and of their events.
    alpha, level : float
        As given.
    horizon : float
        Time of the Brier score.
    counted_until : float or None
        Time until which events were counted; None for the whole follow-up.
    timing : dict or None
        Part of the follow-up with too many or too few of all patients' events, as a row of `significant`; None if the
        timing of events is not significantly wrong for all patients together.
    notes : tuple of str
        How patients with entry times or several rows were evaluated.
    subgroups : Subgroups
        The subgroups that were tested.
    n_bootstrap : int
        Number of simulations.
    """

    bounds: pd.DataFrame
    significant: pd.DataFrame
    rules: tuple[Rule, ...]
    overall: dict[str, float]
    rescaled: pd.DataFrame | None
    n_subgroups: int
    n_patients: int
    alpha: float
    level: float
    horizon: float
    n_events: int = 0
    counted_until: float | None = None
    timing: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    subgroups: Subgroups | None = None
    n_bootstrap: int = REPLICATES

    @property
    def definition(self) -> str:
        """What defines the subgroups, in words."""
        return (
            "one or two conditions define"
            if self._paired
            else f"a single column of more than {MOST_PAIRED} defines"
        )

    @property
    def _paired(self) -> bool:
        return self.subgroups is None or self.subgroups.paired

    @property
    def n_columns(self) -> int:
        """Number of columns that may define subgroups."""
        return 0 if self.subgroups is None else len(self.subgroups.table.names)

    def adjusted(self, factor: float, *, rescaled: bool) -> SubgroupBounds:
        """Return the result with p-values multiplied by a factor, to adjust for further tests of the same patients.

        `rescaled` says whether these tests find the model wrong for all patients together.
        """

        def kept(found: pd.DataFrame) -> pd.DataFrame:
            if found.empty:
                return found
            adjusted = found.assign(p=np.minimum(found["p"] * factor, 1.0))
            return adjusted[adjusted["p"] <= 1 - self.level]

        significant = kept(self.significant)
        return replace(
            self,
            significant=significant,
            rules=self.rules[: len(significant)],
            rescaled=kept(self.rescaled) if rescaled and self.rescaled is not None else None,
        )

    @property
    def correction(self) -> str:
        """How predictions for everybody were corrected before subgroups were judged again, in words."""
        if self.timing is not None:
            return "after hazards are multiplied by one number in each part of the follow-up"
        return f"after hazards are multiplied by {self.overall['ratio']:.2f}"

    @property
    def sizes(self) -> str:
        """Return the size of the subgroups that were tested, in words."""
        share = f"at least {100 * self.alpha:g} % of the {self.n_patients:,} patients"
        return f"{share} and {LEAST_EXPECTED:g} expected events"

    @property
    def rounded(self) -> dict[str, float]:
        """The bounds rounded outward, so that they stay bounds: ratios to two decimals, the others to three."""
        return {
            str(name): _outward(bound, -1 if name in (LEAST, GAIN) else 1, 2 if name in _RATIOS else 3)
            for name, bound in self.bounds["bound"].items()
        }

    def summary(self, time_unit: str = "", *, overall: bool = True) -> str:
        """Return the findings and the bounds in sentences; `overall` includes those on all patients together."""
        sentences = []
        everybody = self.overall
        wrong = self.rescaled is not None
        if wrong and overall:
            errors = []
            if everybody["p"] <= 1 - self.level:
                errors = [
                    f"{ratio_text(everybody['ratio'])} times the predicted events ({p_text(everybody['p'])})"
                ]
            if self.timing is not None:
                errors.append(f"{subgroup_events(self.timing, time_unit)}, {p_text(self.timing['p'])})")
            sentences.append(f"The model is wrong for all patients together: {'; '.join(errors)}.")
        found = self.rescaled if self.rescaled is not None else self.significant
        after = f"{first_upper(self.correction)}, " if wrong else ""
        if len(found):
            shown = "; ".join(
                f"{row['group']}: {subgroup_events(row, time_unit)}, p = {row['p']:.3f})"
                for row in plain_rows(found.head(_SHOWN))
            )
            more = f"; and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            verb = "differs" if len(found) == 1 else "differ"
            differ = f"{counted(len(found), 'subgroup')} {verb} significantly from what the model predicts"
            sentences.append(f"{after}{differ}: {shown}{more}.")
        elif self.n_bootstrap < (enough := _fewest_replicates(self.level)):
            few = f"the smallest p-value of {self.n_bootstrap} replicates is 3/{self.n_bootstrap + 1}"
            sentences.append(f"No subgroup can be significant: {few}; at least {enough:,} are needed.")
        else:
            none = "no subgroup differs significantly from what the model predicts."
            sentences.append(f"{after}{none}" if after else f"N{none[1:]}")
        bound = self.rounded
        # A bound of 0 excludes nothing.
        fewest = f", or fewer than {bound[LEAST]:.2f} times," if bound[LEAST] > 0 else ""
        until = "" if self.counted_until is None else f" until {moment(self.counted_until, time_unit)}"
        sentences += [
            f"With {100 * self.level:g} % confidence, of the {self.n_subgroups:,} subgroups of {self.sizes} "
            f"that {self.definition}:",
            f"none has more than {bound[MOST]:.2f} times{fewest} the predicted events{until} (all patients: "
            f"{ratio_text(everybody['ratio'])} times);",
            *self._brier_sentence(time_unit),
            f"none gains less than {written(bound[GAIN])} in log likelihood per patient over no model (all "
            f"patients: {written(everybody[GAIN])}).",
            f"Not covered: subgroups that {'more than two' if self._paired else 'several'} columns, finer cuts or "
            "unmeasured columns define.",
        ]
        if overall and self.n_columns:
            how: dict[str, Any] = {"n_columns": self.n_columns, "subgroup_share": self.alpha}
            sentences.append(
                excluded_errors(self.n_patients, self.n_events, **how, level=self.level, n_tests=None)
            )
        return "\n".join([*sentences, *map(first_upper, self.notes)])

    def _brier_sentence(self, time_unit: str) -> tuple[str, ...]:
        if BRIER not in self.rounded:
            return ()
        at, everybody = moment(self.horizon, time_unit), self.overall[BRIER]
        return (
            f"none has a Brier score above {self.rounded[BRIER]:.3f} at {at} (all patients: {everybody:.3f});",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers, strings, lists and dicts that JSON can hold."""
        names = ("n_subgroups", "n_patients", "n_events", "alpha", "level", "horizon", "counted_until")
        return {
            "bounds": self.bounds.astype({"estimate": float, "bound": float}).to_dict("index"),
            "significant": plain_rows(self.significant),
            "rescaled": None if self.rescaled is None else plain_rows(self.rescaled),
            "timing": None if self.timing is None else plain(self.timing),
            "overall": dict(self.overall),
            **{name: getattr(self, name) for name in names},
            "notes": list(self.notes),
        }

    def to_table(self) -> Table:
        """Return a table of the bounds."""
        columns = (
            Column("measure", "measure"),
            Column("all", "all patients", "value"),
            Column("estimate", "most extreme", "value"),
            Column("bound", "no subgroup is beyond", "value"),
            Column("group", "subgroup with that bound"),
        )
        rows: list[dict[str, Any]] = []
        for name, row in self.bounds.iterrows():
            everybody = self.overall["ratio" if name in _RATIOS else str(name)]
            values = {"all": everybody, "estimate": row["estimate"], "bound": self.rounded[str(name)]}
            # As many decimals as in the sentences.
            shown = {
                key: f"{value:.2f}" if name in _RATIOS else written(value) for key, value in values.items()
            }
            rows.append({"measure": name, **shown, "group": row["group"]})
        caption = (
            f"{self.n_subgroups:,} subgroups of {self.sizes}, "
            f"{100 * self.level:g} % confidence for all at once"
        )
        return Table("subgroup_bounds", caption, columns, tuple(rows), tuple(self.summary().split("\n")))

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw observed / expected events of all patients and of significant subgroups, and the bounds of any."""
        return self.picture.plot(ax)

    @property
    def picture(self) -> GroupPicture:
        """All patients, any subgroup with the bounds as its interval, and the significant ones."""
        bound, overall = self.bounds["bound"], self.overall
        everybody = PictureRow(
            "all patients",
            "all" if self.rescaled is None else "wrong",
            self.n_patients,
            observed=overall["observed"],
            expected=overall["expected"],
            ratio=overall["ratio"],
            everybody=True,
        )
        anyone = PictureRow(
            "any subgroup",
            "right",
            0,
            observed=np.nan,
            expected=np.nan,
            ratio=np.nan,
            low=float(bound[LEAST]),
            high=float(bound[MOST]),
            note=f"{100 * self.level:g} % bounds: {self.rounded[LEAST]:.2f} to {self.rounded[MOST]:.2f}",
        )
        found = [
            PictureRow(
                ", ".join(filter(None, (row["group"], period(row["since"], row["until"])))),
                "found",
                row["patients"],
                observed=row["observed"],
                expected=row["expected"],
                ratio=row["ratio"],
            )
            for row in plain_rows(self.significant.head(_SHOWN))
        ]
        return GroupPicture.of([everybody, anyone, *found])


# Largest number of significant subgroups in a sentence or figure.
_SHOWN = 5


def _outward(value: float, side: int, digits: int) -> float:
    """Round up (side 1) or down (-1), so that a bound stays one."""
    return side * float(np.ceil(side * value * 10**digits - 1e-9) / 10**digits)
