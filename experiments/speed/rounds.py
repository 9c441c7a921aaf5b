"""What a fit over parts of the patients sends about: rounds, and bytes that come back from each chunk.

``python -m experiments.speed.rounds`` counts them for a few models. Sums do not depend on the number of patients in a
chunk; losses, of at most two million events, do.
"""

import pickle

import numpy as np

from drosurv import CoxPH, DROCox
from drosurv.distributed.sorting import Layout, PartRows, cut, cut_times, join, outline
from drosurv.estimators.chunk_estimator import ChunkCohort, fit_chunks
from drosurv.solvers.chunk_likelihood import Marks
from experiments.speed.scale import cohort

MODELS = {
    "CoxPH": CoxPH(),
    "DROCox, chi2": DROCox(recalibrate=False, alpha=0.2),
    "DROCox, cvar": DROCox(ball="cvar", recalibrate=False, alpha=0.2),
}


class Counted:
    """Works in this process, and counts.

    Times of the baseline and of the follow-up, thinned to about 100,000 each, come once and are left out.
    """

    # As of a cluster, so that losses are copied.
    remote = True

    def __init__(self):
        self.rounds = self.gathered = self.bytes = 0
        self.sums = True

    def map(self, work, *arguments):
        """One round."""
        self.rounds += 1
        self.sums = work.__name__ not in ("_steps", "_followed")
        return [work(*each) for each in zip(*arguments, strict=True)]

    def gather(self, results):
        """What would travel."""
        self.gathered += 1
        self.bytes += self.sums * sum(len(pickle.dumps(result)) for result in results)
        return results


def count(model, n=40_000, d=50, n_chunks=8):
    """Newton steps, rounds, gatherings and bytes of one chunk in all of them, up to the optimum."""
    X, time, event = cohort(n, d)
    rows = PartRows(X, time, event, None)
    summary = outline(rows)
    patients = ChunkCohort.of(model, event, None, 0)
    layout = Layout(cut_times([summary], n_chunks), summary.feature_sums / n, [Marks()], patients.scheme)
    chunks = [join([piece], layout.scheme) for piece in cut(rows, layout, 0)[::-1]]
    workers = Counted()
    fit_chunks(model, patients, chunks, np.asarray(layout.centre), workers)
    return model.n_iter_, workers.rounds, workers.gathered, workers.bytes / len(chunks)


def main():
    """Print a row for each model."""
    for name, model in MODELS.items():
        steps, rounds, gathered, sent = count(model)
        print(
            f"{name}: {steps} Newton steps, {rounds} rounds, {gathered} gathered, {sent / 1e3:.0f} kB from a chunk"
        )


if __name__ == "__main__":
    main()
