"""
Curved effects, chosen by cross-validation
==========================================

Plain Cox fits a straight line to every column. ``CoxPHCV`` chooses between lines and splines, and how much to
shrink them, by cross-validation. On the FLC data it is compared with plain Cox on patients that neither has seen.
"""

import matplotlib.pyplot as plt

from drosurv import CoxPH, CoxPHCV, datasets

train, _, test = datasets.split(datasets.load_flc(), seed=0)
model = CoxPHCV().fit(train.X, train.y)
plain = CoxPH().fit(train.X, train.y)
print(f"c-index: CoxPHCV {model.score(test.X, test.y):.4f}, plain Cox {plain.score(test.X, test.y):.4f}")

# %%
# The summary compares the quartiles of splined columns. ``p nonlinear`` tests, without any penalty or choice, whether a
# straight line would do.

model.summary()

# %%
# The partial effect of a column, everything else equal, with a pointwise 95 % band. Knots are marked below.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for column, ax in zip(["age", "creatinine"], axes, strict=True):
    model.plot_partial_effect(column, ax)
plt.show()
