"""What is audited, and everything that is computed of it: what sections are written from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from drosurv.audit.stops import Stop
from drosurv.evaluation import AgainstPlain, EvaluationResult, beside, evaluate
from drosurv.evaluation.attributes import ALL, EVERYONE, Attribute, parse_attributes, rows_by_group
from drosurv.evaluation.predictions import gains_over_null, predict_curves, predict_risk
from drosurv.insight import WorstOff, worst_off
from drosurv.metrics import concordance_index
from drosurv.repairs import RepairedCox, repair
from drosurv.target import FloatArray, Target, parse_target

# Of fewer patients than this a page that leaves the house shows nothing: it would tell what became of one of them.
FEWEST = 5
# Fewer patients cannot hold two groups that say anything.
LEAST_FOR_RULES = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What is audited, and what is computed of it once it is asked for; options as in :func:`~drosurv.audit.audit`.

    One of the `stops` is the audited model. `follow_up` is that of the training patients. The `reference` is a fitted
    model, Predictions or scores (n,), and the features it takes. Rules speak about `features`. `data` and `model` are
    for the method card, which also tells what is `missing` and the `limits`. Calibration is looked at the `horizons`,
    by default at quartiles of the event times. What happened after `until` is not looked at.
    """

    stops: tuple[Stop, ...]
    y: Any
    follow_up: Any
    sensitive_features: Any
    reference: tuple[Any, Any] | None = None
    reference_name: str = "plain Cox"
    features: pd.DataFrame | FloatArray | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    horizons: FloatArray | None = None
    until: float | None = None
    title: str | None = None
    data_name: str = ""
    time_title: str = "time"
    n_bootstrap: int = 500
    n_bootstrap_path: int = 100
    level: float = 0.95
    search_rules: bool = True
    random_state: int = 0
    on_step: Callable[[str, int], None] | None = None
    also: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Mapping[str, str], ...] = ()

    @cached_property
    def target(self) -> Target:
        """What happened to the audited patients."""
        return parse_target(self.y)

    @property
    def time_unit(self) -> str:
        """What times count, such as "days"; empty where nobody said."""
        return "" if self.time_title == "time" else self.time_title

    @property
    def stop(self) -> Stop:
        """The audited model."""
        return next(stop for stop in self.stops if stop.audited)

    @property
    def audited(self) -> EvaluationResult:
        """Evaluation of the audited model."""
        return self.results[self.stops.index(self.stop)]

    @cached_property
    def _every_attribute(self) -> list[Attribute]:
        return parse_attributes(self.sensitive_features, len(self.target))

    @cached_property
    def tiny_groups(self) -> list[tuple[str, str]]:
        """Attribute and label of the groups that are too small to be shown."""
        return [key for key, rows in rows_by_group(self._every_attribute).items() if len(rows) < FEWEST]

    @cached_property
    def attributes(self) -> list[Attribute]:
        """The groups that are shown."""
        shown = (attribute.without(self.tiny_groups) for attribute in self._every_attribute)
        return [attribute for attribute in shown if len(attribute.labels) > 1]

    @property
    def _judged(self) -> dict[str, Any]:
        """How every model is judged."""
        return {"y_train": self.follow_up, "level": self.level, "random_state": self.random_state}

    @property
    def _groups(self) -> Any:
        return {attribute.name: attribute.groups for attribute in self.attributes} or None

    @cached_property
    def _reference_risk(self) -> FloatArray | None:
        return self.reference and predict_risk(*self.reference, len(self.target), name="reference")

    @cached_property
    def results(self) -> tuple[EvaluationResult, ...]:
        """Evaluation of every stop."""
        found = []
        for stop in self.stops:
            self._tell(stop.name)
            with warnings.catch_warnings():
                if not stop.audited:
                    # What is said of small groups is said once, of the audited model.
                    warnings.simplefilter("ignore")
                found.append(
                    evaluate(
                        stop.model,
                        stop.X,
                        self.y,
                        X_train=stop.X_train,
                        sensitive_features=self._groups,
                        horizons=self.horizons,
                        reference=self._reference_risk,
                        n_bootstrap=self.n_bootstrap if stop.audited else self.compared_bootstrap,
                        **self._judged,
                    )
                )
        return tuple(found)

    @property
    def compared_bootstrap(self) -> int:
        """Replicates for the models that the audited one is compared with."""
        return min(self.n_bootstrap, self.n_bootstrap_path)

    @cached_property
    def against(self) -> AgainstPlain | None:
        """The audited model beside the reference, everybody and each group; None without intervals or a reference."""
        if self.reference is None or self.n_bootstrap < 2:
            return None
        with warnings.catch_warnings(action="ignore"):
            return beside(
                (self.stop.model, self.stop.X),
                self.reference,
                self.y,
                self._groups,
                n_bootstrap=self.n_bootstrap,
                name=self.reference_name,
                recalibrated=bool(self.model.get("recalibrate")),
                **self._judged,
            )

    @cached_property
    def ranked_by_reference(self) -> dict[tuple[str, str], float]:
        """The reference's c-index of everybody and of every group, by attribute and group; empty without one."""
        if self._reference_risk is None:
            return {}
        risk, everybody = self._reference_risk, {(EVERYONE, ALL): np.arange(len(self.target))}
        patients = everybody | rows_by_group(self.attributes)
        with warnings.catch_warnings(action="ignore"):
            return {who: concordance_index(self.y[rows], risk[rows]) for who, rows in patients.items()}

    @cached_property
    def worst_off(self) -> WorstOff | str:
        """Rules for those served worst, or why none were searched."""
        n, audited = len(self.target), self.stop
        if not self.search_rules:
            return "it was not asked for"
        self._tell("rules and repairs for the worst off")
        if n < LEAST_FOR_RULES:
            return f"{n} patients are too few, it takes {LEAST_FOR_RULES}"
        curves = predict_curves(audited.model, audited.X, n)
        if curves is None:
            return "the model gives no survival curves"
        if self.features is None or np.shape(self.features)[1] == 0:
            return "no columns were given that rules could speak about"
        return worst_off(
            None,
            self.features,
            self.y,
            harm=-gains_over_null(audited.model, curves, self.follow_up, self.target),
            min_group=max(20, min(50, n // 20)),
            confidence=self.level,
            random_state=self.random_state,
        )

    @cached_property
    def repaired(self) -> RepairedCox | None:
        """The audited model, repaired with the audited patients; None for one without survival curves."""
        frozen = self.stop.frozen(self.features)
        how: dict[str, Any] = {"features": self.features, "frozen": True, "random_state": self.random_state}
        return None if frozen is None else repair(*frozen, self.y, **how)

    def _tell(self, step: str) -> None:
        if self.on_step is not None:
            self.on_step(step, len(self.stops) + self.search_rules)
