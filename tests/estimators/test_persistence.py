"""Saved models: a loaded model equals the saved one, and broken or foreign files are refused."""

import inspect
import json
import pickle
from dataclasses import fields, is_dataclass
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from operator import getitem

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save as safetensors_bytes
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler

from drosurv import MLP, DeepHit, Trees, all_estimators
from drosurv.datasets import load_flc, make_hidden_minority
from drosurv.estimators import CoxPH, DROCox, DROCoxSplit, persistence
from drosurv.estimators.base import SurvivalModel
from drosurv.estimators.persistence import load, read_saved_model, save
from drosurv.metrics import FollowUp
from drosurv.patients.target import Surv
from drosurv.tables import TableEncoder

EVERY_CLASS = [cls for _, cls in all_estimators() if issubclass(cls, SurvivalModel)]
# Rounded times, so that no curve happens to have one point per patient.
DATA = make_hidden_minority(n_samples=263, random_state=0)
X, Y = DATA.X, Surv.from_arrays(DATA.y["event"], np.ceil(20 * DATA.y["time"]) / 20)
GROUPS = DATA.sensitive_features["membership"]
TIMES = [0.1, 0.5, 2.0]


def fitted(model):
    compares = model._compares_groups is not None
    return model.fit(X, Y, **({"sensitive_features": GROUPS} if compares else {}))


def small(cls, **parameters):
    # Subgroups that so few patients can hold; of all this each class takes what it knows.
    wanted = {"max_iter": 5, "min_group": 10, "n_trees": 3, "recalibrate": False}
    wanted |= {"cv": 3, "folds": 3, "max_conditions": 1, **parameters}
    network = wanted.get("network", getattr(cls, "network", "linear"))
    if network == "trees":
        wanted["network"] = Trees(max_iter=wanted.pop("max_iter"))
    elif network != "linear":
        wanted["network"] = MLP(max_iter=wanted.pop("max_iter"), module=None if network == "mlp" else network)
    return cls(**{name: wanted[name] for name in inspect.signature(cls).parameters if name in wanted})


_trained = {}


