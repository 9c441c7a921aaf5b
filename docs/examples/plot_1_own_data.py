"""
Your own table
==============

From a file with one row per patient to a model and to whom it serves how well. The file here is the Worcester Heart
Attack Study, written out as a hospital would export it; put your own in its place.
"""

from sksurv.datasets import load_whas500

from drosurv import CoxPH, evaluate
from drosurv.tables import read_survival_table

X, y = load_whas500()
X["gender"] = X["gender"].astype(int).map({0: "male", 1: "female"})
X.assign(days=y["lenfol"], died=y["fstat"].astype(int)).to_csv("patients.csv", index=False)

# %%
# Say which columns hold the time and the event, and whose groups you care about. Everything else is a feature.

table = read_survival_table("patients.csv", time="days", event="died", groups=["gender", "age>75"])
train, test = table.hold_out(0.4, seed=0)

# %%
# Text, categories and missing values are encoded by the model. The patients kept away judge it.

model = CoxPH().fit(train.X, train.y)
result = evaluate(
    model, test.X, test.y, y_train=train.y, sensitive_features=test.sensitive_features, n_bootstrap=200
)
result

# %%
# What the numbers say, in words, with what chance alone would explain.

print(result.summary())

# %%
# The same as a picture. ``drosurv fit`` and ``drosurv evaluate`` do all of this from the command line.

ax = result.plot_groups()
