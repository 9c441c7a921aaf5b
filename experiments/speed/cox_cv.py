"""CoxPHCV: ridge paths with five folds, alone and against scikit-survival's Coxnet and R's cv.glmnet."""

from drosurv import CoxPHCV
from drosurv.estimators.penalty_choice import L2S
from experiments.speed import peers
from experiments.speed.clock import best
from experiments.speed.data import correlated
from experiments.speed.rows import faster, missing, within

PART = "cox_cv"
# Peers choose a ridge for linear effects on as many patients and features.
PEER_SIZE = (2000, 20)


def rows():
    """Every target of CoxPHCV."""
    X, y = correlated(10_000, 20)
    took = best(lambda: CoxPHCV().fit(X, y), 3)
    yield within(PART, "CoxPHCV with splines, 10,000 patients, 20 features", took.cpu, 1.0)
    X, y = correlated(100_000, 50)
    took = best(lambda: CoxPHCV(splines=False).fit(X, y), 2)
    yield within(PART, "CoxPHCV(splines=False), 100,000 patients, 50 features", took.cpu, 10.0)
    yield from peer_rows()


def peer_rows():
    """The same choice of a ridge by other programs."""
    X, y = correlated(*PEER_SIZE)
    ours = best(lambda: CoxPHCV(splines=False).fit(X, y), 5)
    size = f"{len(X):,} patients, {X.shape[1]} features, {len(L2S)} ridges, 5 folds"
    what = f"against scikit-survival's Coxnet in GridSearchCV, {size}"
    yield faster(PART, what, ours.cpu, best(lambda: coxnet_search(X, y), 1).cpu, 1)
    what = f"against R's cv.glmnet, {size}"
    try:
        _, seconds = peers.fit("cv.glmnet", X, y)
    except peers.Missing as reason:
        yield missing(PART, what, "1x faster", str(reason))
    else:
        yield faster(PART, what, ours.cpu, seconds, 1)


def coxnet_search(X, y):
    """The ridge of Coxnet, with next to no lasso, that ranks held-out patients best."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    model = CoxnetSurvivalAnalysis(l1_ratio=1e-6, normalize=True)
    folds = KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(model, {"alphas": [[l2] for l2 in L2S]}, cv=folds).fit(X, y)
