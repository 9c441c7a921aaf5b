"""The audited model and patients, what the page says of them, and all numbers that the sections of the report show.

A section is a :class:`Section`, and what it shows of the evidence a :class:`Part`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.data import curves_since_entry
from drosurv.evaluation.evaluate import evaluate_rows
from drosurv.evaluation.evaluator import Attribute, parse_attributes, rows_by_group
from drosurv.judging.adjustment import RELEVANCE, SEARCH_SHARE, is_beyond
from drosurv.judging.certification import certify_rows, enough_replicates
from drosurv.judging.excluded_errors import excluded_errors
from drosurv.judging.from_predictions import outcomes
from drosurv.judging.judged import Horizon
from drosurv.judging.rules import Rule, readable_table
from drosurv.judging.subgroup_bounds import SubgroupBounds
from drosurv.judging.verdict import (
    FindingRow,
    Judgement,
    data_problem,
    judge,
    refit_advice,
    subgroup_problem,
)
from drosurv.judging.words import event_in_words, event_name
from drosurv.patients.groups import EVERYONE
from drosurv.patients.observation import Inference, Rows, sample_of_many, select_rows
from drosurv.patients.target import (
    CompetingTarget,
    FloatArray,
    IntArray,
    Target,
    has_causes,
    parse_competing_target,
    with_fields,
)
from drosurv.predictions import Predicted, Predictions, as_predictions
from drosurv.predictions.any_model import final_step, prepared
from drosurv.presentation import Column, Statement, Table, counted, group_name, moment, plain_rows
from drosurv.repairs import RepairedCox, repair
from drosurv.repairs.repair_views import corrected_groups
from drosurv.report.cross_fit import curve_times
from drosurv.tables import TableEncoder

# Groups of fewer patients are not shown, nor smaller counts in the table of patients.
FEWEST = 5
# Columns of several tables: names of a group, and its counts.
WHO = (Column("group", "Group"), Column("attribute", "Attribute"))
PATIENTS, EVENTS = Column("patients", "Patients", "count"), Column("observed", "Events", "count")
EXPECTED = Column("expected", "Events expected", "time")


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
        Name of the model to compare with; by default its class, or plain Cox.
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
    reference_name: str = ""
    warnings: Sequence[Mapping[str, str]] = ()
    sections: Sequence[Any] = ()
    also: Mapping[str, Any] = field(default_factory=dict)
    features_train: Any = None


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A fitted model, or Predictions, with its features of the audited and of the training patients.

    If the model is the last step of a Pipeline, `whole` is the Pipeline with its features.
    """

    name: str
    model: Any
    X: Any = None
    X_train: Any = None
    whole: tuple[Any, Any] | None = None

    @staticmethod
    def of(model: Any, X: Any, X_train: Any) -> AuditedModel:
        """Return the last step of a model with the features that it takes."""
        estimator = final_step(model)
        train = None if X_train is None else prepared(model, X_train)
        whole = None if estimator is model else (model, X)
        return AuditedModel(type(estimator).__name__, estimator, prepared(model, X), train, whole)

    def frozen(self, features: Any) -> tuple[Any, Any] | None:
        """Return the model (or a pair of times and survival) and its features, as a repair takes them.

        A Pipeline is repaired as a whole, because readers know its columns. Predictions without columns get `features`,
        those that rules may use. None without curves.
        """
        X = features if self.X is None else self.X
        if isinstance(self.model, Predictions):
            times, survival = self.model.times, self.model.survival
            return None if survival is None or times is None else ((times, survival), X)
        if not hasattr(self.model, "predict_survival_function"):
            return None
        return self.whole or (self.model, X)

    def take(self, rows: IntArray) -> AuditedModel:
        """Return the model with some of the audited patients."""
        whole = None if self.whole is None else (self.whole[0], select_rows(self.whole[1], rows))
        model, X = select_rows(self.model, rows), select_rows(self.X, rows)
        return replace(self, model=model, X=X, whole=whole)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """The audited model and patients, and numbers that are computed when a section needs them.

    `follow_up` is that of the training patients. The `reference` is a fitted model, Predictions or scores (n,), with
    its features. Rules use the columns `features`; `columns` are those that the model predicts from, if known.
    `trained_on` are the numbers of training patients and of their events, if known. The method card shows `data`,
    `model`, what is `missing`, and the `limits`. Other fields are as in :func:`~drosurv.report.audit`.
    """

    audited_model: AuditedModel
    y: Any
    follow_up: Any
    sensitive_features: Any
    reference: tuple[Any, Any] | None = None
    features: pd.DataFrame | FloatArray | None = None
    columns: Sequence[str] = ()
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
    level: float = 0.95
    relevance: float = RELEVANCE
    search_rules: bool = True
    random_state: int = 0
    on_step: Callable[[str, int], None] | None = None

    @cached_property
    def predicted(self) -> Predicted:
        """Predictions of the audited model."""
        return as_predictions(self.audited_model.model, self.audited_model.X, len(self.y), rows=self.rows)

    @cached_property
    def _outcome(self) -> Target:
        return outcomes(self.y, self.rows, self.cause)

    @property
    def target(self) -> Target:
        """Events and times, since entry, of the audited patients."""
        return self._outcome.since_entry

    @cached_property
    def causes(self) -> CompetingTarget | None:
        """Causes and times, since entry, where the report is of one cause of several; else None."""
        if self.cause is None:
            return None
        return replace(parse_competing_target(self.y, complete=False), entry=self.rows.entry).since_entry

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

    @cached_property
    def _every_attribute(self) -> list[Attribute]:
        return parse_attributes(self.sensitive_features, len(self.target), at_least=1)

    @property
    def n_patients(self) -> int:
        """Number of patients, where an id is known, else of rows."""
        return len(self.target) if self.rows.patient is None else len(np.unique(self.rows.patient))

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
    def audited(self) -> EvaluationResult:
        """Evaluation of the audited model."""
        groups = {attribute.name: attribute.groups for attribute in self.attributes}
        of = self.audited_model
        self._report_step(of.name)
        return evaluate_rows(
            of.model,
            of.X,
            self.y,
            self.rows,
            Inference(self.level, not isinstance(self._bounds, str), self.relevance),
            Horizon(self.horizon, self.threshold, time_unit=self.time_unit),
            y_train=self.follow_up,
            X_train=of.X_train,
            sensitive_features=groups or None,
            reference=self._reference,
            reference_name=self.page.reference_name,
            cause=self.cause,
        )

    @property
    def is_compared(self) -> bool:
        """Whether the audited model is compared with another one, and not with itself."""
        return any(row.question == "gain over reference" for row in self.audited.found)

    @cached_property
    def bounds(self) -> SubgroupBounds | str:
        """Bounds for subgroups that columns define, with p-values adjusted for all tests; or why there are none."""
        if isinstance(self._bounds, str):
            return self._bounds
        return self._bounds.beside(self.audited.found)

    @cached_property
    def _bounds(self) -> SubgroupBounds | str:
        if not self.search_rules:
            return "it was not asked for"
        self._report_step("subgroups")
        audited = self.audited_model
        if not self.predicted.has_curves:
            return "the model gives no survival curves"
        if self.features is None or np.shape(self.features)[1] == 0:
            return "no columns were given that could define them"
        observed = self.horizon is not None and self.horizon <= self.target.time.max()
        try:
            return certify_rows(
                audited.model,
                self.features if audited.X is None else audited.X,
                self.y,
                self.rows,
                Horizon(time_unit=self.time_unit),
                features=self.features,
                # Events are counted over the whole follow-up, as in the group table.
                brier_time=self.horizon if observed else None,
                level=self.level,
                cause=self.cause,
                random_state=self.random_state,
                n_bootstrap=enough_replicates(self.level, 1 / SEARCH_SHARE),
                y_train=self.follow_up,
                relevance=self.relevance,
            )
        except ArgumentError as error:
            return str(error).rstrip(".")

    @cached_property
    def findings(self) -> tuple[FindingRow, ...]:
        """Everything that was found: data problems, the findings of the evaluation, and subgroups."""
        blocking = [warning["text"] for warning in self.page.warnings if warning["severity"] == "blocking"]
        return (*map(data_problem, blocking), *self.audited.found, *self._found_by_search())

    @property
    def subgroups(self) -> list[dict[str, Any]]:
        """Significant subgroups of the search whose difference is not small; see :meth:`SubgroupBounds.to_report`."""
        return [row for row, _ in self._subgroups]

    @cached_property
    def _subgroups(self) -> list[tuple[dict[str, Any], Rule]]:
        """The subgroups with the rules that define them."""
        found = [] if isinstance(self.bounds, str) else self.bounds.to_report(self.audited.found)
        return [one for one in found if is_beyond(one[0]["ratio"], self.relevance)]

    @cached_property
    def risks_of_subgroups(self) -> dict[str, dict[str, Any]]:
        """Rows of the subgroups as in the table of times, by the horizon."""
        if not self._subgroups:
            return {}
        names = getattr(self.audited_model.model, "feature_names_in_", None)
        table = readable_table(self.features, len(self.target), names, self.features)
        rows = {row["group"]: np.flatnonzero(rule.holds(table)) for row, rule in self._subgroups}
        times = self.audited.by_horizon(self.audited.risks(rows, alone=True))
        return {name: row for (_, name), row in times.items()}

    def _found_by_search(self) -> Iterator[FindingRow]:
        """Yield the subgroup that explains most."""
        found = self._subgroups
        if isinstance(self.bounds, str) or not found:
            return
        (worst, _), more = found[0], len(found) - 1
        after = "" if self.bounds.rescaled is None else ", also after that is corrected for everybody"
        others = f"; also significant: {counted(more, 'other subgroup')}" if more else ""
        yield subgroup_problem(worst, self.bounds.n_subgroups, after, others, self.time_unit)

    @property
    def refit(self) -> str:
        """What to do about the groups that are wrong when the model is fitted again."""
        wrong = [row for row in self.audited.verdict.problems if row.status == "miscalibrated"]
        columns = [row.attribute for row in wrong if row.attribute != EVERYONE]
        if self._subgroups:
            columns += [condition.column for condition in self._subgroups[0][1].conditions]
        return refit_advice({name: name in self.columns if self.columns else None for name in columns})

    @cached_property
    def verdict(self) -> Judgement:
        """The verdict on the audited model."""
        # The page may have a repair of its own, as that of drosurv check.
        corrected = self.page.also.get("corrected")
        if self.repaired is not None:
            corrected = corrected_groups(self.repaired.repairs_)
        return judge(
            self.findings,
            searched=not isinstance(self.bounds, str),
            corrected=corrected,
            refit=self.refit,
            reference=self.page.reference_name,
        )

    @property
    def excluded(self) -> str:
        """What can be excluded for all subgroups that columns define, or why they were not searched."""
        bounds = self.bounds
        if isinstance(bounds, str):
            return f"Subgroups were not searched: {bounds}."
        if not bounds.excluded:
            return "No wrong number of events can be excluded for the subgroups that were searched."
        return (
            f"With {100 * bounds.level:g} % confidence, no subgroup of {bounds.sizes} "
            f"that {bounds.definition} has {bounds.excluded} the predicted events."
        )

    @property
    def closing(self) -> str:
        """Errors that the audited patients cannot exclude, and how many patients could, as a sentence."""
        everybody, *groups = plain_rows(self.audited.groups)
        judged = {(row["attribute"], row["group"]): row for row in groups if row["judged"]}
        names = {key: group_name(*key) for key in judged}
        # Of predictions at few times, only events until the last of them are judged.
        until, members = self.audited.last_judged, rows_by_group(self.attributes)
        event = self.target.event if until is None else self.target.event & (self.target.time <= until)
        counted = {names[key]: int(event[members[key]].sum()) for key in judged}
        n_events, n_columns = int(event.sum()), 0
        if until is not None and self.rows.entry is not None:
            # Some patients are not judged: their events do not count.
            counted = {names[key]: round(row["observed"]) for key, row in judged.items()}
            n_events = round(everybody["observed"])
        if not isinstance(self.bounds, str):
            n_columns, n_events = self.bounds.n_columns, self.bounds.n_events
        shown = {names[key]: row for key, row in judged.items()} | {"everybody": everybody}
        return excluded_errors(
            everybody["patients"],
            n_events,
            groups=counted,
            intervals={name: (row["ratio_low"], row["ratio_high"]) for name, row in shown.items()},
            n_columns=n_columns,
            level=self.level,
            n_tests=self.audited.settings.as_many_tests,
            until="" if until is None else moment(until, self.time_unit),
            design_effect=self.audited.design_effects.get(EVERYONE, 1.0),
        )

    @cached_property
    def repaired(self) -> RepairedCox | None:
        """The audited model, repaired with these patients; None if nothing is wrong, or it cannot be or is repaired."""
        wrong = any(row.status == "miscalibrated" for row in self.findings)
        if not (wrong and self.search_rules) or self.features is None or "corrected" in self.page.also:
            return None
        of = self.sample
        if of.frozen is None:
            return None
        y = of.target.to_structured() if self.cause is None else of.y
        how: dict[str, Any] = {"features": of.features, "frozen": True, "random_state": self.random_state}
        # They were looked at already.
        how["keep_columns"] = list(getattr(of.features, "columns", ()))
        # Each row is a patient, unless rows of one patient are a cluster.
        alone = of.rows.clusters is not None and of.rows.patient is None
        y = with_fields(y, clusters=of.rows.cluster_codes, id=np.arange(len(of.y)) if alone else None)
        return repair(*of.frozen, y, cause=self.cause, **how)

    @cached_property
    def sample(self) -> Evidence:
        """The evidence of a random sample of very many patients, for repairs and remedies; else this one."""
        rows = sample_of_many(self.target, self.rows.cluster_codes)
        if rows is None:
            return self
        return replace(
            self,
            audited_model=self.audited_model.take(rows),
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
            can = complete and self.predicted.trained_on is None and not self.rows.observed
            X = self.features if self.audited_model.X is None else self.audited_model.X
            return (self.audited_model.model, X) if can else None
        if not self.rows.observed and not has_causes(self.y):
            return self.audited_model.frozen(self.features)
        curves = curves_since_entry(self.predicted, self._outcome)
        if curves is None:
            return None
        times = curve_times(self.target.time) if curves.few_times is None else curves.few_times
        return (times, curves.survival(times)), self.features

    def _report_step(self, step: str) -> None:
        if self.on_step is not None:
            self.on_step(step, 1 + self.search_rules)


def judged_counts(result: EvaluationResult, unit: str) -> tuple[Column, Column]:
    """Return the columns of observed and expected events: of the whole follow-up, or weighted, until a time."""
    if result.last_judged is None:
        return EVENTS, replace(EXPECTED, label="Events expected during follow-up")
    until = moment(result.last_judged, unit)
    events = replace(EVENTS, label=f"Events by {until}, weighted")
    return events, replace(EXPECTED, label=f"Expected by {until}")


@dataclass(frozen=True)
class Part:
    """What a section shows, as data from which every view is made; `facts` are other values that JSON can hold."""

    statements: tuple[Statement, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def table(self, key: str) -> Table | None:
        """Return a table by its key; None if there is none."""
        return next((table for table in self.tables if table.key == key), None)


@dataclass(frozen=True)
class Section:
    """A section of the report. Sections are sorted by `place`; `key` is the anchor in the page and the name in JSON.

    `collect` returns what the section shows of the evidence, None for nothing. `draw` returns what the template gets as
    ``drawn``, such as charts. The introduction, shown beside the heading, and the template are Jinja templates with the
    variables ``part``, ``drawn``, ``report`` and ``section``, and the macros ``m``. The default template shows every
    statement and table.
    """

    key: str
    heading: str
    place: int
    collect: Callable[[Evidence], Part | None] = lambda evidence: None
    intro: str = ""
    template: str = "{{ m.findings(part) }}"
    draw: Callable[[Part], Any] = lambda part: None
