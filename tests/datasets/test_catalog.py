import pytest

from drosurv.datasets import fetch, list_datasets


def test_listing_downloads_nothing_and_tells_what_is_cached(empty_cache, shelf):
    listed = list_datasets().set_index("name")
    assert listed["cached"].to_dict() == {"flc": True, "support": False, "seer": False}
    assert not empty_cache.exists()


def test_an_altered_file_does_not_count_as_cached(empty_cache):
    empty_cache.mkdir()
    (empty_cache / "seer.csv").write_text("Age\n50\n")
    assert not list_datasets().set_index("name").loc["seer", "cached"]


def test_bundled_data_need_no_file(empty_cache, shelf):
    assert fetch("flc") is None


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'suport' is not a dataset; choose one of flc, support, seer"):
        fetch("suport")
