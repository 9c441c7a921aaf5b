"""A story in two parts, simulated patients with a hidden group and then real ones, and the report of the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import pandas as pd

from drosurv.audit import AuditReport, audit
from drosurv.datasets import Dataset, load_flc, make_hidden_minority, split
from drosurv.errors import ArgumentError
from drosurv.estimators import CoxPH, DROCox, SubgroupRobustCox
from drosurv.evaluation import evaluate
from drosurv.repairs import RepairedCox
from drosurv.tables import TableEncoder

PLAIN, REPAIRED = "plain Cox", "repaired Cox"
_METRICS = {"concordance_index": "c_index", "brier_skill": "skill", "calibration_slope": "slope"}


@dataclass(frozen=True, eq=False)
class Chapter:
    """Models trained on the same patients and compared on the same others.

    The table has a row per model, plain Cox first: ``c_index``, Brier ``skill`` (the share of the error without a model
    that it removes) and calibration ``slope`` of everybody, the same of the ``group`` with that prefix, and the
    ``seconds`` of training. The group in question is the hidden one, or the one that plain Cox serves worst. Patients
    are counted whom the models are trained on, compared on, and those of the latter in the group. The rules are of
    groups that the repaired model found and corrected itself for.
    """

    table: pd.DataFrame
    group: str
    data: str
    n_train: int
    n_test: int
    n_group: int
    rules: tuple[str, ...]

    def number(self, model: str, name: str) -> float:
        """One number of the table."""
        return float(self.table.set_index("model")[name][model])


@dataclass(frozen=True, eq=False)
class Story:
    """Both parts, and what follows from them."""

    hidden: Chapter
    real: Chapter

    @property
    def advice(self) -> str:
        """What to do with one's own patients, in one sentence."""
        return (
            "On your own data, start with plain Cox and audit it on patients kept away (`drosurv fit --hold-out`, then "
            "`drosurv audit`), repair it where such patients confirm a group that it fails (`drosurv repair`), and "
            "take a robust model, recalibrated, only where they show what it gains and what it costs everybody else."
        )


def contenders(alpha: float, random_state: int = 0) -> dict[str, Any]:
    """The models of the demonstration, plain Cox first, by the name that tables show."""
    return {
        PLAIN: CoxPH(),
        "DRO-COX": DROCox(alpha=alpha),
        "subgroup robust Cox": SubgroupRobustCox(alpha=alpha, random_state=random_state),
        REPAIRED: RepairedCox(random_state=random_state),
    }


def tell(
    *,
    alpha: float = 0.2,
    attribute: str = "age",
    random_state: int = 0,
    n_hidden: int = 6000,
    real: Dataset | None = None,
    on_model: Callable[[str], None] | None = None,
) -> Story:
    """Train and compare the models on both datasets.

    Robust models protect the share alpha of patients. Of the `n_hidden` simulated patients two thirds are to train on.
    The real ones are FLC's if not given, in groups of a sensitive attribute. `on_model` is told each model's name
    before it is trained.

    >>> other = make_hidden_minority(700, minority=0.5, random_state=9)
    >>> story = tell(attribute="membership", n_hidden=1500, real=other)
    >>> story.hidden.table["model"].tolist()[0], story.hidden.n_test, story.real.n_test
    ('plain Cox', 500, 140)
    """
    real = load_flc() if real is None else real
    if attribute not in real.sensitive_features:
        raise ArgumentError.must(
            "attribute",
            f"be one of {', '.join(map(str, real.sensitive_features))} of {real.name}",
            attribute,
        )
    train, test = _simulated(n_hidden, random_state)
    models = contenders(alpha, random_state)
    hidden = _compared(train, test, models, "membership", "minority", on_model)
    train, _, test = split(real, random_state)
    return Story(hidden, _compared(train, test, models, attribute, None, on_model))


def story_report(
    *,
    random_state: int = 0,
    n_hidden: int = 6000,
    n_bootstrap: int = 200,
    on_step: Callable[[str, int], None] | None = None,
) -> AuditReport:
    """Audit the repaired model on the simulated patients of :func:`tell`, by the group that was hidden.

    `n_bootstrap` and `on_step` are as in :func:`~drosurv.audit.audit`.
    """
    train, test = _simulated(n_hidden, random_state)
    return audit(
        RepairedCox(random_state=random_state).fit(train.X, train.y),
        test.X,
        test.y,
        sensitive_features=test.sensitive_features,
        X_train=train.X,
        y_train=train.y,
        data_name="simulated patients with a hidden group",
        n_bootstrap=n_bootstrap,
        random_state=random_state,
        on_step=on_step,
    )


def _simulated(n: int, seed: int) -> list[Dataset]:
    """Patients to train on and to compare on, two to one."""
    sizes = (n - n // 3, n // 3)
    return [make_hidden_minority(size, random_state=2 * seed + k) for k, size in enumerate(sizes)]


def _compared(
    train: Dataset,
    test: Dataset,
    models: dict[str, Any],
    attribute: str,
    group: str | None,
    on_model: Callable[[str], None] | None,
) -> Chapter:
    """Models on one dataset; without a `group`, the one of the lowest c-index under plain Cox is looked at."""
    encoder = TableEncoder().fit(train.X)
    train, test = (replace(part, X=encoder.transform(part.X)) for part in (train, test))
    labels = test.sensitive_features[attribute]
    rows: list[dict[str, Any]] = []
    for name, model in models.items():
        if on_model is not None:
            on_model(f"{name} on {train.name}")
        start = perf_counter()
        model.fit(train.X, train.y)
        seconds = perf_counter() - start
        found = evaluate(model, test.X, test.y, y_train=train.y, sensitive_features=labels, n_bootstrap=0)
        if group is None:
            ranked = found.select(metric="concordance_index", kind="group")
            group = min(ranked, key=lambda row: row.value).group
        everybody = {short: found.value(metric) for metric, short in _METRICS.items()}
        own = {f"group_{short}": found.value(metric, attribute, group) for metric, short in _METRICS.items()}
        rows.append({"model": name, **everybody, **own, "seconds": seconds})
    return Chapter(
        pd.DataFrame(rows),
        group or "",
        train.name,
        len(train),
        len(test),
        int((labels.astype(str) == group).sum()),
        tuple(str(repair.rule) for repair in models[REPAIRED].repairs_),
    )
