"""Sphinx's settings for the site; ``nox -s docs`` builds it from what `assemble` writes."""

from pathlib import Path

project = "tile"
author = "the maintainers of tile"
copyright = author
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"
default_role = "code"
myst_heading_anchors = 4
html_theme = "furo"
html_title = "tile"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
