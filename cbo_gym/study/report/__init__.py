"""The report of a study: sections of HTML, for a file that needs no network, or for the page of a server."""

from cbo_gym.study.report.page import sections, style, write_report

__all__ = ["sections", "style", "write_report"]
