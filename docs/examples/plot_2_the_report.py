"""
The report
==========

One HTML file that opens without a network: a verdict, the group table behind it, the subgroups that nobody
named, and what to do next. The page that this example writes is the one on the home page.
"""

from sklearn.pipeline import make_pipeline

from drosurv import CoxPHCV, audit, datasets
from drosurv.report import Page
from drosurv.tables import TableEncoder

# 7,874 people whose blood was tested for free light chains, with the age and sex that they gave.
train, _, test = datasets.split(datasets.load_flc(), 0, impute=False)
model = make_pipeline(TableEncoder(), CoxPHCV(random_state=0)).fit(train.X, train.y)

# %%
# With the training patients, plain Cox is trained on the same rows.

report = audit(
    model,
    test.X,
    test.y,
    sensitive_features=test.sensitive_features,
    X_train=train.X,
    y_train=train.y,
    page=Page(data_name="people held out", time_unit="days"),
)
report.to_html("report.html")

# %%
# The picture of its first screen: observed over predicted risk of every group by a time, each with its 95 % interval.

ax = report.plot()

# %%
# Its first screen in a notebook. `The whole page <../report.html>`_ has the charts, the tables and the method card.

report