def trained(cls, network):
    """One fit of each model for the tests that only write and read it."""
    model = small(cls, network=network, solver="auto" if network == "trees" else "adam", random_state=3)
    if repr(model) not in _trained:
        _trained[repr(model)] = fitted(model)
    return _trained[repr(model)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


@pytest.fixture(scope="module")
def linear_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    fitted(DROCox()).save(path)
    return path.read_bytes()


def assert_same_model(loaded, model):
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for curve in ("predict_survival_function", "predict_cumulative_hazard_function"):
        np.testing.assert_array_equal(
            getattr(loaded, curve)(X, times=TIMES), getattr(model, curve)(X, times=TIMES)
        )
        np.testing.assert_array_equal(
            getattr(loaded, curve)(X, return_array=True), getattr(model, curve)(X, return_array=True)
        )


def assert_same_predictions(loaded, part, name):
    """A model inside a model, which may take other columns, predicts the same."""
    rows = np.random.default_rng(0).normal(size=(20, part.n_features_in_))
    if hasattr(part, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=part.feature_names_in_)
    np.testing.assert_array_equal(loaded.predict(rows), part.predict(rows), err_msg=name)
    np.testing.assert_array_equal(
        loaded.predict_survival_function(rows, times=TIMES),
        part.predict_survival_function(rows, times=TIMES),
        err_msg=name,
    )


def assert_same_part(loaded, part, name):
    """Records and models inside a model are compared by what they hold."""
    if isinstance(part, dict):
        assert loaded.keys() == part.keys(), name
        for key in part:
            assert_same_part(loaded[key], part[key], f"{name}[{key!r}]")
    elif isinstance(part, list | tuple):
        assert len(loaded) == len(part), name
        for index, item in enumerate(part):
            assert_same_part(loaded[index], item, f"{name}[{index}]")
    elif hasattr(part, "predict"):
        assert type(loaded) is type(part), name
        assert_same_part(loaded.get_params(), part.get_params(), name)
        if hasattr(part, "n_features_in_"):
            assert_same_predictions(loaded, part, name)
    elif is_dataclass(part):
        assert type(loaded) is type(part), name
        for field in fields(part):
            assert_same_part(getattr(loaded, field.name), getattr(part, field.name), f"{name}.{field.name}")
    else:
        np.testing.assert_array_equal(loaded, part, err_msg=name)


@pytest.mark.filterwarnings("ignore:.*sensitive_features is ignored:UserWarning")
@pytest.mark.parametrize(
    ("cls", "network"),
    [
        *((cls, "linear") for cls in EVERY_CLASS),
        *((cls, "mlp") for cls in EVERY_CLASS if "network" in inspect.signature(cls).parameters),
        *(
            (cls, "trees")
            for cls in EVERY_CLASS
            if "network" in inspect.signature(cls).parameters and cls is not DeepHit
        ),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
class TestEveryEstimator:
    """The contract of one estimator with the file: a new class passes it without code of its own there."""

    def test_comes_back_as_it_was(self, cls, network, path):
        model = trained(cls, network)
        assert model.save(path) is None
        loaded = load(path)
        assert_same_model(loaded, model)
        assert loaded.get_params() == model.get_params()
        assert loaded.score(X, Y) == model.score(X, Y)
        assert loaded.feature_names_in_.tolist() == list(X.columns)
        apart = {"network_", "follow_up_", "_baseline", "_kept_training", "_findings"}
        for name in set(vars(model)) - apart - {*model._per_patient}:
            assert_same_part(getattr(loaded, name), getattr(model, name), name)
        assert not set(vars(loaded)) & {*model._per_patient}
        np.testing.assert_array_equal(loaded.unique_times_, model.unique_times_)
        if hasattr(model, "baseline_survival_"):
            np.testing.assert_array_equal(loaded.baseline_survival_.y, model.baseline_survival_.y)
            np.testing.assert_array_equal(loaded.cum_baseline_hazard_.y, model.cum_baseline_hazard_.y)
        if hasattr(model, "coef_") and hasattr(model, "summary"):
            assert str(loaded.summary()) == str(model.summary())
            assert loaded._kept_training is None

    def test_leaves_no_training_patient_in_the_file(self, cls, network, path):
        model = trained(cls, network)
        model.save(path)
        with safe_open(path, framework="numpy") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 - no mapping
            description = file.metadata()["drosurv"]
        assert all(len(X) not in shape for shape in shapes.values()), shapes
        longest = max((len(part) for part in json_lists(json.loads(description))), default=0)
        assert longest < len(X)

    def test_survives_joblib(self, cls, network, path):
        model = trained(cls, network)
        joblib.dump(model, path)
        assert_same_model(joblib.load(path), model)


def json_lists(value):
    if isinstance(value, list):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from json_lists(item)


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_skops_loads_what_its_user_trusts(network):
    import skops.io  # Here, since it imports all of scikit-learn, which takes as long as all other imports.

    model = trained(DROCox, network)
    data = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith(("drosurv.", "torch.")) for name in trusted), trusted
    assert_same_model(skops.io.loads(data, trusted=trusted), model)
    if network == "linear":
        pipeline = make_pipeline(TableEncoder(), CoxPH()).fit(X, Y)
        data = skops.io.dumps(pipeline)
        trusted = skops.io.get_untrusted_types(data=data)
        assert all(name.startswith("drosurv.") for name in trusted), trusted
        loaded = skops.io.loads(data, trusted=trusted)
        np.testing.assert_array_equal(loaded.predict(X), pipeline.predict(X))


@pytest.mark.parametrize("name", ["model", "model.safetensors", "my.model.v2", "modèle 1"])
def test_exactly_one_file_is_written_at_the_path_as_given(tmp_path, name):
    model = fitted(CoxPH())
    model.save(str(tmp_path / name))
    model.save(tmp_path / name)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert_same_model(load(str(tmp_path / name)), model)


def test_a_linear_flc_model_takes_less_than_100_kb(path):
    data = load_flc()
    model = make_pipeline(StandardScaler(), DROCox()).fit(data.X.fillna(data.X.median()), data.y)
    save(model, path)
    assert path.stat().st_size < 100_000


def test_the_same_network_gives_the_same_bytes(tmp_path):
    """Linear models do so in another process too: see test_distribution.py."""
    for name in ("first", "second"):
        fitted(DROCox(network=MLP(max_iter=5), recalibrate=False, random_state=0)).save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_pipeline_is_saved_with_its_scaler(path):
    model = make_pipeline(StandardScaler(), DROCox()).fit(X, Y)
    save(model, path, notes={"time": "days", "levels": ["a", "b"]})
    loaded = read_saved_model(path)
    np.testing.assert_array_equal(loaded.model.predict(X), model.predict(X))
    assert loaded.notes == {"time": "days", "levels": ["a", "b"]}
    assert {"drosurv", "python", "numpy", "scikit-learn"} <= set(loaded.versions)
    # Optional libraries are named where they are installed.
    assert ("torch" in loaded.versions) == (find_spec("torch") is not None)


def test_special_numbers_and_parameter_types_are_restored(path):
    model = fitted(CoxPH(network=MLP([8, 4], max_iter=3), tol=np.float64(1e-6), l2=0))
    model.gap_, model.extra_ = np.inf, {"nan": float("nan"), "minus": -np.inf, "zero": np.array([-0.0, 1.0])}
    model.save(path)
    loaded = load(path)
    assert loaded.get_params() == model.get_params()
    assert loaded.gap_ == np.inf
    assert np.isnan(loaded.extra_["nan"])
    assert loaded.extra_["minus"] == -np.inf
    assert np.signbit(loaded.extra_["zero"][0])
    assert loaded.extra_["zero"].dtype == np.float64


def test_a_random_generator_is_not_saved(path):
    fitted(CoxPH(random_state=np.random.RandomState(0))).save(path)
    assert load(path).random_state is None


def test_an_array_without_names_loads_without_names(path):
    CoxPH().fit(X.to_numpy(), Y).save(path)
    assert not hasattr(load(path), "feature_names_in_")


def test_unusual_feature_names_are_restored(path):
    names = ['<script>"', 'a\\"checksum', "größe", "年齢", "\U0001f600", "", "a b", "x,y", "'", "\n"]
    CoxPH().fit(X.set_axis(names, axis="columns"), Y).save(path)
    assert load(path).feature_names_in_.tolist() == names


def test_follow_up_curves_equal_those_of_the_training_target(path):
    model = fitted(CoxPH())
    model.save(path)
    kept, expected = load(path).follow_up_, FollowUp.parse(Y)
    for name in ("times", "censoring", "survival", "event_percentiles"):
        np.testing.assert_allclose(getattr(kept, name), getattr(expected, name), atol=1e-12)
    assert (model.n_patients_, model.n_events_) == (len(Y), Y["event"].sum())


class TestOwnNetwork:
    @staticmethod
    def make(n_features):
        return torch.nn.Sequential(
            torch.nn.Linear(n_features, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)
        )

    def test_is_rebuilt_from_the_function_given_again_and_from_no_other(self, path):
        model = fitted(small(CoxPH, network=self.make, random_state=0))
        model.save(path)
        assert_same_model(load(path, module=self.make), model)
        with pytest.raises(ValueError, match=r"TestOwnNetwork\.make.*load\(path, module=\.\.\.\)"):
            load(path)
        with pytest.raises(ValueError, match="another shape"):
            load(path, module=lambda d: torch.nn.Linear(d, 1))

    def test_is_refused_where_none_is_needed(self, path):
        fitted(CoxPH()).save(path)
        with pytest.raises(ValueError, match="network was given"):
            load(path, network=self.make)


class TestSaveRefuses:
    def test_an_unfitted_model(self, path):
        with pytest.raises(NotFittedError):
            CoxPH().save(path)
        assert not path.exists()

    def test_a_step_it_cannot_keep_without_pickle(self, path):
        model = make_pipeline(RobustScaler(), CoxPH()).fit(X, Y)
        with pytest.raises(TypeError, match=r"steps\[0\].*RobustScaler.*joblib"):
            save(model, path)
        assert not path.exists()

    def test_a_subclass_that_load_could_not_find(self, path):
        class Mine(CoxPH):
            pass

        with pytest.raises(TypeError, match="Mine"):
            fitted(Mine()).save(path)

    def test_an_attribute_that_is_neither_number_text_nor_array(self, path):
        model = fitted(CoxPH())
        model.frame_ = pd.DataFrame({"a": [1]})
        with pytest.raises(TypeError, match=r"model\.frame_, a DataFrame"):
            model.save(path)

    @pytest.mark.parametrize("values", [np.array(["2020-01-01"], "M8[D]"), np.array([1, "a"], object)])
    def test_arrays_of_other_things(self, path, values):
        model = fitted(CoxPH())
        model.odd_ = values
        with pytest.raises(TypeError, match=r"model\.odd_"):
            model.save(path)


def write(path, described, arrays=None, key="drosurv"):
    path.write_bytes(safetensors_bytes(arrays or {}, {key: json.dumps(described)}))


def resealed(path, content, arrays, **overrides):
    """A file whose checksum is right although its content was made by hand."""
    checksum = persistence._checksum(content, arrays)
    write(path, {"format": 1, "checksum": checksum, "content": content, **overrides}, arrays)


def opened(data, path):
    path.write_bytes(data)
    return persistence._parse(path)


class TestLoadRefuses:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\0",
            b"time,event\n1,0\n",
            pickle.dumps({"a": 1}),
            b"PK\x03\x04" + bytes(60),
            bytes(1000),
            b"\xff" * 1000,
            (2).to_bytes(8, "little") + b"{}",
            (2).to_bytes(8, "little") + b"[]",
            (4).to_bytes(8, "little") + b"null",
            (10**6).to_bytes(8, "little") + b"[" * 10**6,
        ],
    )
    def test_files_of_another_kind(self, path, data):
        path.write_bytes(data)
        with pytest.raises(
            ValueError, match=r"model is (not|a safetensors file, but not) a model saved by drosurv"
        ):
            load(path)

    def test_a_safetensors_file_of_another_program(self, path):
        write(path, {}, {"weight": np.zeros(3)}, key="author")
        with pytest.raises(ValueError, match="but not a model saved by drosurv"):
            load(path)

    @pytest.mark.parametrize(
        ("form", "said"),
        [
            (2, r"newer drosurv \(format 2.*upgrade"),
            *((form, "unknown format") for form in (0, -1, None, "1", 1.0, True)),
        ],
    )
    def test_a_format_that_is_newer_or_never_was(self, path, form, said):
        write(path, {"format": form, "anything": "else"})
        with pytest.raises(ValueError, match=said):
            load(path)

    @pytest.mark.parametrize("described", ['"text"', "[1]", "{", "[" * 10**5])
    def test_a_description_that_is_none(self, path, described):
        path.write_bytes(safetensors_bytes({}, {"drosurv": described}))
        with pytest.raises(ValueError, match="altered or damaged"):
            load(path)

    @pytest.mark.parametrize("what", ["coefficient", "parameter"])
    def test_what_was_changed_without_its_checksum(self, path, linear_bytes, what):
        arrays, described = opened(linear_bytes, path)
        model = described["content"]["model"]
        if what == "parameter":
            model["parameters"]["alpha"] = 0.3
        else:
            arrays[model["attributes"]["coef_"]["array"]] += 1e-9
        write(path, described, arrays)
        with pytest.raises(ValueError, match="checksum"):
            load(path)

    @pytest.mark.parametrize(
        ("place", "values", "said"),
        [
            # Classes that a file may not name.
            (("object",), ["os:system", "builtins:eval", "subprocess:Popen", "sklearn.svm:SVC",
                "drosurv.estimators:Unheard", "drosurv.nowhere:Thing", "drosurv:CoxPH", 3,
                "drosurv.estimators.persistence:import_module", "drosurv.estimators:load",
                "drosurv.patients.target:Surv"], r"does not know|cannot be read by"),
            # Attributes that would replace code.
            *((("attributes", name), [1], "not a fitted attribute")
                for name in ("predict", "__class__", "unique_times_", "a b", "__dict__", "save")),
            # Arrays of other things than numbers of fixed width.
            (("attributes", "coef_", "dtype"), ["U5000000", "S5000000", "V9999999", "O", "complex128", "float128",
                "M8[s]"], "which is none of numbers"),
            # A parameter that this version does not have.
            (("parameters", "temperature"), [1], r"temperature.*version that wrote it"),
        ],
        ids=str,
    )  # fmt: skip
    def test_contents_with_a_right_checksum_that_are_none(self, path, linear_bytes, place, values, said):
        for value in values:
            arrays, described = opened(linear_bytes, path)
            content = described["content"]
            *outer, name = place
            reduce(getitem, outer, content["model"])[name] = value
            resealed(path, content, arrays)
            with pytest.raises(ValueError, match=said):
                load(path)

    def test_an_array_that_is_used_twice(self, path, linear_bytes):
        arrays, described = opened(linear_bytes, path)
        content = described["content"]
        content["notes"] = {"dict": {"copies": [content["model"]["attributes"]["coef_"]] * 1000}}
        resealed(path, content, arrays)
        with pytest.raises(ValueError, match="used twice"):
            load(path)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_coefficients_that_are_not_finite(self, path, linear_bytes, value):
        arrays, described = opened(linear_bytes, path)
        content = described["content"]
        name = content["model"]["attributes"]["coef_"]["array"]
        arrays[name] = np.full_like(arrays[name], value)
        resealed(path, content, arrays)
        with pytest.raises(ValueError, match=r"coefficients of .* are not finite"):
            load(path)

    def test_a_missing_file_and_a_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nothing")
        with pytest.raises(OSError, match="directory"):
            load(tmp_path)


