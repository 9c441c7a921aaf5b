"""Configuration of the documentation site."""

import os
import shutil
import warnings
from importlib.metadata import version as installed
from pathlib import Path

project = "drosurv"
author = "The drosurv developers"
copyright = f"2026, {author}"
release = version = installed("drosurv")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "examples/GALLERY_HEADER.rst", "more_models.rst"]

html_theme = "furo"
html_title = "drosurv"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
templates_path = ["_templates"]
# Formulas are typeset by a copy of MathJax that is part of the site: nothing is fetched from elsewhere.

autosummary_generate = ["api.rst", "more_models.rst"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    # In the order of a first week with the package, which the numbers of the files give.
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 10_000,
}
suppress_warnings = ["config.cache"]

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")


def put_report(app, error):
    """The page that an example of the gallery wrote, beside the home page that shows it."""
    report = Path(app.srcdir, "examples", "report.html")
    # Without the gallery there is none.
    if error is None and app.builder.name == "html" and report.exists():
        shutil.copy(report, app.outdir)


def unnamed_models(reference):
    """Entries of the models that the reference does not name: a new one is in it without a line of its own."""
    from drosurv import all_estimators

    rooms = {name: ".".join(cls.__module__.split(".")[:2]) for name, cls in all_estimators()}
    missing = [f"   ~{room}.{name}" for name, room in rooms.items() if f"\n   {name}\n" not in reference]
    if not missing:
        return ".. Every model is named above.\n"
    return "\n".join([".. autosummary::", "   :toctree: generated", "", *missing, ""])


def setup(app):
    """Called by Sphinx, before it reads: api.rst includes the models it does not name."""
    reference = Path(app.srcdir, "api.rst").read_text(encoding="utf-8")
    Path(app.srcdir, "more_models.rst").write_text(unnamed_models(reference), encoding="utf-8")
    app.connect("build-finished", put_report)
