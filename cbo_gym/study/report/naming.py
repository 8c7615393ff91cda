"""How a study's variables and actions are called in its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cbo_gym.study.report.markup import number
from cbo_gym.study.study import Study


def with_unit(study: Study, name: str) -> str:
    """``feed [g/h]``."""
    return f"{name} [{study.about.units[name]}]" if name in study.about.units else name


def choice_name(study: Study, index: int) -> str:
    """A set or scope of the study: ``{feed, ph}``."""
    codec = study.feedback.codec
    return codec.choices[index] if getattr(codec, "sets", ("",))[index] else "nothing set, only observe"


def action_words(study: Study, done: Mapping[str, Any]) -> str:
    """``ph = 6.8, feed = 2.1 g/h``; nothing is set to only observe."""
    parts = [f"{name} = {number(value)} {study.about.units.get(name, '')}".rstrip() for name, value in done.items()]
    return ", ".join(parts) or "nothing set"
