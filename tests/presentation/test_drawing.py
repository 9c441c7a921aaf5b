import pytest

from drosurv.presentation.drawing import bar


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_says_what_is_done_where_it_is_shown(shown, capsys):
    with bar("slow work", 2, shown=shown) as told:
        told()
        told(doing="the rest")
    error = capsys.readouterr().err
    assert ("the rest" in error) == shown
