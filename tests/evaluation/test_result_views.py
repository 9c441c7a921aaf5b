"""Summary, Markdown and plots: views of one result."""

import re

import matplotlib as mpl
import numpy as np
import pytest

from drosurv.evaluation import evaluate
from drosurv.evaluation.result_views import shrinkage_table
from drosurv.presentation import literal, with_interval, written

mpl.use("Agg")


@pytest.fixture(scope="module")
def result(model, held_out, evaluated):
    return evaluated(0.5 * model.predict(held_out.X), reference=model, paper=True)


@pytest.fixture(scope="module")
def full(train, evaluated):
    return evaluated(X_train=train.X, paper=True)


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_the_summary_names_who_is_predicted_wrongly_and_what_decides_nothing(full):
    lines = full.summary().split("\n")
    lowest = next(line for line in lines if line.startswith("Lowest c-index: site b, "))
    assert lowest.endswith("so the verdict does not use them.")
    assert any(line.startswith("Predicted risks of site b differ too much") for line in lines)


def test_the_summary_says_when_a_model_has_only_shrunk(result, full):
    line = next(line for line in result.summary().split("\n") if line.startswith("The model's gain"))
    assert re.search(
        r"CoxPH whose log risks are multiplied by .*, none of \d disparities of risk is lower", line
    )
    assert "multiplied" not in full.summary()
    assert "is 100.0 % of plain Cox's." in full.summary()


def test_disparity_between_patients_is_shown_per_pair(model, train, held_out):
    given = {"y_train": train.y, "reference": model}
    found = evaluate(model, held_out.X, held_out.y, paper=True, **given)
    (row,) = [row for row in shrinkage_table(found, "Cox").rows if row["between"] == "patients, per pair"]
    n = len(held_out.y)
    pairs = n * (n - 1) / 2
    assert row["model"] == pytest.approx(found.value("individual_disparity") / pairs, rel=1e-4)


def test_markdown_tables_are_whole_and_hold_the_numbers(full):
    text = full.to_markdown()
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        widths = {len(re.split(r"(?<!\\)\|", line)) for line in block.strip().split("\n")}
        assert len(widths) == 1
    for heading in ("## Overall", "## By site", "## By sex", "## Risks by time", "## Shrinkage control"):
        assert heading in text
    row = full.select(metric="brier_skill", attribute="site", kind="group")[1]
    assert row.text in text
    assert literal(full.summary().split("\n")[0]) in text


def test_markdown_has_the_adjusted_interval_of_a_gap_beside_the_adjusted_p_value(full):
    row = full.select(metric="uno_concordance", attribute="site", kind="gap")[0]
    number = with_interval(row.value, row.low, row.high)
    shown = f"| Uno's C | {row.group} | {number} | {written(row.p, 'p')} |"
    assert shown in full.to_markdown()


def test_two_cuts_of_one_column_have_two_headings(held_out, evaluated):
    age = np.arange(len(held_out.y))
    cuts = {f"age>{cut}": np.where(age > cut, f">{cut}", f"<={cut}") for cut in (80, 120)}
    found = evaluated(sensitive_features=cuts).to_markdown()
    assert "## By age>80" in found.replace("\\", "")
    assert "## By age>120" in found.replace("\\", "")


def test_names_are_shown_as_they_are(held_out, evaluated, axes):
    hostile = held_out.sensitive_features["site"].map({"a": "*<b>$1$|", "b": "_x_"}).rename("# [s](t)")
    shown = evaluated(sensitive_features=hostile)
    document = shown.to_markdown()
    assert r"## By \# \[s\](t)" in document
    assert r"| \*\<b>\$1\$\| |" in document
    assert "<b>" not in document.replace(r"\<b>", "")
    assert "*<b>$1$|" in shown.plot_groups(ax=axes).get_yticklabels()[1].get_text()
    axes.figure.canvas.draw()


def test_the_forest_plot_has_a_point_and_a_name_for_everybody_and_every_group(full, axes):
    assert full.plot_groups("brier_skill", ax=axes) is axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[-1].startswith("everybody  (240 patients")
    assert [name.split("  ")[0] for name in names[:-1]] == ["sex m", "sex f", "site b", "site a"]
    drawn = [float(line.get_xdata()[0]) for line in axes.get_lines() if line.get_marker() == "o"]
    expected = [row.value for row in full.select(metric="brier_skill") if row.kind != "gap"]
    np.testing.assert_allclose(sorted(drawn), sorted(expected))


def test_plots_show_the_groups_of_the_first_attribute(full, axes):
    full.plot_survival(ax=axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()][:2] == ["site a", "site b"]
    for draw in (full.plot_calibration, full.plot_decision_curves):
        assert [panel.get_title() for panel in draw().axes] == ["site a", "site b"]


def test_the_steps_are_at_event_times(full, held_out):
    times = full.survival.query("attribute == 'overall'")["time"].to_numpy()
    assert np.isin(held_out.y["time"][held_out.y["event"]], times).all()


def test_the_survival_plot_shows_lines_and_steps(full, axes):
    full.plot_survival("sex", ax=axes)
    assert "observed (plain Kaplan-Meier)" in axes.get_legend_handles_labels()[1]
    dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--" and len(line.get_xdata())]
    assert [line.get_drawstyle() for line in dashed] == ["steps-post"] * 2
    rows = full.survival.query("attribute == 'sex' and group == 'f'")
    shown = [line.get_ydata() for line in axes.get_lines()]
    assert any(np.array_equal(y, rows["predicted"]) for y in shown)
    assert any(np.array_equal(y, rows["observed"], equal_nan=True) for y in shown)


def test_the_control_plot_shows_the_model_beside_the_curve(result, axes):
    result.plot_control("group_disparity", "site", ax=axes)
    curve, point = axes.get_lines()
    np.testing.assert_array_equal(curve.get_ydata(), result.control.curve["group_disparity site"])
    assert point.get_xdata()[0] == result.value("share_of_gain")
    assert point.get_ydata()[0] == pytest.approx(result.value("group_disparity", "site"))


def test_plots_make_their_own_axes(full):
    import matplotlib.pyplot as plt

    for draw in (
        full.plot_groups,
        full.plot_calibration,
        full.plot_decision_curves,
        full.plot_survival,
        full.plot_control,
    ):
        assert any(axes.has_data() for axes in draw().figure.axes)
    plt.close("all")
