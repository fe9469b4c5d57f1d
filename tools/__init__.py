"""Programs that make the documentation: `python -m tools.pages` writes the generated pages."""
