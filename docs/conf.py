"""Settings of Sphinx, which builds the pages: ``make docs``."""

import os
import re
from importlib.metadata import metadata
from pathlib import Path

from dualgap import distributed

project = "dualgap"
author = copyright = "dualgap developers"
version = release = metadata("dualgap")["Version"]
summary = metadata("dualgap")["Summary"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
# The tables of the benchmarks are printed with their headings.
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
myst_html_meta = {"description": summary}
autosummary_generate = True
autosummary_ignore_module_all = False  # document exactly what __all__ lists
autodoc_typehints = "none"  # numpydoc has them
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# A copied block has the commands alone, without prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"dualgap {release}"
# The source of a page is its twin in Markdown.
html_show_sourcelink = True
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_theme_options = {
    "logo": {"text": "dualgap"},
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc", "sourcelink"], "index": []},
    "show_prev_next": False,
}

# A link to the repository, on every page: REPOSITORY_URL=https://example.org/code
if repository := os.environ.get("REPOSITORY_URL", ""):
    icon = {"name": "Repository", "url": repository, "icon": "fa-solid fa-code-branch"}
    html_theme_options["icon_links"] = [icon]

# A sitemap, and cards for links to the pages, need the address of the pages:
# DOCS_URL=https://example.org/dualgap make docs
html_baseurl = os.environ.get("DOCS_URL", "")
if html_baseurl:
    html_baseurl = html_baseurl.rstrip("/") + "/"
    extensions += ["sphinx_sitemap", "sphinxext.opengraph"]
    sitemap_url_scheme = "{link}"
    sitemap_excludes = ["search.html", "genindex.html"]
    ogp_site_url, ogp_site_name = html_baseurl, project
    ogp_image, ogp_image_alt = f"{html_baseurl}_static/card.png", summary
    ogp_use_first_image = False
    ogp_social_cards = {"enable": False}  # one drawn card serves all pages
    ogp_custom_meta_tags = ['<meta name="twitter:card" content="summary_large_image">']

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [
        f"../examples/{name}"
        for name in ("classify", "regression", "tune", "understand", "scale")
    ],
    # The pages of the API reference link to the examples that use them.
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("dualgap",),
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(blood_cells|demo)\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1,
}


def tidy(app, what, name, obj, options, lines):
    """Prepare docstrings for numpydoc.

    Join lines that end in a backslash, keep n_features_in_ in a shape from being read
    as a link, and drop scikit-learn's links to its own user guide and glossary.
    """
    text = re.sub(r" \\\n\s+", " ", "\n".join(lines))
    text = re.sub(r":ref:`([^`<]*?)\s*<[^`]*>`", r"\1", text)
    text = re.sub(r":term:`([^`<]*?)(?:\s*<[^`]*>)?`", r"``\1``", text)
    lines[:] = text.replace("(n_features_in_,)", "(`n_features_in_`,)").split("\n")


def write_llms_txt(app, error):
    """List every page with its source in Markdown, as https://llmstxt.org asks."""
    if error or app.builder.name != "html":
        return
    lines = ["# dualgap", "", f"> {summary}."]
    parts: dict[str, list[str]] = {"Guide": [], "Examples": [], "API reference": []}
    for name in sorted(app.env.found_docs):
        source = app.env.doc2path(name, base=False)
        part = "Examples" if name.startswith("auto_examples") else "Guide"
        part = "API reference" if name.startswith(("site/api", "site/gen")) else part
        link = f"- [{app.env.titles[name].astext()}](_sources/{source}.txt)"
        parts[part].append(link)
    for part, links in parts.items():
        lines += ["", f"## {part}", "", *links]
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def setup(app):
    """Connect the functions above to Sphinx's events."""
    # Autodoc documents a class under its own name; under another it says "alias of".
    distributed.LinearSVC.__name__ = "LinearSVC"
    app.connect("autodoc-process-docstring", tidy, priority=400)
    app.connect("build-finished", write_llms_txt)
