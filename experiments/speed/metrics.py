"""Metrics: concordance, disparities, the full evaluation."""

from drosurv import CoxPH, evaluate
from drosurv.metrics import concordance_index
from drosurv.paper import concordance_imparity, individual_disparity
from experiments.speed import textbook
from experiments.speed.clock import best
from experiments.speed.data import flc, scored
from experiments.speed.rows import faster, within

PART = "metrics"


def rows():
    """Every target of the metrics."""
    train, (X, y, groups) = flc()
    model = CoxPH().fit(*train[:2])
    risk, age = model.predict(X), groups["age"].to_numpy()
    yield imparity_row(y, risk, age)
    yield million_row()
    yield disparity_row(risk, X)
    yield concordance_row()
    yield evaluate_row(model, train)


def imparity_row(y, risk, groups):
    """CI on FLC's test patients."""
    loop = best(lambda: textbook.concordance_imparity(y["time"], y["event"], risk, groups), 3, warm_up=False)
    ours = best(lambda: concordance_imparity(y, risk, groups), 50)
    return faster(
        PART,
        f"concordance imparity, {len(y):,} patients, against the double loop of Algorithm B.1 over lists",
        ours.cpu,
        loop.cpu,
        1000,
        f"values differ by {abs(ours.result - loop.result):.0e}",
    )


def million_row():
    """CI of a million patients."""
    y, risk, groups = scored(1_000_000)
    ours = best(lambda: concordance_imparity(y, risk, groups), 3)
    return within(PART, "concordance imparity, 1,000,000 patients", ours.cpu, 5)


def disparity_row(risk, X):
    """F_I on FLC's test patients."""
    ours = best(lambda: individual_disparity(risk, X, convention="table"), 50)
    theirs = best(lambda: textbook.individual_disparity(risk, X), 3, warm_up=False)
    return faster(
        PART,
        f"individual disparity F_I, {len(X):,} patients, against its double loop over lists",
        ours.cpu,
        theirs.cpu,
        200,
        f"values differ by {abs(ours.result / theirs.result - 1):.0e} of their size",
    )


def concordance_row():
    """The c-index of 100,000 patients."""
    from sksurv.metrics import concordance_index_censored

    y, risk, _ = scored(100_000)
    theirs = best(lambda: concordance_index_censored(y["event"], y["time"], risk)[0], 1, warm_up=False)
    ours = best(lambda: concordance_index(y, risk), 10)
    return faster(
        PART,
        "c-index, 100,000 patients, against scikit-survival",
        ours.cpu,
        theirs.cpu,
        50,
        f"values differ by {abs(ours.result - theirs.result):.0e}",
    )


def evaluate_row(model, train):
    """Everything about one model."""
    (X_train, y_train, _), (X, y, groups) = train, flc()[1]

    def evaluation():
        return evaluate(model, X, y, y_train=y_train, X_train=X_train, sensitive_features=groups)

    ours = best(evaluation, 3)
    note = f"{len(ours.result.to_frame())} numbers; plain Cox fitted as the reference"
    return within(PART, "full evaluate of one model on FLC's test set", ours.cpu, 1.5, note)
