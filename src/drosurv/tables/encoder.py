"""Encode the columns of a table as the numbers that a model takes, in the same way in training and in prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from drosurv.errors import ArgumentError, InputError, arg, as_names, require, warn_caller
from drosurv.patients.observation import in_pandas
from drosurv.patients.target import FloatArray
from drosurv.presentation import first_upper, listing
from drosurv.tables.columns import (
    CategoryColumn,
    Column,
    HoldsDates,
    LeftOutColumn,
    NumberColumn,
    learn_column,
)
from drosurv.tables.leaks import KeptColumnWarning, LeakWarning, find_leaks
from drosurv.tables.problems import mostly_missing
from drosurv.tables.reading import as_table, require_columns
from drosurv.tables.values import holds_numbers, quoted

UNSEEN = ("reference", "error")
# An error describes at most so many columns.
_MOST_PROBLEMS = 5
# Types of NumPy's integers and floats.
_NUMBERS = {type(np.dtype(code)) for code in np.typecodes["AllInteger"] + np.typecodes["Float"]}


class TableEncoder(TransformerMixin, BaseEstimator):
    """Fill in missing values of a table, encode categories and standardise.

    Missing numbers are filled with the median. Texts and booleans become indicators named ``column=level``, one for
    each level but the most frequent, of booleans but False. Missing values are filled with the most frequent. Then
    every feature is scaled to mean 0 and standard deviation 1. Columns that are empty, constant or number the rows are
    left out. A column that could be read in two ways is an error that says how to decide. :meth:`describe` lists what
    was done to each column.

    Parameters
    ----------
    categorical : sequence of str
        Columns that are categories although they hold numbers, or very many different texts.
    drop : sequence of str
        Columns not to use.
    standardize : bool
        False keeps numbers and indicators as they are.
    unseen : {"reference", "error"}
        What a level that training never saw becomes: the reference, with a warning, or an error.
    reference : mapping of str to str, optional
        Level of a column that its other levels are compared with, such as ``{"sex": "female"}``; the most frequent
        level by default, False of booleans.
    keep_columns : sequence of str
        Columns that are known when a prediction is made although they look like the outcome.

    Attributes
    ----------
    columns_ : list
        What becomes of each column: a :class:`NumberColumn`, :class:`CategoryColumn` or :class:`LeftOutColumn`.
    feature_names_in_, n_features_in_
        Columns of the training table.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv.tables import TableEncoder
    >>> table = pd.DataFrame({"age": [50, 60, None, 70], "sex": ["f", "m", "f", "f"]})
    >>> encoder = TableEncoder(standardize=False).fit(table)
    >>> encoder.transform(table).to_numpy().tolist()
    [[50.0, 0.0], [60.0, 1.0], [60.0, 0.0], [70.0, 0.0]]
    >>> encoder.describe()[["column", "done", "missing"]].to_numpy().tolist()
    [['age', 'kept as it is', 1], ['sex', "indicators of 'm' against 'f'", 0]]
    """

    def __init__(
        self,
        *,
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        standardize: bool = True,
        unseen: str = "reference",
        reference: Mapping[str, str] | None = None,
        keep_columns: Sequence[str] = (),
    ) -> None:
        self.categorical = categorical
        self.drop = drop
        self.standardize = standardize
        self.unseen = unseen
        self.reference = reference
        self.keep_columns = keep_columns

    def __sklearn_tags__(self) -> Any:
        """Declare that missing values and text are accepted, and that the output is always float64."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how each column is encoded.

        Parameters
        ----------
        X : DataFrame (n, d), or array
            Training table; an array's columns are called x0, x1, ...
        y : structured array (n,), optional
            Event and time. If given, warn of columns of a DataFrame that give the outcome away.
        """
        require(self.unseen in UNSEEN, "unseen", f"be one of {UNSEEN}", self.unseen)
        X = in_pandas(X)
        frame = _as_frame(X)
        for role in ("categorical", "drop", "reference"):
            require_columns(frame, as_names(getattr(self, role) or ()), role)
        columns = self._learn(frame.drop(columns=as_names(self.drop)))
        names = pd.Series([name for column in columns for name in column.features], dtype=object)
        if len(names) == 0:
            # scikit-learn's checks of estimators look for the number of samples.
            why = [f"{one.name!r}: {one.reason}" for one in columns if isinstance(one, LeftOutColumn)]
            raise InputError(
                f"none of the {frame.shape[1]} columns differs between patients (n_samples={len(frame)}), so there are "
                f"no features: {listing(why)}."
            )
        if len(twice := names[names.duplicated()]):
            raise InputError(f"two features would be named {twice.iloc[0]!r}: rename a column.")
        if isinstance(X, pd.DataFrame):
            self.feature_names_in_ = np.array(frame.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.columns_, self.n_features_in_ = columns, frame.shape[1]
        if isinstance(X, pd.DataFrame) and getattr(getattr(y, "dtype", None), "names", None):
            for name, reason in find_leaks(frame[self.used_], y).items():
                told = f"column {name!r} may give the outcome away: {reason}."
                if name in as_names(self.keep_columns):
                    told += f" It is used, because {arg('keep_columns')} names it."
                    warn_caller(told, category=KeptColumnWarning, argument="keep_columns")
                else:
                    told += f" Name it in {arg('drop')} if it is not known when predictions are made."
                    warn_caller(told, category=LeakWarning, argument="drop")
        return self

    def _learn(self, frame: pd.DataFrame) -> list[Column]:
        """Learn the encoding of every column; one error reports the problems of all columns."""
        columns: list[Column] = []
        problems: list[InputError] = []
        dates: list[str] = []
        categorical = as_names(self.categorical)
        for name in frame.columns:
            try:
                columns.append(
                    learn_column(
                        frame[name],
                        categorical=name in categorical,
                        standardize=self.standardize,
                        reference=(self.reference or {}).get(str(name)),
                    )
                )
            except HoldsDates:
                dates.append(str(name))
            except InputError as problem:
                problems.append(problem)
        if dates:
            told = "dates are no features: turn them into numbers, such as ages or days, or pass"
            problems.insert(0, InputError(f"{told} {arg('drop', dates)}."))
        if problems:
            first, *others = map(str, problems[:_MOST_PROBLEMS])
            left = len(problems) - _MOST_PROBLEMS
            more = [f"{left:,} more columns cannot be used as they are."] if left > 0 else []
            raise ArgumentError("drop", " ".join([first, *map(first_upper, others), *more]))
        return columns

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the features of a table, (n, features), as a DataFrame.

        Parameters
        ----------
        X : DataFrame (n, ...), or array
            Columns are found by name, in any order; columns that training did not have are ignored. An array must
            have the columns of the training table in their order.
        """
        frame = self._checked(X)
        parts = [column.encode(frame[column.name], self.unseen) for column in self._used()]
        return pd.DataFrame(np.hstack(parts), columns=self.get_feature_names_out(), index=frame.index)

    def as_encoded(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with values that training never saw replaced by those that :meth:`transform` takes them as.

        An unseen level of a category is replaced by the reference. In columns without missing values in training, these
        are replaced by the most frequent level or the median.
        """
        known = [column for column in self._used() if column.name in frame]
        return frame.assign(**{column.name: column.as_encoded(frame[column.name]) for column in known})

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features, (features,)."""
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in column.features], dtype=object)

    @property
    def scale_(self) -> FloatArray:
        """What each feature was divided by, (features,)."""
        used = self._used()
        return np.hstack([c.deviations if isinstance(c, CategoryColumn) else c.deviation for c in used])

    @property
    def center_(self) -> FloatArray:
        """What was subtracted from each feature before dividing, (features,)."""
        used = self._used()
        return np.hstack([c.means if isinstance(c, CategoryColumn) else c.mean for c in used])

    @property
    def used_(self) -> list[str]:
        """Columns that are used as features."""
        return [column.name for column in self._used()]

    def describe(self) -> pd.DataFrame:
        """Return what is done to each column of the training table.

        Returns
        -------
        DataFrame
            ``column``, ``kind``, ``done`` in words, ``missing`` values in training, what they were ``filled_with``,
            and the ``features`` made of it.
        """
        check_is_fitted(self)
        rows = [
            (c.name, c.kind, c.done, c.n_missing, c.fill if c.n_missing and c.features else "", [*c.features])
            for c in self.columns_
        ]
        return pd.DataFrame(rows, columns=["column", "kind", "done", "missing", "filled_with", "features"])

    def findings(self, X: Any) -> pd.DataFrame:
        """Return what :meth:`transform` fills in or ignores in a table.

        Returns
        -------
        DataFrame
            One row per finding: ``column``, number of ``rows``, and what was ``done``, in words.
        """
        frame = self._checked(X)
        found: list[tuple[str, int, str]] = []
        for column in self._used():
            values = frame[column.name]
            if missing := int(values.isna().sum()):
                found.append((column.name, missing, f"missing, filled with {column.fill}"))
            if isinstance(column, CategoryColumn):
                for level, rows in column.unseen(values).items():
                    held = quoted({str(level): int(rows)})
                    done = f"{held}, not seen in training, taken as {column.reference!r}"
                    found.append((column.name, int(rows), done))
        known = {column.name for column in self.columns_}
        found += [(name, len(frame), "not used by the model") for name in frame.columns if name not in known]
        return pd.DataFrame(found, columns=["column", "rows", "done"])

    def _used(self) -> list[NumberColumn | CategoryColumn]:
        check_is_fitted(self)
        return [column for column in self.columns_ if not isinstance(column, LeftOutColumn)]

    def _checked(self, X: Any) -> pd.DataFrame:
        """Return X as a DataFrame; raise if a column that is needed is missing."""
        check_is_fitted(self)
        X = in_pandas(X)
        frame = _as_frame(X)
        if isinstance(X, pd.DataFrame):
            require_columns(frame, self.used_, "feature")
            return frame
        if frame.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {frame.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        if hasattr(self, "feature_names_in_"):
            warn_caller(
                "X does not have valid feature names, but TableEncoder was fitted with feature names; columns are "
                "taken in the order of the training table."
            )
            return frame.set_axis(self.feature_names_in_, axis="columns")
        return frame


def encode_features(model: Any, X: Any, y: Any = None, *, fit: bool = False) -> Any:
    """Encode X for a model where that is needed.

    A DataFrame with text, categories, dates or missing values is encoded by a :class:`TableEncoder` that does not
    standardise. With `fit` the encoder is fitted and kept as ``model.encoder_``, replacing an earlier one; otherwise
    the kept one is used. Anything else is returned unchanged.
    """
    X = in_pandas(X)
    if isinstance(X, np.ma.MaskedArray):
        raise ArgumentError("X",
            "X is a masked array, whose mask would be lost: fill it, or pass a DataFrame with missing "
            "values.")  # fmt: skip
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in ("M", "m"):
        raise ArgumentError("X", "X holds dates: turn them into numbers, such as ages or numbers of days.")
    if kind == "V":
        raise ArgumentError("X", "X holds events and times, as y does: features come first, as in fit(X, y).")
    if fit:
        model.__dict__.pop("encoder_", None)
        if _needs_encoding(X):
            model.encoder_ = TableEncoder(standardize=False).fit(X, y)
            for problem in mostly_missing(X):
                warn_caller(problem)
    encoder = getattr(model, "encoder_", None)
    return X if encoder is None else encoder.transform(X)


def checked_features(model: Any, X: Any, *, fit: bool = False, dtype: Any = np.float64) -> Any:
    """Check encoded features and return them as an array (n, d).

    With `fit` their number and names are stored in the model; otherwise X must agree with those that it has. Missing
    values of a DataFrame to predict for are filled with the medians of a training table that had none.
    """
    try:
        features = _validated(model, X, fit=fit, dtype=dtype)
        if fit:
            model.__dict__.pop("medians_", None)
            # An encoder fills in missing values itself.
            keeps = isinstance(X, pd.DataFrame) and not hasattr(model, "encoder_")
            model._complete = features if keeps else None
        return features
    except ValueError as error:
        # If there is no error with NaN allowed, NaN was the cause.
        try:
            features = _validated(model, X, fit=fit, dtype=dtype, ensure_all_finite="allow-nan")
        except ValueError as other:
            raise InputError(str(other)) from error
        medians = None if fit or not isinstance(X, pd.DataFrame) else training_medians(model)
        if medians is not None:
            return np.where(np.isnan(features), medians, features)
        # The message of scikit-learn recommends other models.
        or_table = " Or pass a DataFrame, whose missing values are filled in." if fit else ""
        raise ArgumentError(
            "X",
            f"X contains NaN: fill in missing values first, for example by make_pipeline(TableEncoder(), "
            f"{type(model).__name__}()), with drosurv.tables.TableEncoder, or by sklearn.impute.{or_table}",
        ) from None


def training_medians(model: Any) -> FloatArray | None:
    """Return the medians (d,) of the features of a model that was trained on a complete table of numbers; else None.

    They are computed when first needed, since most predictions and fits need none.
    """
    complete = getattr(model, "_complete", None)
    if complete is not None:
        model.medians_, model._complete = np.median(complete, axis=0).astype(np.float64), None
    return getattr(model, "medians_", None)


def _validated(model: Any, X: Any, *, fit: bool, dtype: Any, **options: Any) -> Any:
    how: dict[str, Any] = {"dtype": dtype, "ensure_min_samples": 2 if fit else 1, **options}
    if not (isinstance(X, pd.DataFrame) and _has_only_numbers(X)):
        return validate_data(model, X, reset=fit, **how)
    # scikit-learn looks at every column of a table in turn, which takes longer than all else in a small prediction.
    if fit or list(X) != list(getattr(model, "feature_names_in_", ())):
        validate_data(model, X, reset=fit, skip_check_array=True)
    return check_array(X.to_numpy(), input_name="X", estimator=model, **how)


def _has_only_numbers(X: pd.DataFrame) -> bool:
    """Whether every column is a NumPy array of numbers."""
    return set(map(type, X.dtypes)) <= _NUMBERS


def _needs_encoding(X: Any) -> bool:
    if not isinstance(X, pd.DataFrame):
        return False
    if _has_only_numbers(X):
        return bool(X.isna().to_numpy().any())
    plain = np.array([kind.kind in "biufc" for kind in X.dtypes], dtype=np.bool_)
    others = (column for _, column in X.loc[:, ~plain].items())
    return bool(X.isna().any(axis=None)) or not all(map(holds_numbers, others))


def _as_frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return as_table(X, "X")
    values = check_array(X, dtype=None, ensure_all_finite=False)
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
