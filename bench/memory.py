"""Peak memory of one fit above its data, each in a process of its own."""

import json
import resource
import subprocess
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def _split(n, d, solver):
    from drosurv import DROCoxSplit

    return DROCoxSplit(0.2, solver=solver, max_iter=500 if solver == "convex" else 10, random_state=1)


def _penalised(n, d, penalty):
    from drosurv import RegularizedCox

    return RegularizedCox(penalty, max_iter=3, random_state=1, device="cpu")


def _subgroup(n, d, kernel):
    from drosurv import SubgroupRobustCox

    return SubgroupRobustCox(kernel=kernel, random_state=1)


MODELS = {"split": _split, "penalised": _penalised, "subgroup": _subgroup}


def peak_above_data(model, n, d, option):
    """Bytes above what the process held when the data lay ready, or None where this cannot be read."""
    if not STATUS.exists():
        return None
    command = [sys.executable, "-W", "ignore", "-m", "bench.memory", model, str(n), str(d), option]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ended.stdout.splitlines()[-1])


def _held():
    """Bytes of this process in memory now."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


def main():
    """Fit once and print the peak."""
    from bench.data import correlated

    name, n, d, option = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    # A small fit first: compiling kernels takes memory that has nothing to do with n.
    MODELS[name](500, d, option).fit(*correlated(500, d))
    X, y = correlated(n, d)
    ready = _held()
    MODELS[name](n, d, option).fit(X, y)
    # ru_maxrss counts in kilobytes on Linux, the only system with the file read above.
    print(json.dumps(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - ready))


if __name__ == "__main__":
    main()
