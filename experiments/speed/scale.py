"""Time and memory against patients and features: in memory, on an accelerator, from Parquet files, on Dask workers.

``python -m experiments.speed.scale`` measures, each point in a process of its own, and writes
``experiments/speed/results/scale.json`` with plots beside it; ``python -m experiments.speed.scale --plot`` only draws
what was measured. Points of a device or a package that is not there are left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "scale.json"
STATUS = Path("/proc/self/status")
# Patients and features of each point, by what is measured.
POINTS = {
    "CoxPH": [(10**k, 10) for k in (3, 4, 5, 6, 7)] + [(10**5, d) for d in (5, 20, 50, 100)],
    "DROCox": [(10**k, 10) for k in (3, 4, 5, 6, 7)] + [(10**5, d) for d in (5, 20, 50, 100)],
    "DROCox, cuda": [(10**k, 10) for k in (3, 4, 5, 6, 7)] + [(10**5, d) for d in (5, 20, 50, 100)],
    "DROCox, Parquet": [(10**k, 10) for k in (4, 5, 6, 7)],
    "DROCox, 2 Dask workers": [(10**k, 10) for k in (5, 6, 7)],
    "DROCox, 8 Dask workers": [(10**k, 10) for k in (5, 6, 7)],
    "evaluate": [(10**k, 10) for k in (3, 4, 5, 6)],
    "audit": [(10**k, 10) for k in (4, 5, 6)],
}
# Rows that are written to a file, or drawn, at once.
CHUNK = 1_000_000


def cohort(n, d, seed=0):
    """Normal features in float32, exponential times, and about half of the patients censored."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    rate = np.exp(X @ np.linspace(-0.5, 0.5, d, dtype=np.float32) / np.sqrt(d))
    died, left = rng.exponential(1 / rate), rng.exponential(size=n)
    return X, np.minimum(died, left), died <= left


def write_parquet(folder, n, d):
    """Patients in files of a folder, a chunk at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for k in range(-(-n // CHUNK)):
        X, when, event = cohort(min(CHUNK, n - k * CHUNK), d, seed=k)
        columns = {f"x{j}": X[:, j] for j in range(d)} | {"time": when.astype(np.float32), "event": event}
        pq.write_table(pa.table(columns), Path(folder) / f"part-{k:04d}.parquet", compression=None)


def work(what, n, d, folder):
    """What is measured, as a function without arguments; its data lie ready."""
    import drosurv

    if "Parquet" in what or "Dask" in what:
        write_parquet(folder, n, d)
        return lambda: drosurv.distributed.fit(
            drosurv.DROCox(recalibrate=False, alpha=0.2), folder, time="time", event="event"
        )
    X, when, event = cohort(n, d)
    y = drosurv.Surv.from_arrays(event, when)
    if what == "evaluate":
        model, groups = drosurv.CoxPH().fit(X, y), {"half": np.arange(n) % 2}
        return lambda: drosurv.evaluate(model, X, y, sensitive_features=groups)
    if what == "audit":
        groups = {f"modulo {k}": np.arange(n) % k for k in (2, 5)}
        model = drosurv.CoxPH().fit(X[: n // 5], y[: n // 5])
        return lambda: drosurv.audit(model, X, y, sensitive_features=groups)
    name, _, device = what.partition(", ")
    estimator = getattr(drosurv, name)(device=device or "cpu")
    return lambda: estimator.fit(X, y)


def one(what, n, d):
    """Seconds and gigabytes of one point; kernels are compiled on a small one before."""
    with (
        workers(what) as client,
        tempfile.TemporaryDirectory() as small,
        tempfile.TemporaryDirectory() as folder,
    ):
        work(what, 500, d, small)()
        ready = work(what, n, d, folder)
        Path("/proc/self/clear_refs").write_text("5")
        began = time.perf_counter(), time.process_time()
        ready()
        wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
        gigabytes = peak() + sum(client.run(peak).values() if client else ())
    return {"what": what, "n": n, "d": d, "wall": wall, "cpu": cpu, "gigabytes": gigabytes}


def workers(what):
    """A client of as many Dask workers as the point's name says, each a process of one thread, or none."""
    if "Dask" not in what:
        return nullcontext()
    from distributed import Client

    return Client(n_workers=int(what.split()[1]), threads_per_worker=1, dashboard_address=":0")


def peak():
    """The largest resident set of this process, in gigabytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e6


def there(what):
    """Whether this machine has what the point needs."""
    if "cuda" in what:
        import torch

        return torch.cuda.is_available()
    return "Dask" not in what or find_spec("distributed") is not None


def measure(most):
    """Every point up to the largest n that is wanted, each yielded as soon as it is known."""
    found = []
    for what, points in POINTS.items():
        for n, d in points:
            if n > most or not there(what):
                continue
            options = ["-W", "ignore", "-m", "experiments.speed.scale", "--one"]
            command = [sys.executable, *options, what, str(n), str(d)]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(ended.stdout.splitlines()[-1]))
            print(found[-1], flush=True)
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(found, indent=1))


def plot(found, over, folder):
    """Seconds and memory against n or d."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "drosurv", "svg.fonttype": "none"}):
        figure = Figure(figsize=(9.5, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for what in POINTS:
            own = [
                p for p in found if p["what"] == what and (p["d"] == 10 if over == "n" else p["n"] == 10**5)
            ]
            own.sort(key=lambda p: p[over])
            if len({p[over] for p in own}) > 2:
                left.plot([p[over] for p in own], [p["wall"] for p in own], marker="o", label=what)
                right.plot([p[over] for p in own], [p["gigabytes"] for p in own], marker="o")
        name = "patients, d = 10" if over == "n" else "features, n = 100,000"
        left.set(xscale="log", yscale="log", xlabel=name, ylabel="seconds")
        right.set(xscale="log", xlabel=name, ylabel="gigabytes of the process", ylim=(0, None))
        figure.legend(*left.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
        figure.savefig(folder / f"speed-{over}.svg", metadata={"Date": None})


def main():
    """Measure, or only draw."""
    parser = argparse.ArgumentParser(prog="python -m experiments.speed.scale", description=__doc__)
    parser.add_argument("--most", type=int, default=10**7, help="largest number of patients")
    parser.add_argument("--plot", action="store_true", help="only draw what was measured")
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "N", "D"), help="one point, as JSON")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one[0], int(given.one[1]), int(given.one[2]))))
        return
    if not given.plot:
        measure(given.most)
    found = json.loads(RESULTS.read_text())
    for over in ("n", "d"):
        plot(found, over, RESULTS.parent)


if __name__ == "__main__":
    main()
