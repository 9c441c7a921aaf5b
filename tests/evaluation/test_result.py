"""The result's table of numbers under fairlearn's names."""

import numpy as np
import pytest


@pytest.fixture
def result(without_replicates):
    return without_replicates


def test_overall_and_groups_hold_the_numbers_of_the_table(result):
    assert result.overall["concordance_index"] == result.value("concordance_index")
    for attribute, group in result.by_group.index:
        for metric in ("concordance_index", "brier_skill"):
            assert result.by_group.loc[(attribute, group), metric] == result.value(metric, attribute, group)


def test_differences_and_ratios_are_those_of_fairlearn(result):
    groups, overall = result.by_group.loc["site"], result.overall["concordance_index"]
    values = groups["concordance_index"]
    assert result.difference("site")["concordance_index"] == pytest.approx(np.ptp(values))
    assert result.ratio("site")["concordance_index"] == pytest.approx(values.min() / values.max())
    away = result.difference("site", "to_overall")["concordance_index"]
    assert away == pytest.approx(max(abs(value - overall) for value in values))
    ratio = result.ratio("site", "to_overall")["concordance_index"]
    assert ratio == pytest.approx(min(min(value / overall, overall / value) for value in values))
    # The gap of the table is the same number.
    assert result.difference("site")["brier_skill"] == pytest.approx(result.value("brier_skill", "site"))
