"""Helpers of several pages: paths, tables, links and pictures."""
