import numpy as np
import pytest

from drosurv.groups import Groups, parse_groups
from drosurv.metrics.inference import permutation_test, studentized_ratio


def test_any_gap_can_be_tested():
    values = np.arange(30.0)
    groups = parse_groups(values >= 15)

    def gap_of_means(groups):
        means = groups.sums(values) / groups.sizes
        return abs(means[0] - means[1])

    test = permutation_test(gap_of_means, groups, permutations=199, random_state=0)
    assert test.p_value == 1 / 200
    assert test.gap == 15.0


def test_permutations_without_a_value_are_left_out_of_the_p_value():
    groups = parse_groups(np.arange(30) >= 15)

    def undefined_unless_unshuffled(shuffled):
        return 1.0 if shuffled.codes[0] == 0 else np.nan

    test = permutation_test(undefined_unless_unshuffled, groups, permutations=99, random_state=0)
    assert test.p_value == 1.0


def test_a_mean_is_compared_in_welchs_standard_errors():
    rng = np.random.default_rng(0)
    values, codes = rng.normal(size=50), rng.integers(2, size=50)
    a, b = values[codes == 0], values[codes == 1]
    expected = abs(a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert studentized_ratio(values, 1.0)(Groups(codes, ("a", "b"))) == pytest.approx(expected)
