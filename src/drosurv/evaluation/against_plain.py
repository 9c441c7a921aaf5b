"""Whether a model is worth having: who is better served than by plain Cox trained on the same patients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from drosurv.evaluation.attributes import ALL, EVERYONE, whose
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Panel, Place, replicates_of
from drosurv.evaluation.evaluate import prepare
from drosurv.evaluation.features import plain_cox
from drosurv.evaluation.predictions import final_step, prepared
from drosurv.metrics.inference import Draws, Interval, differences_together
from drosurv.metrics.inference.resampling import seed_sequence
from drosurv.presentation import Statement, Table, sentences, written

# What a model can be better in: ordering patients, and saying how probable what happened was.
COMPARED = ("concordance_index", "integrated_brier_score", "likelihood_gain")
# Fewer events say nothing about a difference.
LEAST_EVENTS = 10
# A calibration slope outside of these is far from 1: risks must be stretched, or shrunk, by half to be right.
SLOPES = (1 / 1.5, 1.5)
_ROUNDING = 1e-6
_COLUMNS = ["attribute", "group", "metric", "model", "plain", "difference", "low", "high", "verdict"]


@dataclass(frozen=True, eq=False, repr=False)
class AgainstPlain:
    """A model beside plain Cox trained on the same patients.

    Parameters
    ----------
    table : DataFrame
        One row per group and metric: ``attribute``, ``group``, ``metric``, the ``model``'s value, the ``plain``
        one's, their ``difference`` turned so that above 0 the model is better, ``low`` and ``high`` (all together
        hold at the level), and the ``verdict``: "better", "worse" or "".
    slope, slope_low, slope_high : float
        Calibration slope of the model, with its interval.
    plain_slope : float
        That of plain Cox.
    reference : str
        What plain Cox, or the model in its place, is called.
    recalibrated : bool
        Whether the model was recalibrated in training.
    """

    table: pd.DataFrame
    slope: float
    slope_low: float
    slope_high: float
    plain_slope: float
    reference: str = "plain Cox"
    recalibrated: bool = False

    def served(self, attribute: str, group: str) -> Literal["better", "not shown", "worse", "too few"]:
        """How the model serves a group beside plain Cox; worse if it is worse in anything."""
        rows = self.table[(self.table["attribute"] == attribute) & (self.table["group"] == group)]
        if rows.empty:
            return "too few"
        found = set(rows["verdict"])
        return "worse" if "worse" in found else "better" if "better" in found else "not shown"

    def _groups(self, verdict: str) -> tuple[str, ...]:
        rows = self.table[self.table["verdict"] == verdict]
        return tuple(dict.fromkeys(map(whose, rows["attribute"], rows["group"])))

    @property
    def better(self) -> tuple[str, ...]:
        """Whom the model serves better than plain Cox, beyond chance."""
        return self._groups("better")

    @property
    def worse(self) -> tuple[str, ...]:
        """Whom it serves worse, beyond chance."""
        return self._groups("worse")

    @property
    def dominated(self) -> bool:
        """Whether plain Cox is better for some and the model better for nobody."""
        return bool(self.worse) and not self.better

    @property
    def slope_is_far(self) -> bool:
        """Whether the calibration slope is far from 1, and surely not 1."""
        return is_far_from_1(self.slope, self.slope_low, self.slope_high)

    @property
    def same(self) -> bool:
        """Whether both models predict the same, but for the last digits of their solvers."""
        return not self.table.empty and bool(self.table["difference"].abs().max() < _ROUNDING)

    @property
    def only_alike(self) -> bool:
        """Whether the models differ, but not for anybody beyond chance."""
        return not (self.table.empty or self.same or self.better or self.worse)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What the comparison says, in plain words; a concern where the model should not be used as it is."""
        if self.same:
            return (Statement("against_plain", f"The model predicts what {self.reference} does."),)
        surest = {verdict: self._surest(verdict) for verdict in ("better", "worse")}
        told = sentences.comparison_statement(
            self.better, self.worse, surest, self.reference, known=not self.table.empty
        )
        if not self.slope_is_far:
            return (told,)
        interval = self.slope_low, self.slope_high
        return told, sentences.slope_statement(
            self.slope, interval, self.plain_slope, self.reference, recalibrated=self.recalibrated
        )

    def __str__(self) -> str:
        return "\n".join(statement.text for statement in self.statements)

    def to_table(self) -> Table:
        """Both models' numbers for everybody and every group, below what they say."""
        return Table.of_frame(self.table, str(self), "against_plain")

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    def _surest(self, verdict: str) -> str:
        """The number that shows most surely that somebody is better, or worse, served."""
        rows = self.table[self.table["verdict"] == verdict]
        if rows.empty:
            return ""
        # Metrics have scales of their own: what is surest is named.
        row = rows.iloc[int((rows["difference"].abs() / (rows["high"] - rows["low"])).argmax())]
        label = CATALOGUE[str(row["metric"])].label
        return f"{label} {written(float(row['model']))}; {self.reference}: {written(float(row['plain']))}"


def is_far_from_1(slope: float, low: float, high: float) -> bool:
    """Whether a calibration slope with this interval is far from 1, and surely not 1."""
    return not SLOPES[0] <= slope <= SLOPES[1] and (low > 1 or high < 1)


