"""Configuration of the site; `make docs` builds it into build/docs."""

import logging
import os
import re
import sys
from pathlib import Path

from numpydoc.xref import DEFAULT_LINKS

import manifactor
from manifactor import plots

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))
# The public name of the module, which Sphinx can import only under its home's.
sys.modules["manifactor.plots"] = plots

# Inventories of other projects are read only on demand: the site builds offline.
ONLINE = bool(os.environ.get("DOCS_ONLINE"))

project = "manifactor"
author = "The manifactor authors"
project_copyright = author
version = release = manifactor.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "gallery_groups",
    "mathml",
    "outside_links",
    "published",
]

# A pattern in the contents may match no page yet; Sphinx has no setting that allows it.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: "toctree glob pattern" not in str(record.msg)
)

# Pages -------------------------------------------------------------------------------

exclude_patterns = ["gallery/**/README.*", "gallery/*.py", "gallery/*.ipynb"]
templates_path = ["_templates"]
highlight_language = "none"
repository_files = "https://github.com/manifactor/manifactor/blob/main"
myst_enable_extensions = ["deflist", "dollarmath"]
# As many levels as GitHub gives anchors, so that links to sections work in both.
myst_heading_anchors = 6
html_math_renderer = "mathml"
# "auto" and "partial" are values, to be typed as they stand.
smartquotes = False
toc_object_entries_show_parents = "hide"

# API ---------------------------------------------------------------------------------

autosummary_generate = True
# Records that nobody imports: their pages are named as what they are.
autosummary_filename_map = {
    f"manifactor.{name}": f"manifactor.{name.rpartition('.')[2]}"
    for name in re.findall(r"^   ~([\w.]+\.[A-Z]\w+)$", (DOCS / "api.md").read_text("utf-8"), re.M)
}
autosummary_imported_members = True
autodoc_default_options = {"members": True, "inherited-members": True, "member-order": "bysource"}
# Types are in the sections of the docstrings, with shapes.
autodoc_typehints = "none"
autodoc_preserve_defaults = True
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [
    # Single backticks in docstrings: names that are pages become links, others code.
    ("py:obj", r"(?!manifactor\.).*")
]
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    "Choice": "manifactor._support.parameters.Choice",
    "DiffusionMap": "manifactor.DiffusionMap",
    "Evidence": "manifactor.Evidence",
    "Factor": "manifactor.Factor",
    "Forecast": "manifactor.operators.forecast.Forecast",
    "ManifoldFactorizer": "manifactor.ManifoldFactorizer",
    "Molecule": "manifactor.datasets.Molecule",
    "Placed": "manifactor.factors.placing.Placed",
    "PlotSettings": "manifactor.plots.PlotSettings",
    "PreferredDirections": "manifactor.datasets.PreferredDirections",
    "Problem": "manifactor.datasets.problems.Problem",
    "Rate": "manifactor.plots.Rate",
    "Score": "manifactor.scores.Score",
    "Simulation": "manifactor.datasets.Simulation",
    "Spectrum": "manifactor.Spectrum",
    "Test": "manifactor.judging.measure.Test",
    "ViewSimulation": "manifactor.datasets.ViewSimulation",
}
intersphinx_mapping = {}
if ONLINE:
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
    }
    numpydoc_xref_aliases |= {
        "Axes": "matplotlib.axes.Axes",
        "Figure": "matplotlib.figure.Figure",
        "RandomState": "numpy.random.RandomState",
        "ndarray": "numpy.ndarray",
    }
else:
    # A word that stands for itself is no link: those of numpydoc lead to Python's site.
    numpydoc_xref_aliases |= {word: word for word in DEFAULT_LINKS}

# Gallery -----------------------------------------------------------------------------

# Without running the examples a build takes half a minute, for writing pages.
plot_gallery = "False" if os.environ.get("DOCS_WITHOUT_FIGURES") else "True"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_groups.GalleryOrder",
    "reset_modules": ("matplotlib", "gallery_groups.clear_figures"),
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"data_sets\.py",
    "parallel": 2,
    "image_srcset": ["2x"],
    "doc_module": ("manifactor",),
    "reference_url": {"manifactor": None},
    "backreferences_dir": "gallery/backreferences",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

# Appearance --------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "manifactor"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_copy_source = False
# It would list names under their private modules; the search finds them.
html_use_index = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "manifactor"},
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "icon_links": [
        {
            "name": "GitHub",
            "url": "https://github.com/manifactor/manifactor",
            "icon": "fa-brands fa-github",
        }
    ],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
}
# Sections of a single page have nothing to show beside it.
SINGLE = ("index", "start", "method", "parameters", "accuracy", "verdict", "peers", "guarantees")
html_sidebars = {page: [] for page in (*SINGLE, "method-measurements", "reproduction/index")}

# Links -------------------------------------------------------------------------------

linkcheck_timeout = 20
linkcheck_retries = 2