def test_a_file_without_a_parameter_added_since_loads_with_its_default(path, linear_bytes):
    arrays, described = opened(linear_bytes, path)
    content = described["content"]
    del content["model"]["parameters"]["verbose"]
    resealed(path, content, arrays)
    assert load(path).verbose is False


def loads_the_same_or_raises_value_error(path, data, expected):
    path.write_bytes(data)
    try:
        scores = load(path).predict(X)
    except ValueError:
        return
    np.testing.assert_array_equal(scores, expected)


def test_every_truncation_is_refused(path, linear_bytes):
    cuts = np.unique(np.r_[0:64, np.linspace(64, len(linear_bytes) - 1, 400).astype(int)])
    for cut in cuts:
        path.write_bytes(linear_bytes[:cut])
        with pytest.raises(ValueError, match="model"):
            load(path)


def test_random_damage_raises_value_error_or_gives_the_same_model(path, linear_bytes):
    rng = np.random.default_rng(0)
    expected = fitted(DROCox()).predict(X)
    header = 8 + int.from_bytes(linear_bytes[:8], "little")
    for _ in range(400):
        data = bytearray(linear_bytes)
        # Half the damage goes to the header, where a change can do more than spoil a number.
        end = header if rng.random() < 0.5 else len(data)
        for position in rng.integers(0, end, rng.integers(1, 4)):
            data[position] ^= rng.integers(1, 256)
        if rng.random() < 0.2:
            data = data[: rng.integers(len(data))] + data[rng.integers(len(data)) :]
        loads_the_same_or_raises_value_error(path, bytes(data), expected)


