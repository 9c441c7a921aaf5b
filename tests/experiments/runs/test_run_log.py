from experiments.runs import RunLog, RunRecord


def test_runs_are_read_back_in_order(tmp_path):
    records = [RunRecord("2024-01-01T00:00:00+00:00", 1.5, k, 2, 0, 4, "cpu") for k in range(3)]
    for record in records:
        RunLog(tmp_path / "new").add(record)
    assert RunLog(tmp_path / "new").read() == records


def test_half_a_line_left_by_a_killed_run_costs_no_other_record(tmp_path):
    log, record = RunLog(tmp_path), RunRecord("2024-01-01T00:00:00+00:00", 1.5, 1, 2, 0, 4, "cpu")
    log.add(record)
    with open(log.path, "a") as file:
        file.write('{"started": "2024-01-02T00:0')
    log.add(record)
    assert log.read() == [record, record]


def test_a_folder_without_runs_has_none(tmp_path):
    assert RunLog(tmp_path).read() == []
