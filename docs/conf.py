"""Sphinx builds the pages from this folder: ``make docs``. Nothing is loaded from other hosts."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import warnings
from pathlib import Path

from vicinal.version import __version__

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext")]
os.environ.setdefault("MPLBACKEND", "Agg")

project = "vicinal"
author = "The vicinal developers"
copyright = "The vicinal developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "gallery_figures",
]
exclude_patterns = ["_ext", "images", "gallery/*.ipynb", "gallery/*.py", "sg_execution_times.rst"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
default_role = "literal"
nitpicky = False
suppress_warnings = ["config.cache"]  # the order of the gallery is a function

# ------------------------------------------------------------------------------------- Markdown

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# ------------------------------------------------------------------------------------------ API


def own_methods(module: str, name: str) -> list[str]:
    """The public methods of a class that are documented in vicinal rather than in a package."""
    methods = inspect.getmembers(getattr(importlib.import_module(module), name), callable)
    return [
        method
        for method, function in methods
        if not method.startswith("_")
        and (getattr(function, "__module__", None) or "").startswith("vicinal")
    ]


autosummary_generate = True
autosummary_context = {"own_methods": own_methods}
autosummary_generate_overwrite = True
autodoc_typehints = "none"  # the docstrings say the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# -------------------------------------------------------------------------------------- gallery

sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("vicinal",),
    "backreferences_dir": "api/backreferences",
    "inspect_global_variables": False,
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "show_api_usage": False,
    "download_all_examples": False,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "write_computation_times": False,
    "reset_modules": ("matplotlib", "gallery_figures.reset_style"),
    "image_srcset": ["2x"],
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# ----------------------------------------------------------------------------------------- site

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "vicinal"
html_baseurl = ""
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["vicinal.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # a page opened from disk cannot fetch the others' texts
html_theme_options = {
    "logo": {"text": "vicinal"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search",
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
}
NO_SUBPAGES = ("index", "start", "methods")
html_sidebars = {"**": ["sidebar-nav-bs"], **{page: [] for page in NO_SUBPAGES}}
