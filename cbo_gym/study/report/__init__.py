"""A study as sections of HTML that need no network: of a file of its own, or of the live page."""

from cbo_gym.study.report.page import sections, style, write_report

__all__ = ["sections", "style", "write_report"]
