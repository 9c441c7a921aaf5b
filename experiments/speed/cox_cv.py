"""CoxPHCV: ridge paths with five folds, alone and against scikit-survival's Coxnet and R's cv.glmnet."""

from drosurv import CoxPHCV
from drosurv.estimators.penalty_choice import L2S
from experiments.speed import peers
from experiments.speed.clock import best
from experiments.speed.data import correlated
from experiments.speed.rows import faster, missing, within

PART = "cox_cv"
# Peers choose a ridge for linear effects on as many patients and features.
PEER_SIZE, WIDE_SIZE = (2000, 20), (500, 5000)


def rows():
    """Every target of CoxPHCV."""
    X, y = correlated(10_000, 20)
    took = best(lambda: CoxPHCV().fit(X, y), 3)
    yield within(PART, "CoxPHCV with splines, 10,000 patients, 20 features", took.cpu, 1.0)
    X, y = correlated(100_000, 50)
    took = best(lambda: CoxPHCV(splines=False).fit(X, y), 2)
    yield within(PART, "CoxPHCV(splines=False), 100,000 patients, 50 features", took.cpu, 10.0)
    X, y = correlated(137, 200)
    took = best(lambda: CoxPHCV().fit(X, y), 3)
    yield within(PART, "CoxPHCV with splines, 137 patients, 200 features", took.cpu, 1.0)
    yield from peer_rows()


def peer_rows():
    """The same choice of a ridge by other programs."""
    X, y = correlated(*PEER_SIZE)
    ours = best(lambda: CoxPHCV(splines=False).fit(X, y), 5).cpu
    what = f"against scikit-survival's Coxnet in GridSearchCV, {size(X)}"
    yield faster(PART, what, ours, best(lambda: coxnet_search(X, y), 1).cpu, 1)
    yield against_glmnet(X, y, ours)
    X, y = correlated(*WIDE_SIZE)
    ours = best(lambda: CoxPHCV(splines=False).fit(X, y), 1).cpu
    yield within(PART, f"CoxPHCV(splines=False), {len(X):,} patients, {X.shape[1]:,} features", ours, 10.0)
    yield against_glmnet(X, y, ours)


def against_glmnet(X, y, ours):
    """R's cv.glmnet, where it is installed."""
    what = f"against R's cv.glmnet, {size(X)}"
    try:
        _, seconds = peers.fit("cv.glmnet", X, y)
    except peers.Missing as reason:
        return missing(PART, what, "1x faster", str(reason))
    return faster(PART, what, ours, seconds, 1)


def size(X):
    """Size of the problem, in words."""
    return f"{len(X):,} patients, {X.shape[1]:,} features, {len(L2S)} ridges, 5 folds"


def coxnet_search(X, y):
    """The ridge of Coxnet, with next to no lasso, that ranks held-out patients best."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    model = CoxnetSurvivalAnalysis(l1_ratio=1e-6, normalize=True)
    folds = KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(model, {"alphas": [[l2] for l2 in L2S]}, cv=folds).fit(X, y)
