"""Peak memory of one fit above its data, each in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from experiments.speed.rows import Row, missing

STATUS = Path("/proc/self/status")
UNKNOWN = "this system does not tell a process its memory"


def _split(n, d, solver):
    from drosurv import DROCoxSplit

    return DROCoxSplit(
        0.2, solver=solver, max_iter=500 if solver == "convex" else 10, random_state=1, recalibrate=False
    )


def _penalised(n, d, penalty):
    from drosurv import RegularizedCox

    return RegularizedCox(penalty, max_iter=3, random_state=1, device="cpu")


def _subgroup(n, d, kernel):
    from drosurv import SubgroupRobustCox

    return SubgroupRobustCox(kernel=kernel, random_state=1, recalibrate=False)


def _repaired(n, d, base):
    from drosurv import CoxPH, RepairedCox

    return RepairedCox(CoxPH(), random_state=1)


def _default(n, d, name):
    import drosurv

    return getattr(drosurv, name)()


MODELS = {
    "default": _default,
    "repaired": _repaired,
    "split": _split,
    "penalised": _penalised,
    "subgroup": _subgroup,
}


def peak_above_data(model, n, d, option):
    """Bytes above what the process held when the data lay ready, or None where this cannot be read."""
    if not STATUS.exists():
        return None
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "experiments.speed.memory",
        model,
        str(n),
        str(d),
        option,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ended.stdout.splitlines()[-1])


def linear_memory(part, what, model, option, sizes=(25_000, 100_000), d=20):
    """A row that asks for no more memory per patient at the larger size than at the smaller."""
    what, target = f"{what}, memory, n = {sizes[0]:,} to {sizes[1]:,}", "linear in n"
    peaks = [peak_above_data(model, n, d, option) for n in sizes]
    if None in peaks:
        return missing(part, what, target, UNKNOWN)
    few, many = (peak / n for peak, n in zip(peaks, sizes, strict=True))
    return Row(
        part,
        what,
        target,
        f"{few / 1e3:.1f} to {many / 1e3:.1f} kB a patient",
        many <= 1.1 * few,
        f"{peaks[1] / 1e9:.2f} GB above the data at n = {sizes[1]:,}, d = {d}",
        {f"bytes_{n}": peak for n, peak in zip(sizes, peaks, strict=True)},
    )


def _status(field):
    """Bytes that this process has (VmRSS), or had at most since its peak was reset (VmHWM)."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def main():
    """Fit once and print the peak."""
    from experiments.speed.data import correlated

    name, n, d, option = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    # A small fit first: compiling kernels takes memory that has nothing to do with n.
    MODELS[name](500, d, option).fit(*correlated(500, d))
    X, y = correlated(n, d)
    # Forget the peak so far, of imports and compilation, which getrusage's maximum would not.
    Path("/proc/self/clear_refs").write_text("5")
    ready = _status("VmRSS")
    MODELS[name](n, d, option).fit(X, y)
    print(json.dumps(_status("VmHWM") - ready))


if __name__ == "__main__":
    main()
