"""A fit over parts of the patients is the fit of all of them in one place."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, DROCox, DROCoxSplit, GroupDROCox, Surv, distributed

FEATURES = ["a", "b", "c"]
MODELS = {
    "cox": CoxPH(l2=0.01),
    "chi2": DROCox(alpha=0.3, tol=1e-11),
    "paper": DROCox(alpha=0.7, ball="paper", tol=1e-11),
    "cvar": DROCox(alpha=0.4, ball="cvar", tol=1e-10),
    "split": DROCoxSplit(alpha=0.4, random_state=3, tol=1e-11),
    "one side": DROCoxSplit(alpha=0.4, sides="one", shuffle=False, tol=1e-11),
}


def patients(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.0
    latent = rng.exponential(np.exp(-X @ [0.5, -0.3, 0.0]))
    limit = rng.exponential(2 * np.median(latent), n)
    frame = pd.DataFrame(X, columns=FEATURES)
    # Coarse times: ties must not be torn apart.
    frame["time"] = np.ceil(np.minimum(latent, limit) / np.median(latent) * 10)
    frame["event"] = latent <= limit
    frame["weight"] = rng.integers(1, 4, n).astype(float)
    return frame


FRAME = patients()


def in_one_place(model, weight=None):
    y = Surv.from_dataframe("event", "time", FRAME)
    return model.fit(FRAME[FEATURES], y, sample_weight=None if weight is None else FRAME[weight])


def write(frame, folder, parts):
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[rows].to_parquet(folder / f"part-{k}.parquet")
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_files_that_are_read_part_by_part_give_the_same_model(name, tmp_path):
    from sklearn.base import clone

    whole = in_one_place(clone(MODELS[name]))
    columns = FRAME[[*FEATURES, "time", "event"]]
    parts = distributed.fit(
        clone(MODELS[name]), write(columns, tmp_path, 5), time="time", event="event", rows_per_slab=70
    )
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-4 if name == "cvar" else 1e-6)
    assert parts.objective_ == pytest.approx(whole.objective_, rel=1e-7)
    times = [2.0, 8.0, 15.0]
    np.testing.assert_allclose(
        parts.predict_survival_function(FRAME[FEATURES], times=times),
        whole.predict_survival_function(FRAME[FEATURES], times=times),
        atol=1e-4 if name == "cvar" else 1e-6,
    )
    np.testing.assert_allclose(parts.follow_up_.survival, whole.follow_up_.survival)
    assert (parts.n_patients_, parts.n_events_) == (whole.n_patients_, whole.n_events_)


def test_weights_count_as_copies_over_parts_too(tmp_path):
    whole = in_one_place(DROCox(alpha=0.4, tol=1e-11), "weight")
    parts = distributed.fit(
        DROCox(alpha=0.4, tol=1e-11),
        write(FRAME, tmp_path, 3),
        time="time",
        event="event",
        features=FEATURES,
        sample_weight="weight",
        rows_per_slab=100,
    )
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)


# Dask leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_a_dask_table_gives_the_same_model_however_it_is_cut(n_parts):
    dd = pytest.importorskip("dask.dataframe", reason="Dask is an extra")
    from distributed import Client

    whole = in_one_place(DROCox(alpha=0.4, tol=1e-11))
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        table = dd.from_pandas(FRAME, npartitions=n_parts)
        # A partition may be empty.
        table = dd.concat([table, table[table["time"] < 0]])
        parts = distributed.fit(
            DROCox(alpha=0.4, tol=1e-11),
            table,
            time="time",
            event="event",
            features=FEATURES,
            rows_per_slab=60,
        )
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)


def test_what_is_wrong_is_named_with_its_part(tmp_path):
    holes = FRAME.copy()
    holes.loc[250, "b"] = np.nan
    folder = write(holes, tmp_path, 3)

    def fit(model=None, **options):
        arguments = {"time": "time", "event": "event", "features": FEATURES, **options}
        return distributed.fit(CoxPH() if model is None else model, folder, **arguments)

    with pytest.raises(ValueError, match=r"row group 0 of part-2.parquet: column 'b' has 1 missing"):
        fit()
    with pytest.raises(ValueError, match="time must be among the columns"):
        fit(time="days")
    with pytest.raises(ValueError, match="data must name Parquet files"):
        distributed.fit(CoxPH(), tmp_path / "nothing-*.parquet", time="time", event="event")
    with pytest.raises(ValueError, match="estimator must be CoxPH, DROCox or DROCoxSplit"):
        fit(GroupDROCox())
    with pytest.raises(ValueError, match="ties must be 'breslow'"):
        fit(CoxPH(ties="efron"))
    with pytest.raises(ValueError, match="data must be a Dask DataFrame or the path of Parquet files"):
        distributed.fit(CoxPH(), FRAME, time="time", event="event")
