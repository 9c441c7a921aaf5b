import numpy as np
import pandas as pd
import polars

from drosurv.judging.rules import (
    COMPARISONS,
    CodedTable,
    RuleSearch,
    readable_table,
    sums_by_atom,
    sums_by_code,
)


def table_of(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {"age": age, "marker": rng.normal(size=n), "stage": rng.choice(["I", "II", "III"], n), "same": 1.0}
    )


def test_sums_of_every_atom_are_those_of_the_patients_who_meet_it():
    table = CodedTable.from_table(table_of())
    rng = np.random.default_rng(1)
    values, counted = rng.normal(size=(300, 5)), rng.random(300) < 0.7
    by_code = sums_by_code(table.codes, values, np.flatnonzero(counted), table.n_codes)
    sums = sums_by_atom(by_code, table.atoms)
    assert {COMPARISONS[kind] for kind in table.atoms[:, 1]} == set(COMPARISONS)
    for place in range(len(table.atoms)):
        inside = table.covers((table.listed[place],)) & counted
        np.testing.assert_allclose(sums[place], values[inside].sum(axis=0), atol=1e-10)


class Summed:
    """Sums of a value."""

    def __init__(self, values):
        self.values = values

    def sums_by_code(self, codes, inside, n_codes):
        return sums_by_code(codes, self.values, inside, n_codes)

    def scores(self, sums):
        return sums[:, 0]


def test_extensions_hold_the_best_value_of_each_comparison():
    table = CodedTable.from_table(table_of())
    values = np.random.default_rng(2).normal(size=(300, 1))
    search = RuleSearch(table, Summed(values), np.ones(300, bool), beam=3)
    for head in ((), (table.listed[50],)):
        found = {candidate.atoms[-1]: candidate for candidate in search.extensions(head)}
        for column, kind in {tuple(pair) for pair in table.atoms[:, :2].tolist()}:
            atoms = [table.listed[i] for i, a in enumerate(table.atoms.tolist()) if a[:2] == [column, kind]]
            sums = np.array([values[table.covers((*head, atom))].sum() for atom in atoms])
            assert np.isclose(found[atoms[sums.argmax()]].score, sums.max())


def test_the_beam_keeps_the_best_and_no_rule_twice():
    table = CodedTable.from_table(table_of())
    values = np.random.default_rng(3).normal(size=(300, 1))
    lengths = list(RuleSearch(table, Summed(values), np.ones(300, bool), beam=4).by_length(3))
    assert [len(ranked[0].atoms) for ranked in lengths] == [1, 2, 3]
    for shorter, ranked in zip([None, *lengths], lengths, strict=False):
        scores = [candidate.score for candidate in ranked]
        assert scores == sorted(scores, reverse=True)
        rules = [frozenset(candidate.atoms) for candidate in ranked]
        assert len(set(rules)) == len(rules)
        if shorter is not None:
            kept = [frozenset(candidate.atoms) for candidate in shorter[:4]]
            assert all(any(head < rule for head in kept) for rule in rules)


def test_conditions_are_those_that_tell_patients_apart():
    columns = {
        # Nobody has the third level.
        "sex": pd.Categorical(["f", "m", "m"], categories=["m", "f", "x"]),
        "diabetes": pd.array(["yes", None, "yes"], dtype="string"),
        "alike": 1.0,
        7: [1.0, 2.0, 3.0],
    }
    table = CodedTable.from_table(readable_table(pd.DataFrame(columns), 3))
    told = [str(table.rule((table.listed[place],))) for place in range(len(table.atoms))]
    flags = ["sex = m", "sex = f", "diabetes = yes", "diabetes is missing"]
    assert told == [*flags, "x3 <= 1", "x3 <= 2", "x3 > 1", "x3 > 2"]


def test_numbers_of_another_librarys_table_are_numbers():
    values = {"age": [50.0, None, 60.0, 70.0], "visits": [1, 2, 3, 4], "sex": list("fmfm")}
    for table in (polars.DataFrame(values), pd.DataFrame(values).to_numpy(dtype=object)):
        assert CodedTable.from_table(readable_table(table, 4)).numeric == (True, True, False)


def test_a_table_without_any_condition_gives_no_rule():
    table = CodedTable.from_table(readable_table(np.ones((50, 2)), 50))
    assert len(table.atoms) == 0
    assert list(RuleSearch(table, Summed(np.ones((50, 1))), np.ones(50, bool), 2).by_length(2)) == []


def test_rules_and_codes_agree_on_the_patients_of_every_condition():
    table = table_of(400)
    table.loc[:9, "marker"], table.loc[10:19, "marker"] = np.inf, -np.inf
    coded = CodedTable.from_table(table)
    for atom in coded.listed:
        for atoms in ((atom,), (atom, coded.listed[50])):
            np.testing.assert_array_equal(coded.covers(atoms), coded.rule(atoms).holds(table))


def test_cuts_are_whole_where_values_are_and_have_few_digits_elsewhere():
    coded = CodedTable.from_table(table_of(1000))
    assert all(cut == round(cut) for cut in coded.values[0])
    assert all(cut == round(cut, 2) for cut in coded.values[1])
