"""What takes long the first time: `make` runs it once, after installing.

Most kernels of the package are compiled, which numba keeps beside the sources, and the datasets that tests load are
downloaded.
"""

from concurrent.futures import ProcessPoolExecutor

import numpy as np

from drosurv import CoxPH, CoxPHCV, DROCox, Surv, audit, evaluate
from drosurv.datasets import make_hidden_minority
from drosurv.estimators import DROCoxSplit, SubgroupRobustCox
from drosurv.metrics import dynamic_auc
from drosurv.paper import censored_individual_disparity, individual_disparity
from experiments.datasets.catalog import download_every


def judge():
    """Audit a model: metrics, the search of subgroups, repairs."""
    data = make_hidden_minority(400, random_state=0)
    model = CoxPH().fit(data.X, data.y)
    audit(model, data.X, data.y, sensitive_features=data.sensitive_features)
    evaluate(model, data.X, data.y, sensitive_features=data.sensitive_features, paper=True)
    risk = model.predict(data.X)
    dynamic_auc(data.y, data.y, risk)
    individual_disparity(risk, data.X, pairs=400)
    censored_individual_disparity(data.y, risk, data.X, pairs=400)


def train():
    """Fit models, one of them with splines, and one to patients who enter late."""
    data = make_hidden_minority(300, random_state=0)
    time, event = data.y["time"], data.y["event"]
    CoxPHCV(l2s=[0.1], cv=2).fit(data.X, data.y)
    CoxPH().fit(data.X, Surv.from_arrays(event, time, entry=time / 2))
    CoxPH(ties="efron").fit(data.X, data.y)
    DROCox(alpha=0.5, ties="efron").fit(data.X, Surv.from_arrays(event, np.ceil(5 * time)))
    for model in (
        DROCox(alpha=0.5),
        DROCox(alpha=0.5, solver="adam", max_iter=2),
        DROCoxSplit(alpha=0.5, random_state=0),
        SubgroupRobustCox(random_state=0),
    ):
        model.fit(data.X, data.y)


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as workers:
        for done in [workers.submit(job) for job in (judge, train, download_every)]:
            print(done.result() or "", end="")
