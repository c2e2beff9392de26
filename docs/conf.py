"""How Sphinx builds the site: `make docs`."""

from importlib.metadata import version as installed

project = "transformer"
author = "The transformer maintainers"
copyright = "2026, the transformer maintainers; Apache-2.0"  # Sphinx's name for it
release = installed("transformer")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "transformer"
html_copy_source = False
html_theme_options = {"light_css_variables": {"font-stack": "system-ui, sans-serif"}}

# Docstrings are plain text with `code` in single backquotes.
default_role = "code"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_mock_imports: list[str] = []
add_module_names = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Links to files of the repository (code, profiles, folders) are for readers on the hosting platform.
suppress_warnings = ["myst.xref_missing"]
