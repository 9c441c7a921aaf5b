"""Groups as people call them."""

import pytest

from drosurv.presentation import attribute_name, group_name
from drosurv.presentation.sentences import small_group_statements


@pytest.mark.parametrize(
    ("attribute", "group", "heading", "name"),
    [
        ("age>65", ">65", "age", "age over 65"),
        ("age>65", "missing", "age", "age missing"),
        ("age>65", ">65 vs <=65", "age", "age over 65 vs 65 or below"),
        # A column of answers to the same question: "age True" would say nothing.
        ("age>65", "True", "age>65", "age>65 True"),
        ("CD4>200", "yes vs no", "CD4>200", "CD4>200 yes vs no"),
        ("CD4>200", "1", "CD4>200", "CD4>200 = 1"),
        ("sex", "f", "sex", "sex f"),
        ("sex & age>65", "f & >65", "sex & age", "sex f & age over 65"),
        ("sex & age>65", "f & True", "sex & age>65", "sex f & age>65 True"),
    ],
)
def test_a_cut_is_called_by_its_column_and_a_question_stays_whole(attribute, group, heading, name):
    assert attribute_name(attribute, group) == heading
    assert group_name(attribute, group) == name


def test_sentences_call_groups_so_too():
    (said,) = small_group_statements([("age>65", ">65"), ("CD4>200", "yes"), ("CD4>200", "no")])
    assert said.text == "Too small to be judged: age over 65; CD4>200 yes, no."