def test_hand_made_contents_with_a_right_checksum_only_raise_value_error(path, linear_bytes):
    rng = np.random.default_rng(0)
    junk = [
        None,
        -1,
        "x",
        [],
        {},
        {"array": "none", "dtype": "f8"},
        {"tuple": 3},
        {"object": 1},
        {"a": 1, "b": 2},
    ]
    arrays, described = opened(linear_bytes, path)
    refused = 0
    for _ in range(150):
        content = json.loads(json.dumps(described["content"]))
        place = content
        while True:
            key = rng.choice(list(place)) if isinstance(place, dict) else int(rng.integers(len(place)))
            below = place[key]
            if not isinstance(below, (dict, list)) or not below or rng.random() < 0.3:
                break
            place = below
        place[key] = junk[rng.integers(len(junk))]
        resealed(path, content, arrays)
        try:
            loaded = load(path)
        except ValueError:
            refused += 1
        else:
            # A number or a note may be another; what is loaded is still a model.
            assert isinstance(loaded, DROCox)
    assert refused > 20


def test_dro_cox_split_keeps_both_thresholds(path):
    model = fitted(DROCoxSplit(random_state=0))
    model.save(path)
    assert load(path).eta_ == model.eta_
    assert isinstance(load(path).eta_, tuple)


@pytest.mark.parametrize("stored", sorted(persistence._HOMES))
def test_stored_classes_are_where_the_table_says(stored):
    assert isinstance(getattr(import_module(persistence._HOMES[stored]), stored), type)
