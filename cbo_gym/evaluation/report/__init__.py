"""Presentation of results: tables, figures and the page."""
