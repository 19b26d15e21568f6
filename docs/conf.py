"""How Sphinx builds the pages: ``make docs``."""

import re
from importlib.metadata import version as installed

project = "dualgap"
author = copyright = "dualgap developers"
version = release = installed("dualgap")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
# The tables of the benchmarks are printed with their headings.
suppress_warnings = ["myst.header"]

myst_heading_anchors = 3
autosummary_generate = True
autosummary_ignore_module_all = False  # a module is what it says it is
autodoc_typehints = "none"  # numpydoc has them
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"dualgap {release}"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(blood_cells|demo)\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1,
}


def tidy(app, what, name, obj, options, lines):
    """What raw docstrings mean, before numpydoc reads them.

    A backslash at the end of a line joins it to the next one, and n_features_in_ in a
    shape is no link.
    """
    text = re.sub(r" \\\n\s+", " ", "\n".join(lines))
    lines[:] = text.replace("(n_features_in_,)", "(`n_features_in_`,)").split("\n")


def setup(app):
    """Sphinx calls it."""
    app.connect("autodoc-process-docstring", tidy, priority=400)
