"""Losses, objectives, disparities and saved models work without torch; functions on tensors say how to install it."""

import subprocess
import sys

CODE = r"""
import sys


class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError(name)


sys.meta_path.insert(0, NoTorch())
import numpy as np

from drosurv import DROCox, Surv, disparities, load, losses
from drosurv.objectives import BALLS, chi_square, cvar, worst_case_weights

for ball in BALLS:
    assert abs(worst_case_weights([1.0, 2.0, 3.0, 4.0], 0.5, ball=ball).sum() - 1) < 1e-12
assert cvar([1.0, 2.0, 3.0, 4.0], 0.5) == 3.5
assert chi_square([[0.0, 0.0, 0.0, 4.0]] * 2, [1.0, 0.25]).tolist() == [1.0, 4.0]
functions = {
    losses.cox_partial: 3, losses.cox_split: 5, losses.full_likelihood: 5, losses.TorchLoss: 2
}
for function, n in functions.items():
    try:
        function(*[None] * n)
    except ImportError as error:
        assert 'pip install "drosurv[deep]"' in str(error), error
    else:
        raise AssertionError(function)
X = np.arange(40.0).reshape(20, 2) % 7
model = DROCox().fit(X, Surv.from_arrays(np.arange(20) % 3 > 0, 1.0 + np.arange(20.0) % 11))
model.save(sys.argv[1])
assert (load(sys.argv[1]).predict(X) == model.predict(X)).all()
assert "torch" not in sys.modules
"""


def test_torch_is_optional(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE, str(tmp_path / "model")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_names_that_left_say_where_they_are():
    code = (
        "import drosurv\n"
        "for name in ('JustTrainTwice', 'paper', 'losses.PoissonDeviance', 'objectives.power'):\n"
        "    try:\n"
        "        eval('drosurv.' + name)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
        "try:\n"
        "    from drosurv import AdversarialReweighting\n"
        "except ImportError as error:\n"
        "    print(error)\n"
        "assert not hasattr(drosurv, 'no_such_name')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "from experiments.rivals import JustTrainTwice" in lines[0]
    assert "python -m experiments.paper" in lines[1]
    assert "PiecewiseExponential" in lines[2]
    assert "cvar" in lines[3]
    assert "from experiments.rivals import AdversarialReweighting" in lines[4]
