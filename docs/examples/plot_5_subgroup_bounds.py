"""
Bounds for every subgroup
=========================

How wrong can a model be in any subgroup that one or two conditions on the columns define? ``certify`` tests
all of them at once on held-out patients. The chance that it calls a right model wrong in any of them is 5 %.
"""

from textwrap import fill

from sklearn.model_selection import train_test_split

from drosurv import CoxPH, RepairedCox, certify, datasets

data = datasets.load_nwtco()
X, X_test, y, y_test = train_test_split(
    data.X, data.y, test_size=1 / 3, stratify=data.y["event"], random_state=0
)

# %%
# Plain Cox on children with Wilms tumour. Significant subgroups come first.

bounds = certify(CoxPH().fit(X, y), X_test, y_test)
shown = ["group", "question", "observed", "expected", "ratio", "p"]
print(bounds.significant[shown].head(5).round(3).to_string(index=False))

# %%
# What holds for all subgroups at once, with 95 % confidence.

print("\n".join(fill(line, 95) for line in bounds.summary("days").splitlines()))

# %%
# The estimate and the bound of each measure.

ax = bounds.plot()

# %%
# The repaired model, on the same held-out children. A subgroup that is still significant was not found in
# the training children, or its correction was not confirmed there.

repaired = certify(RepairedCox(CoxPH(), random_state=0).fit(X, y), X_test, y_test)
print("\n".join(fill(line, 95) for line in repaired.summary("days").splitlines()))
