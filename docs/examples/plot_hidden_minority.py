"""
A minority that nobody told the model about
===========================================

Synthetic patients, 15 % of whom follow other rules. Plain Cox is wrong for them; a subgroup-robust model is not, and
was not told who they are.
"""

import matplotlib.pyplot as plt

from drosurv import CoxPH, GroupDROCox, SubgroupRobustCox, datasets
from drosurv.metrics import concordance_index

train = datasets.make_hidden_minority(random_state=0)
test = datasets.make_hidden_minority(random_state=1)
minority = (test.sensitive_features["membership"] == "minority").to_numpy()

models = {
    "plain Cox": CoxPH().fit(train.X, train.y),
    "subgroup-robust": SubgroupRobustCox(alpha=0.1, random_state=0).fit(train.X, train.y),
    "told the groups": GroupDROCox().fit(train.X, train.y, sensitive_features=train.sensitive_features),
}

# %%
# The c-index of everyone, and of the minority alone. One half is a coin toss.

figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for place, model in enumerate(models.values()):
    risk = model.predict(test.X)
    ax.plot(concordance_index(test.y, risk), place, "o", color="tab:blue")
    ax.plot(concordance_index(test.y[minority], risk[minority]), place, "D", color="tab:red")
ax.axvline(0.5, color="grey", linewidth=0.8)
ax.set(yticks=range(len(models)), yticklabels=models, xlabel="c-index (circle: everyone, diamond: minority)")
plt.show()
