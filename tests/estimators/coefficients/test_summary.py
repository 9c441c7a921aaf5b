import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from drosurv.estimators.coefficients import cox_table

COEF, ERROR = np.array([0.5, -0.2]), np.array([0.1, 0.2])


def table(**kwargs):
    return cox_table(["age", "sex=f"], COEF, ERROR, caption="CoxPH, 100 patients", **kwargs)


def test_it_is_a_frame_with_the_columns_of_lifelines():
    found = table()
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == [
        *("coef", "exp(coef)", "se(coef)", "coef lower 95%", "coef upper 95%"),
        *("exp(coef) lower 95%", "exp(coef) upper 95%", "z", "p"),
    ]
    assert found.index.tolist() == ["age", "sex=f"]
    assert found.index.name == "covariate"
    np.testing.assert_allclose(found["exp(coef)"], np.exp(COEF))
    np.testing.assert_allclose(found["coef upper 95%"], COEF + norm.ppf(0.975) * ERROR)
    np.testing.assert_allclose(found["exp(coef) lower 95%"], np.exp(COEF - norm.ppf(0.975) * ERROR))
    np.testing.assert_allclose(found["p"], 2 * norm.sf([5.0, 1.0]))
    assert type(found[["coef"]]) is pd.DataFrame


def test_the_level_names_the_bounds():
    found = table(level=0.9)
    np.testing.assert_allclose(found["coef lower 90%"], COEF - norm.ppf(0.95) * ERROR)
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 95"):
        table(level=95)


def test_the_table_of_a_robust_model_shows_plain_cox():
    found = table(plain_coef=np.array([0.4, 0.0]), notes=["How to read it."])
    np.testing.assert_allclose(found["change"], [0.1, -0.2])
    assert "hazard ratio, plain Cox" in str(found)
    assert str(found).endswith("How to read it.")


def test_every_view_shows_the_hazard_ratios():
    found = table()
    shown = "1.649 (1.355 to 2.006)"
    assert shown in repr(found)
    assert shown in found.to_markdown()
    assert shown in found.to_latex()
    assert r"\toprule" in found.to_latex()
    assert shown in found.to_html()
    assert shown in found._repr_html_()


def test_unknown_standard_errors_are_dashes():
    found = cox_table(["age"], np.array([0.5]), np.array([np.nan]))
    assert found["p"].isna().all()
    assert "nan" not in str(found).lower()


def test_the_forest_plot_shows_ratios_and_intervals():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    ax = table(plain_coef=np.array([0.4, 0.0])).forest_plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["age", "sex=f"]
    assert ax.get_xscale() == "log"
    ax.figure.canvas.draw()
    ticks = [label.get_text() for label in ax.get_xticklabels()]
    assert "1" in ticks
    assert all(float(tick) > 0 for tick in ticks)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), np.exp(COEF))
    plt.close(ax.figure)
