from drosurv.tuning import late_bar


def test_quick_work_shows_nothing(capsys):
    with late_bar.late_bar("quick", 2, show=True) as advance:
        advance()
        advance()
    assert capsys.readouterr().err == ""


def test_long_work_shows_how_far_it_is(capsys, monkeypatch):
    monkeypatch.setattr(late_bar, "SECONDS", -1.0)
    with late_bar.late_bar("slow work", 3, show=True) as advance:
        advance()
    shown = capsys.readouterr().err
    assert "slow work" in shown
    assert "1/3" in shown


def test_where_nobody_looks_nothing_is_shown(capsys, monkeypatch):
    monkeypatch.setattr(late_bar, "SECONDS", -1.0)
    with late_bar.late_bar("slow work", 3) as advance:
        advance()
    assert capsys.readouterr().err == ""