def against_plain(
    model: Any,
    X_train: Any,
    y_train: Any,
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    n_bootstrap: int = 200,
    level: float = 0.95,
    min_group: int = 50,
    random_state: Any = 0,
    threads: int | None = None,
) -> AgainstPlain:
    """Compare a fitted model with plain Cox trained on the same rows, on patients neither has seen.

    A group is served better, or worse, if the c-index, the Brier score or the likelihood of one of the models is
    better beyond chance, allowing for all groups and metrics, and by at least 0.0005. The same bootstrap replicates
    serve both models.

    Parameters
    ----------
    model : fitted model or Pipeline
        What to judge, or a finished search for it. Steps before the last one prepare the features of both models.
    X_train, y_train : (m, d) array or DataFrame, structured array
        What the model was trained on.
    X, y : (n, d) array or DataFrame, structured array
        Patients to compare on.
    groups : DataFrame, Series, mapping, (n,) or (n, J) labels, optional
        Their groups; without any, everybody is compared.
    n_bootstrap : int
        Replicates behind the standard errors.
    level : float
        At which all intervals hold together.
    min_group : int
        Groups with fewer patients, or fewer than 10 events, are not judged.
    random_state, threads
        As in :func:`~drosurv.evaluation.evaluate`.

    Returns
    -------
    AgainstPlain

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> from drosurv.evaluation import against_plain
    >>> train, test = make_hidden_minority(600, random_state=0), make_hidden_minority(600, random_state=1)
    >>> timid = drosurv.CoxPH(l2=3.0).fit(train.X, train.y)
    >>> found = against_plain(timid, train.X, train.y, test.X, test.y)
    >>> found.dominated, found.slope_is_far
    (True, True)
    """
    plain = plain_cox(model).fit(prepared(model, X_train), y_train)
    return beside(
        (model, X),
        (plain, prepared(model, X)),
        y,
        groups,
        y_train=y_train,
        n_bootstrap=n_bootstrap,
        level=level,
        min_group=min_group,
        random_state=random_state,
        threads=threads,
        recalibrated=is_recalibrated(model),
    )


def is_recalibrated(model: Any) -> bool:
    """Whether a model's scores were given their spread by patients it was not trained on."""
    return bool(getattr(final_step(model), "recalibrate", False))


def beside(
    model: tuple[Any, Any],
    plain: tuple[Any, Any],
    y: Any,
    groups: Any = None,
    *,
    y_train: Any,
    n_bootstrap: int = 200,
    level: float = 0.95,
    min_group: int = 50,
    random_state: Any = 0,
    threads: int | None = None,
    name: str = "plain Cox",
    recalibrated: bool = False,
) -> AgainstPlain:
    """Compare two models that are trained already; otherwise as :func:`against_plain`.

    Parameters
    ----------
    model, plain : pair of fitted model, Predictions or (n,) array, and its features (None for predictions)
        What to judge, and what to hold it against.
    y_train : structured array or FollowUp
        Training target, behind censoring weights and the null model.
    name : str
        What the second model is called.
    recalibrated : bool
        Whether the first was recalibrated in training.
    """
    panels = [
        prepare(*one, y, y_train=y_train, sensitive_features=groups, wanted=(*COMPARED, "calibration_slope"))
        for one in (model, plain)
    ]
    # One seed draws the same patients for both, whatever it is made from.
    replicates, streams = replicates_of("n_bootstrap", n_bootstrap), seed_sequence(random_state)
    own, other = (panel.sheet(replicates, random_state=streams, threads=threads).numbers for panel in panels)
    places = _compared(panels[0], own, other, min_group)
    numbers = [(own[place], other[place]) for place in places]
    differences = differences_together(numbers, level)
    rows = [_row(place, *pair, one) for place, pair, one in zip(places, numbers, differences, strict=True)]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    # Curves without scores have no slope.
    slope, unknown = Place(EVERYONE, ALL, "calibration_slope"), Draws(float("nan"), np.empty(0))
    found, plain_slope = own.get(slope, unknown).interval(level), other.get(slope, unknown).estimate
    return AgainstPlain(table, found.estimate, found.low, found.high, plain_slope, name, recalibrated)


def _row(place: Place, own: Draws, other: Draws, difference: Interval) -> dict[str, Any]:
    # Turned so that above 0 the model is better.
    sign = 1.0 if CATALOGUE[place.metric].better == "higher" else -1.0
    low, high = sorted([sign * difference.low, sign * difference.high])
    alike = abs(difference.estimate) < sentences.LEAST_DIFFERENCE
    return {
        **place._asdict(),
        "model": own.estimate,
        "plain": other.estimate,
        "difference": sign * difference.estimate,
        "low": low,
        "high": high,
        "verdict": "" if alike else "better" if low > 0 else "worse" if high < 0 else "",
    }


def _compared(
    panel: Panel, model: Mapping[Place, Draws], plain: Mapping[Place, Draws], min_group: int
) -> list[Place]:
    """What is compared: everybody, and groups that are large enough and have a value."""
    large = [key for key, count in panel.counts.items() if not count.is_small(min_group, LEAST_EVENTS)]
    places = [Place(*who, metric) for who in [(EVERYONE, ALL), *large] for metric in COMPARED]
    return [
        place
        for place in places
        if all(place in known and np.isfinite(known[place].estimate) for known in (model, plain))
    ]
