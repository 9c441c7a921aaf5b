"""A stored unit is whole or not there, whoever else writes, and however it was broken."""

import json
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from experiments.paper import Protocol
from experiments.runs import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_what_is_put_is_got(store, unit, result):
    assert store.get(unit()) is None
    stored = result(
        unit(), lambda *_: {"concordance_index": np.float64(0.1) + 0.2, "dynamic_auc": np.float32(0.5)}
    )
    store.put(unit(), {**stored, "seconds": 1.5})
    got = store.get(unit())
    assert got["seconds"] == 1.5
    # Every digit survives.
    assert got["rows"][0]["concordance_index"] == 0.1 + 0.2
    assert got["rows"][0]["dynamic_auc"] == 0.5


def test_numbers_that_are_not_finite_come_back_as_none(store, unit, result):
    store.put(unit(), result(unit(), lambda *_: {"concordance_index": np.nan, "dynamic_auc": -np.inf}))
    row = store.get(unit())["rows"][0]
    assert row["concordance_index"] is None
    assert row["dynamic_auc"] is None


def test_a_changed_setting_does_not_find_the_old_result(store, unit, result):
    store.put(unit(), result(unit()))
    assert store.get(unit(protocol=Protocol(max_iter=10))) is None
    assert store.get(unit(repeat=1)) is None


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: text[: len(text) // 2], "truncated"),
        (lambda text: "", "truncated"),
        (lambda text: "[1, 2]", "not a result"),
        (lambda text: text.replace("0.02", "0.03"), "altered"),
        (lambda text: json.dumps({**json.loads(text), "key": "0" * 64}), "other settings"),
    ],
)
def test_a_broken_file_is_ignored_with_a_warning_and_can_be_replaced(store, unit, result, spoil, why):
    store.put(unit(), result(unit()))
    path = store.path(unit())
    path.write_text(spoil(path.read_text()))
    with pytest.warns(UserWarning, match=why):
        assert store.get(unit()) is None
    store.put(unit(), result(unit()))
    assert store.get(unit()) is not None


def test_a_file_of_bytes_that_are_no_text_is_ignored_with_a_warning(store, unit, result):
    store.put(unit(), result(unit()))
    store.path(unit()).write_bytes(b"\xff\xfe\x00")
    with pytest.warns(UserWarning, match="computed again"):
        assert store.get(unit()) is None


def test_readers_never_see_half_a_file_while_writers_replace_it(store, unit, result):
    big = {**result(unit()), "padding": ["x" * 1000] * 200}
    store.put(unit(), big)

    def write(number):
        for _ in range(10):
            store.put(unit(), {**big, "writer": number})

    def read(_):
        # A torn read would warn, and return None.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return [store.get(unit()) is not None for _ in range(30)]

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, number) for number in range(2)]
        readers = [pool.submit(read, number) for number in range(2)]
        assert all(all(reader.result()) for reader in readers)
        for writer in writers:
            writer.result()
    assert list(store.path(unit()).parent.iterdir()) == [store.path(unit())]


def test_finished_gives_what_is_stored_in_the_order_asked(store, unit, result):
    wanted = [unit("cox", 2), unit("dro-cox", 0), unit("cox", 0)]
    for one in wanted[1:]:
        store.put(one, result(one))
    assert [one for one, _ in store.finished(wanted)] == wanted[1:]
