"""
Bounds for every subgroup
=========================

How wrong can a model be in any subgroup that one or two conditions on the columns define? ``certify`` tests all of them at
once on held-out patients. The chance that it calls a right model wrong in any of them is 5 %.
"""

import numpy as np

from drosurv import CoxPH, RepairedCox, certify, datasets

data = datasets.load_nwtco()
held_out = np.random.default_rng(0).permutation(len(data.y)) < len(data.y) // 3
X, y, X_test, y_test = data.X[~held_out], data.y[~held_out], data.X[held_out], data.y[held_out]

# %%
# Plain Cox on children with Wilms tumour. Significant subgroups come first.

bounds = certify(CoxPH().fit(X, y), X_test, y_test)
print(bounds.significant.head(5).round(3).to_string(index=False))

# %%
# What holds for all subgroups at once, with 95 % confidence.

print(bounds.summary("days"))

# %%
# The estimate and the bound of each measure.

ax = bounds.plot()

# %%
# The repaired model, on the same held-out children.

repaired = certify(RepairedCox(random_state=0).fit(X, y), X_test, y_test)
print(repaired.summary("days"))
