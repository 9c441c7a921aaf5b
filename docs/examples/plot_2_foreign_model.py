"""
Auditing somebody else's model
==============================

All that is needed are predictions beside what happened: from R, lifelines, a vendor, or an export of health records.
Here a random survival forest stands for the model that nobody can look into.
"""

import pandas as pd
from sksurv.datasets import load_gbsg2
from sksurv.ensemble import RandomSurvivalForest

from drosurv.audit import audit_predictions

X, y = load_gbsg2()
numbers = X.select_dtypes("number")
forest = RandomSurvivalForest(n_estimators=50, min_samples_leaf=15, random_state=0).fit(numbers[::2], y[::2])
held, happened = X[1::2], y[1::2]
times = [365, 730, 1095, 1460]
survival = [[curve(time) for time in times] for curve in forest.predict_survival_function(numbers[1::2])]

# %%
# What a vendor would send: survival at a few times, one row per patient.

predictions = pd.DataFrame(survival, columns=times)
predictions.head(3)

# %%
# The audit sees the predictions, what happened, the groups, and columns that rules may speak about. It never sees the
# model. From a file, ``drosurv audit --predictions file.csv`` does the same.

report = audit_predictions(
    predictions,
    happened,
    sensitive_features={
        "menopause": held["menostat"],
        "age": (held["age"] > 60).map({True: ">60", False: "<=60"}),
    },
    features=held,
    name="a forest",
    data_name="breast cancer patients",
    time_title="days",
    n_bootstrap=100,
)
report

# %%
# What could not be computed, and what such an audit cannot know, is said on the page.

for sentence in report.parts["method"].facts["limits"][:3]:
    print("-", sentence)
