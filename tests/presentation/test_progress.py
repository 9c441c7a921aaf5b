from drosurv.presentation import progress


def test_quick_work_shows_nothing(capsys):
    with progress.bar("quick", 2, shown=True, late=True) as told:
        told()
        told()
    assert capsys.readouterr().err == ""


def test_slow_work_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS", -1.0)
    with progress.bar("slow work", 2, shown=True, late=True) as told:
        told()
    assert "slow work" in capsys.readouterr().err
