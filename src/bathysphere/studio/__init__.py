"""The studio: a local web page to look inside runs, searches and what an ensemble does not know.

Modules here compute what pages show, and know nothing of browsers; those in `pages` show it.
"""
