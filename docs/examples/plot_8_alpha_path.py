"""
From plain Cox to the worst case
================================

What happens to coefficients and accuracy as the protected share of patients gets smaller, on the FLC data.
"""

import matplotlib.pyplot as plt
import numpy as np

from drosurv import DROCox, datasets

train, _, test = datasets.split(datasets.load_flc(), seed=0)
mean, deviation = train.X.mean(), train.X.std()
X, X_test = (train.X - mean) / deviation, (test.X - mean) / deviation

# %%
# ``alpha=1`` is plain Cox. Each fit is the certified global optimum and takes milliseconds.

alphas = np.array([1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1])
models = [DROCox(alpha=alpha).fit(X, train.y) for alpha in alphas]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
paths = np.array([model.coef_ for model in models]).T
for name, path in zip(X.columns, paths, strict=True):
    left.plot(alphas, path, marker="o", markersize=3, label=name)
left.set(xlabel="alpha", ylabel="coefficient", title="Coefficients shrink together")
left.legend(fontsize=8)
scores = [model.score(X_test, test.y) for model in models]
right.plot(alphas, scores, marker="o", markersize=3, color="black")
right.set(xlabel="alpha", ylabel="c-index on the test set")
right.set_title("while the order of patients hardly changes")
plt.show()

# %%
# The left panel is why fairness numbers that depend on the scale of the scores must be read beside a control for
# shrinkage.
