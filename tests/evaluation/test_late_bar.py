from drosurv.evaluation import evaluate, late_bar


def test_quick_work_shows_nothing(capsys):
    with late_bar.late_bar("quick", 2, show=True) as advance:
        advance()
        advance()
    assert capsys.readouterr().err == ""


def test_slow_work_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(late_bar, "SECONDS", -1.0)
    with late_bar.late_bar("slow work", 2, show=True) as advance:
        advance()
    assert "slow work" in capsys.readouterr().err


def test_an_evaluation_counts_its_replicates_and_tests(monkeypatch, capsys, model, train, held_out):
    monkeypatch.setattr(late_bar, "SECONDS", -1.0)
    for show in (True, None):
        evaluate(
            model,
            held_out.X,
            held_out.y,
            y_train=train.y,
            sensitive_features=held_out.sensitive_features,
            n_bootstrap=4,
            progress=show,
        )
        # By default a bar needs a terminal.
        assert ("evaluating" in capsys.readouterr().err) is (show is True)
