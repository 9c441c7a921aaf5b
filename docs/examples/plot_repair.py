"""
Find and repair: relapse of Wilms tumour
========================================

4,028 children of the National Wilms Tumor Study. Plain Cox predicts too few relapses for infants. Nobody names them:
repair finds them in the training children, and held-out children show what the repair did.
"""

import matplotlib.pyplot as plt
import numpy as np

from drosurv import CoxPH, CoxPHCV, RepairedCox, datasets, evaluate

data = datasets.load_nwtco()
held_out = np.random.default_rng(0).permutation(len(data.y)) < len(data.y) // 3
X, y, X_test, y_test = data.X[~held_out], data.y[~held_out], data.X[held_out], data.y[held_out]

# %%
# Three models, trained on the same children. Cross-validated Cox may bend the effect of age.

models = {
    "plain Cox": CoxPH().fit(X, y),
    "cross-validated Cox": CoxPHCV(random_state=0).fit(X, y),
    "repaired Cox": RepairedCox(random_state=0).fit(X, y),
}
print("\n".join(models["repaired Cox"].in_words()))

# %%
# Observed and expected relapses of the held-out children, for everybody and for the infants.

infants = {"age <= 8 months": (X_test["age"] <= 8).to_numpy()}
columns = ["group", "patients", "observed", "expected", "ratio_low", "ratio_high", "gain"]
rows = {}
for name, model in models.items():
    groups = evaluate(model, X_test, y_test, y_train=y, subgroups=infants, n_bootstrap=0).groups
    rows[name] = groups.set_index("group")
    print(f"\n{name}\n{groups[columns].round(3).to_string(index=False)}")

# %%
# The same as a picture.

figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
expected = [row.loc["age <= 8 months", "expected"] for row in rows.values()]
ax.barh(list(rows), expected, color="tab:blue", height=0.6)
ax.axvline(rows["plain Cox"].loc["age <= 8 months", "observed"], color="tab:red")
ax.set_xlabel("relapses of held-out infants: expected (bars) and observed (red line)")
ax.invert_yaxis()
plt.show()

# %%
# The spline of cross-validated Cox explains a large part of what repair found: the effect of age is not a straight line.
