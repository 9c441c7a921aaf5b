from drosurv.paper.run_log import RunLog, RunRecord


def test_runs_are_read_back_in_order(tmp_path):
    records = [RunRecord("2024-01-01T00:00:00+00:00", 1.5, k, 2, 0, 4, "cpu", 800.0) for k in range(3)]
    for record in records:
        RunLog(tmp_path / "new").add(record)
    assert RunLog(tmp_path / "new").read() == records


def test_a_folder_without_runs_has_none(tmp_path):
    assert RunLog(tmp_path).read() == []
