"""Files of patients: their order, ties, weights, and what is wrong with them.

That every model is the one of all patients in one place: tests/estimators/test_same_model_everywhere.py.
"""

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, GroupDROCox, Surv, distributed

FEATURES = ["a", "b", "c"]


def patients(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.0
    latent = rng.exponential(np.exp(-X @ [0.5, -0.3, 0.0]))
    limit = rng.exponential(2 * np.median(latent), n)
    frame = pd.DataFrame(X, columns=FEATURES)
    # Coarse times: ties must not be torn apart.
    frame["time"] = np.ceil(np.minimum(latent, limit) / np.median(latent) * 10)
    frame["event"] = latent <= limit
    return frame


FRAME = patients()


def write(frame, folder, parts):
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[rows].to_parquet(folder / f"part-{k}.parquet")
    return folder


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    columns = FRAME[[*FEATURES, "time", "event"]].sample(frac=1.0, random_state=0)
    columns.to_parquet(tmp_path / "part.parquet", index=True)
    fitted = distributed.fit(CoxPH(), tmp_path, time="time", event="event")
    assert fitted.feature_names_in_.tolist() == list(FEATURES)


@pytest.mark.parametrize(("order", "n_parts"), [("rising", 2), ("falling", 5)])
def test_files_need_no_order_and_may_be_cut_within_ties(order, n_parts, tmp_path):
    frame = FRAME.sort_values("time", ascending=order == "rising")
    borders = np.cumsum([len(rows) for rows in np.array_split(np.arange(len(frame)), n_parts)])[:-1]
    times = frame["time"].to_numpy()
    assert (times[borders - 1] == times[borders]).any()
    folder = write(frame, tmp_path, n_parts)
    frame.iloc[:0].to_parquet(folder / "part-0-empty.parquet")
    parts = distributed.fit(
        CoxPH(ties="efron"), folder, time="time", event="event", features=FEATURES, rows_per_chunk=64
    )
    whole = CoxPH(ties="efron").fit(FRAME[FEATURES], Surv.from_dataframe("event", "time", FRAME))
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-7)


def test_what_is_wrong_is_named_with_its_part(tmp_path):
    holes = FRAME.copy()
    holes.loc[250, "b"] = np.nan
    folder = write(holes, tmp_path, 3)

    def fit(model=None, **options):
        arguments = {"time": "time", "event": "event", "features": FEATURES, **options}
        return distributed.fit(CoxPH() if model is None else model, folder, **arguments)

    with pytest.raises(ValueError, match=r"row group 0 of part-2.parquet: column 'b' has 1 missing"):
        fit()
    FRAME.drop(columns="b").to_parquet(folder / "part-3.parquet")
    holes.assign(b=0.0, event=2).to_parquet(folder / "part-4.parquet")
    unknown = FRAME["event"].astype("boolean").mask(FRAME.index == 7)
    FRAME.assign(event=unknown).to_parquet(folder / "part-5.parquet")
    FRAME.assign(b=pd.Timestamp("2020-01-01")).to_parquet(folder / "part-6.parquet")
    for wrong, said in (
        (3, "row group 0 of part-3.parquet has no column 'b'"),
        (4, "must hold 0 .* and 1 .*found 2"),
        (5, r"part-5.parquet: column 'event' has 1 missing .*its row 8\)"),
        (6, "part-6.parquet: column 'b' holds dates"),
    ):
        with pytest.raises(ValueError, match=said):
            distributed.fit(
                CoxPH(), folder / f"part-[01{wrong}].parquet", time="time", event="event", features=FEATURES
            )
    for options, said in (
        ({"time": "days"}, "time must be among the columns"),
        ({"features": "a"}, r"features must list columns, got 'a': write \['a'\]"),
        ({"features": ["a", "time"]}, "features must name every column only once, got 'time'"),
        ({"features": ["a", "a"]}, "features must name every column only once, got 'a'"),
        ({"rows_per_chunk": 0}, "rows_per_chunk must be a whole number, at least 1"),
    ):
        with pytest.raises(ValueError, match=said):
            fit(**options)
    with pytest.raises(ValueError, match="data must name Parquet files"):
        distributed.fit(CoxPH(), tmp_path / "nothing-*.parquet", time="time", event="event")
    with pytest.raises(ValueError, match="estimator must be CoxPH, DROCox or DROCoxSplit"):
        fit(GroupDROCox())
    with pytest.raises(ValueError, match="data must be a Dask DataFrame or the path of Parquet files"):
        distributed.fit(CoxPH(), FRAME, time="time", event="event")
