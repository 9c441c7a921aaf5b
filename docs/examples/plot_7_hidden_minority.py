"""
A minority that no model is given
=================================

Simulated patients, 15 % of whom have other effects. Plain Cox ranks them little better than chance. Repair finds
them by a rule and ranks them best. A subgroup-robust model ranks them better than plain Cox, and everyone
together a little worse.
"""

import matplotlib.pyplot as plt

from drosurv import CoxPH, GroupDROCox, RepairedCox, SubgroupRobustCox, datasets
from drosurv.metrics import concordance_index

train = datasets.make_hidden_minority(random_state=0)
test = datasets.make_hidden_minority(random_state=1)
minority = (test.sensitive_features["membership"] == "minority").to_numpy()

groups = train.sensitive_features
models = {
    "plain Cox": CoxPH().fit(train.X, train.y),
    "subgroup-robust": SubgroupRobustCox(alpha=0.1, random_state=0).fit(train.X, train.y),
    "repaired": RepairedCox(CoxPH(), random_state=0).fit(train.X, train.y),
    "given the groups (GroupDROCox)": GroupDROCox().fit(train.X, train.y, sensitive_features=groups),
}

# %%
# The c-index of everyone, and of the minority alone. One half is chance.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for row, model in enumerate(models.values()):
    risk = model.predict(test.X)
    ax.plot(concordance_index(test.y, risk), row, "o", color="tab:blue")
    in_minority = concordance_index(test.y[minority], risk[minority])
    ax.plot(in_minority, row, "D", color="tab:red")
ax.axvline(0.5, color="grey", linewidth=0.8)
ax.set_yticks(range(len(models)), models)
ax.set_xlabel("c-index (circle: everyone, diamond: minority)")
plt.show()
