"""The audited model and patients, what the page says of them, and all numbers that the sections of the report show."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from drosurv.any_model import final_step
from drosurv.errors import ArgumentError
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.attributes import (
    EVERYONE,
    Attribute,
    group_indicators,
    parse_attributes,
    rows_by_group,
)
from drosurv.evaluation.data import Horizon
from drosurv.evaluation.evaluate import evaluate_rows
from drosurv.evaluation.from_entry import FromEntry, predict_from_entry, predict_of_cause
from drosurv.findings.adjustment import SEARCH_TESTS
from drosurv.findings.questions import largest_weight
from drosurv.findings.verdict import (
    Bounds,
    FindingRow,
    Judgement,
    data_problem,
    from_frame,
    judge,
    problems_of,
    subgroup_problem,
)
from drosurv.findings.words import event_in_words, event_name
from drosurv.observation import Inference, Rows, sample_of_many
from drosurv.planning import excluded_errors
from drosurv.predictions import Predicted, as_predictions, select_rows
from drosurv.presentation import counted, group_name, moment, plain_rows
from drosurv.repairs import RepairedCox, repair
from drosurv.repairs.certification import certify_rows, enough_replicates
from drosurv.repairs.repair_views import corrected_groups
from drosurv.repairs.rules import Condition
from drosurv.repairs.simultaneous_tests import LEAST, MOST
from drosurv.repairs.subgroup_bounds import SubgroupBounds
from drosurv.report.alpha_path import Stop
from drosurv.tables import TableEncoder
from drosurv.target import (
    CompetingTarget,
    FloatArray,
    Target,
    has_causes,
    parse_competing_target,
    parse_target,
)

# Groups of fewer patients are not shown, nor smaller counts in the table of patients.
FEWEST = 5
# Models other than the audited one have at most so many bootstrap replicates.
_MOST_BOOTSTRAP = 100


@dataclass(frozen=True)
class Page:
    """What a report says besides the results.

    Parameters
    ----------
    title, data_name : str
        Title of the report, and name of the data.
    time_unit : str
        Unit of the times, such as "days"; empty if it is unknown.
    reference_name : str
        Name of the model to compare with.
    warnings : sequence of mappings
        Warnings about the model and the data, each with a ``severity`` and a ``text``. They are shown at the top of the
        report; with one of severity "blocking" the verdict is that the data have a problem.
    sections : sequence of Section
        Further sections.
    also : mapping
        Data for further sections, by key.
    features_train : DataFrame or fitted TableEncoder, optional
        Columns of the training patients, or the encoder that was fitted to them, to describe the training patients. By
        default `X_train`, or else the encoder of a model that has one.
    """

    title: str | None = None
    data_name: str = ""
    time_unit: str = ""
    reference_name: str = "plain Cox"
    warnings: Sequence[Mapping[str, str]] = ()
    sections: Sequence[Any] = ()
    also: Mapping[str, Any] = field(default_factory=dict)
    features_train: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """The audited model and patients, and numbers that are computed when a section needs them.

    `stops` are the models of the slider; one is the audited model. `follow_up` is that of the training patients. The
    `reference` is a fitted model, Predictions or scores (n,), with its features. Rules use the columns `features`.
    `trained_on` are the numbers of training patients and of their events, if known. The method card shows `data`,
    `model`, what is `missing`, and the `limits`. Other fields are as in :func:`~drosurv.report.audit`.
    """

    stops: tuple[Stop, ...]
    y: Any
    follow_up: Any
    sensitive_features: Any
    reference: tuple[Any, Any] | None = None
    features: pd.DataFrame | FloatArray | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    features_train: pd.DataFrame | TableEncoder | None = None
    trained_on: tuple[int, int] | None = None
    horizon: float | None = None
    threshold: float | None = None
    cause: int | None = None
    rows: Rows = field(default_factory=Rows)
    page: Page = field(default_factory=Page)
    n_bootstrap: int = 500
    level: float = 0.95
    search_rules: bool = True
    random_state: int = 0
    on_step: Callable[[str, int], None] | None = None

    @cached_property
    def predicted(self) -> Predicted:
        """Predictions of the audited model."""
        return as_predictions(self.stop.model, self.stop.X, len(self.y), rows=self.rows)

    @cached_property
    def since_entry(self) -> FromEntry | None:
        """Predictions and outcomes from entry on; None without entry times, strata, offsets and causes."""
        if not self.rows.observed and not has_causes(self.y):
            return None
        if self.cause is not None:
            return predict_of_cause(self.predicted, self.y, self.cause)
        return predict_from_entry(self.predicted, self.y)

    @cached_property
    def target(self) -> Target:
        """Events and times, since entry, of the audited patients."""
        return parse_target(self.y if self.since_entry is None else self.since_entry.y)

    @cached_property
    def causes(self) -> CompetingTarget | None:
        """Causes and times, since entry, where the report is of one cause of several; else None."""
        if self.cause is None:
            return None
        found, entry = parse_competing_target(self.y, complete=False), self.rows.entry
        return found if entry is None else CompetingTarget(found.cause, found.time - entry)

    @property
    def time_unit(self) -> str:
        """Unit of times, such as "days"; empty if unknown."""
        return self.page.time_unit

    @property
    def event(self) -> str:
        """The event of the report in words: "the event", or that of a cause."""
        return event_in_words(self.y, self.cause)

    @property
    def event_name(self) -> str:
        """The event of the report as a name, for sentences that say already that it is an event."""
        return event_name(self.y, self.cause)

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
        return parse_attributes(self.sensitive_features, len(self.target), at_least=1)

    @property
    def n_patients(self) -> int:
        """Number of patients, where an id is known, else of rows."""
        return len(self.target) if self.rows.id is None else len(np.unique(self.rows.id))

    @cached_property
    def tiny_groups(self) -> list[tuple[str, str]]:
        """Attribute and label of the groups that are too small to be shown."""
        return [key for key, rows in rows_by_group(self._every_attribute).items() if len(rows) < FEWEST]

    @cached_property
    def attributes(self) -> list[Attribute]:
        """The attributes with the groups that are shown."""
        shown = (attribute.without(self.tiny_groups) for attribute in self._every_attribute)
        return [attribute for attribute in shown if len(attribute.labels) > 1]

    @cached_property
    def _reference(self) -> Predicted | None:
        """The reference's predictions for the audited patients; None without a reference."""
        if self.reference is None:
            return None
        model, X = self.reference
        fitted_with = getattr(final_step(model), "_fitted_with", ())
        return as_predictions(model, X, len(self.y), rows=self.rows.only(fitted_with), name="reference")

    @cached_property
    def results(self) -> tuple[EvaluationResult, ...]:
        """Evaluation of every stop."""
        found, groups = [], {attribute.name: attribute.groups for attribute in self.attributes}
        for stop in self.stops:
            self._report_step(stop.name)
            with warnings.catch_warnings():
                if not stop.audited:
                    # The audited model gives the same warnings, such as of small groups.
                    warnings.simplefilter("ignore")
                n_bootstrap = self.n_bootstrap if stop.audited else self.compared_bootstrap
                further_tests = 0 if isinstance(self._bounds, str) else SEARCH_TESTS
                result = evaluate_rows(
                    stop.model,
                    stop.X,
                    self.y,
                    self.rows,
                    Inference(self.level, n_bootstrap, self.random_state, further_tests=further_tests),
                    Horizon(self.horizon, self.threshold, time_unit=self.time_unit),
                    y_train=self.follow_up,
                    X_train=stop.X_train,
                    sensitive_features=groups or None,
                    reference=self._reference,
                    reference_name=self.page.reference_name,
                    cause=self.cause,
                    columns=self.features if stop.X is None else stop.X,
                )
            found.append(result)
        return tuple(found)

    @property
    def is_compared(self) -> bool:
        """Whether the audited model is compared with another one, and not with itself."""
        return "gain over reference" in set(self.audited.findings["question"])

    @property
    def compared_bootstrap(self) -> int:
        """Number of bootstrap replicates for the models other than the audited one."""
        return min(self.n_bootstrap, _MOST_BOOTSTRAP)

    @cached_property
    def bounds(self) -> SubgroupBounds | str:
        """Bounds for subgroups that columns define, with p-values adjusted for all tests; or why there are none."""
        if isinstance(self._bounds, str):
            return self._bounds
        everybody = {
            row.question: row
            for row in from_frame(self.audited.findings)
            if row.attribute == EVERYONE and row.question in ("level", "timing")
        }
        wrong = any(row.status == "miscalibrated" for row in everybody.values())
        found = self._bounds.adjusted(self.audited.settings.total_weight / SEARCH_TESTS, rescaled=wrong)
        overall, timing = found.overall, found.timing
        if (number := everybody.get("level")) is not None and not np.isnan(number.value):
            overall = {**overall, "low": number.low, "high": number.high, "p": number.p}
        if (part := everybody.get("timing")) is not None and timing is not None:
            timing = {**timing, "p": part.p}
        return replace(found, overall=overall, timing=timing)

    @cached_property
    def _bounds(self) -> SubgroupBounds | str:
        if not self.search_rules:
            return "it was not asked for"
        self._report_step("subgroups")
        audited = self.stop
        if not self.predicted.has_curves:
            return "the model gives no survival curves"
        if self.features is None or np.shape(self.features)[1] == 0:
            return "no columns were given that could define them"
        observed = self.horizon is not None and self.horizon <= self.target.time.max()
        # The largest weight of all tests: all questions about everybody and every group, and the search.
        groups = 1 + sum(len(attribute.labels) for attribute in self.attributes)
        largest = largest_weight() * groups + SEARCH_TESTS
        try:
            return certify_rows(
                audited.model,
                self.features if audited.X is None else audited.X,
                self.y,
                self.rows,
                features=self.features,
                # Events are counted over the whole follow-up, as in the group table.
                brier_time=self.horizon if observed else None,
                level=self.level,
                cause=self.cause,
                random_state=self.random_state,
                n_bootstrap=enough_replicates(self.level, largest / SEARCH_TESTS),
                y_train=self.follow_up,
                groups=group_indicators(self.attributes),
                time_unit=self.time_unit,
            )
        except ArgumentError as error:
            return str(error).rstrip(".")

    @cached_property
    def findings(self) -> tuple[FindingRow, ...]:
        """Everything that was found: data problems, the findings of the evaluation, and subgroups."""
        blocking = [warning["text"] for warning in self.page.warnings if warning["severity"] == "blocking"]
        return (*map(data_problem, blocking), *from_frame(self.audited.findings), *self._found_by_search())

    @cached_property
    def subgroups(self) -> list[dict[str, Any]]:
        """Significant subgroups of the search, except those inside a named group whose number of events is wrong.

        If the predictions are corrected for everybody first, named groups are not among them: their own findings may
        say that the given predictions are right.
        """
        if isinstance(self.bounds, str):
            return []
        corrected, found, rules = False, self.bounds.significant, self.bounds.rules
        if self.bounds.rescaled is not None:
            corrected, found, rules = True, self.bounds.rescaled, self.bounds.rescaled_rules
        levels = [row for row in from_frame(self.audited.findings) if row.question == "level"]
        named = {str(Condition(row.attribute, "is", row.group)): row.status for row in levels}
        wrong = {group for group, status in named.items() if status == "miscalibrated"}
        return [
            row
            for row, rule in zip(plain_rows(found), rules, strict=True)
            if wrong.isdisjoint(map(str, rule.conditions)) and not (corrected and row["group"] in named)
        ]

    def _found_by_search(self) -> Iterator[FindingRow]:
        """Yield the significant subgroup that differs most."""
        if isinstance(self.bounds, str) or not self.subgroups:
            return
        worst, more = self.subgroups[0], len(self.subgroups) - 1
        after = "" if self.bounds.rescaled is None else ", also after that is corrected for everybody"
        others = f"; also significant: {counted(more, 'other subgroup')}" if more else ""
        yield subgroup_problem(worst, self.bounds.n_subgroups, after, others, self.time_unit)

    @cached_property
    def verdict(self) -> Judgement:
        """The verdict on the audited model."""
        bounds = None
        if not isinstance(self.bounds, str):
            bounds = Bounds(self.bounds.rounded[LEAST], self.bounds.rounded[MOST])
        # The page may have a repair of its own, as that of drosurv check.
        corrected = self.page.also.get("corrected")
        if self.repaired is not None:
            corrected = corrected_groups(self.repaired.repairs_)
        return judge(self.findings, bounds=bounds, corrected=corrected, reference=self.page.reference_name)

    @property
    def excluded(self) -> str:
        """What can be excluded for all subgroups that columns define, or why they were not searched."""
        bounds = self.bounds
        if isinstance(bounds, str):
            return f"Subgroups were not searched: {bounds}."
        most, least = bounds.rounded[MOST], bounds.rounded[LEAST]
        return (
            f"With {100 * bounds.level:g} % confidence, no subgroup of {bounds.sizes} "
            f"that {bounds.definition} has more than {most:.2f} times"
            f"{f', or fewer than {least:.2f} times,' if least > 0 else ''} the predicted events."
        )

    @property
    def closing(self) -> str:
        """Errors that the audited patients cannot exclude, and how many patients could, as a sentence."""
        everybody, *groups = plain_rows(self.audited.groups)
        judged = {(row["attribute"], row["group"]): row for row in groups if row["judged"]}
        shown = {group_name(*key): row for key, row in judged.items()} | {"everybody": everybody}
        # Of predictions at few times, only events until the last of them are judged.
        until = self.audited.last_judged
        event = self.target.event if until is None else self.target.event & (self.target.time <= until)
        counted = {
            group_name(*key): int(event[rows].sum()) for key, rows in rows_by_group(self.attributes).items()
        }
        n_events = int(event.sum())
        if until is not None and self.rows.entry is not None:
            # Some patients are not judged: their events do not count.
            counted = {name: round(row["observed"]) for name, row in shown.items()}
            n_events = counted["everybody"]
        n_columns = 0
        if not isinstance(self.bounds, str):
            n_columns, n_events = self.bounds.n_columns, self.bounds.n_events
        return excluded_errors(
            everybody["patients"],
            n_events,
            groups={group_name(*key): counted[group_name(*key)] for key in judged},
            intervals={name: (row["ratio_low"], row["ratio_high"]) for name, row in shown.items()},
            n_columns=n_columns,
            level=self.level,
            n_tests=max(self.audited.settings.total_weight, 1.0),
            until="" if until is None else moment(until, self.time_unit),
            design_effect=self.audited.design_effects.get(EVERYONE, 1.0),
        )

    @cached_property
    def repaired(self) -> RepairedCox | None:
        """The audited model, repaired with the audited patients.

        None if it was not tried: for a model without survival curves, without columns, if nothing is wrong, and if the
        page has a repair of its own.
        """
        wrong = any(row.status == "miscalibrated" for row in problems_of(self.findings))
        tried = (
            wrong and self.search_rules and self.features is not None and "corrected" not in self.page.also
        )
        of = self.sample
        frozen = of.frozen if tried else None
        y = of.target.to_structured() if self.cause is None else of.y
        how: dict[str, Any] = {"features": of.features, "frozen": True, "random_state": self.random_state}
        how["clusters"] = of.rows.cluster_codes
        # They were looked at already.
        how["keep_columns"] = list(getattr(of.features, "columns", ()))
        if of.rows.clusters is not None and of.rows.id is None:
            # Each row is a patient.
            how["id"] = np.arange(len(of.y))
        return None if frozen is None else repair(*frozen, y, cause=self.cause, **how)

    @cached_property
    def sample(self) -> Evidence:
        """The evidence of a random sample of very many patients, for repairs and remedies; else this one."""
        rows = sample_of_many(self.target, self.rows.cluster_codes)
        if rows is None:
            return self
        return replace(
            self,
            stops=tuple(stop.take(rows) for stop in self.stops),
            y=self.y[rows],
            rows=self.rows.take(rows),
            features=select_rows(self.features, rows),
            sensitive_features=select_rows(self.sensitive_features, rows),
            reference=None,
        )

    @property
    def frozen(self) -> tuple[Any, Any] | None:
        """The audited model, or its predictions, and its features, as a repair takes them; None if it cannot."""
        if self.cause is not None:
            known = 0 if self.predicted.competing is None else len(self.predicted.competing.causes)
            # A repair takes neither strata nor late entries nor models of folds, and needs the hazards of the cause.
            complete = known >= parse_competing_target(self.y, complete=False).n_causes
            complete &= self.predicted.trained_on is None
            X = self.features if self.stop.X is None else self.stop.X
            return (self.stop.model, X) if complete and not self.rows.observed else None
        if self.since_entry is None:
            return self.stop.frozen(self.features)
        return Stop(self.stop.name, None, self.since_entry.predictions).frozen(self.features)

    def _report_step(self, step: str) -> None:
        if self.on_step is not None:
            self.on_step(step, len(self.stops) + self.search_rules)
