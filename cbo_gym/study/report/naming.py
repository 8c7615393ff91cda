"""How a study's variables and actions are called in its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbo_gym.study.report.markup import number
from cbo_gym.study.study import Study


def with_unit(study: Study, name: str) -> str:
    """``feed [g/h]``."""
    return f"{name} [{study.about.units[name]}]" if name in study.about.units else name


def action_words(study: Study, done: Mapping[str, Any]) -> str:
    """``ph = 6.8, feed = 2.1 g/h``; nothing set is to only observe."""
    parts = [f"{name} = {number(value)} {study.about.units.get(name, '')}".rstrip() for name, value in done.items()]
    return ", ".join(parts) or "nothing, only observe"
