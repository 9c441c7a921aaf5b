"""
Auditing somebody else's model
==============================

All that is needed are predictions beside what happened: from R, lifelines, a vendor, or an export of health records.
Here boosted trees take the place of a model that cannot be inspected.
"""

from textwrap import fill

import pandas as pd

from drosurv import CoxPH, audit, datasets
from drosurv.report import Page

train, _, test = datasets.split(datasets.load_flc(), seed=0)
trees = CoxPH(network="trees", random_state=0).fit(train.X, train.y)

# %%
# What a vendor would send: survival at a few times, one row per patient.

times = [365, 1095, 1825, 3650]
predictions = pd.DataFrame(trees.predict_survival_function(test.X, times=times), columns=times)
predictions.head(3).round(3)

# %%
# The audit sees the predictions, what happened, the groups, and columns that may define subgroups. It never sees the
# model. From a file, ``drosurv audit --predictions file.csv`` does the same.

report = audit(
    (times, predictions),
    test.X,
    test.y,
    sensitive_features=test.sensitive_features,
    page=Page(data_name="people held out", time_unit="days"),
)
report

# %%
# The groups as a picture.

ax = report.plot()

# %%
# What could not be computed, and what such an audit cannot know, is on the page.

for sentence in report.parts["method"].facts["limits"][:3]:
    print(fill(sentence, 95, initial_indent="- ", subsequent_indent="  "))
