"""
Your own table
==============

From a file with one row per patient to a model and its predictions by group. The file here holds the National Wilms
Tumor Study as a hospital might export it; take your own instead.
"""

from textwrap import fill

from drosurv import CoxPHCV, datasets, evaluate
from drosurv.tables import read_survival_table

data = datasets.load_nwtco()
table = data.X.assign(histol=data.X["histol"].map({0: "favourable", 1: "unfavourable"}))
table = table.assign(days=data.y["time"], relapse=data.y["event"].astype(int))
table.to_csv("patients.csv", index=False)

# %%
# Say which columns hold the time and the event, and which groups you care about. Everything else is a feature.

table = read_survival_table("patients.csv", time="days", event="relapse", groups=["histol", "age>24"])
train, test = table.hold_out(0.4, seed=0)

# %%
# The model encodes text, categories and missing values. Held-out patients judge it.

model = CoxPHCV(random_state=0).fit(train.X, train.y)
result = evaluate(model, test.X, test.y, y_train=train.y, sensitive_features=test.sensitive_features)
result

# %%
# What the numbers say, in words.

print("\n".join(fill(line, 95) for line in result.summary().splitlines()))

# %%
# The same as a picture. ``drosurv check`` does all of this with one command.

ax = result.plot_groups()
