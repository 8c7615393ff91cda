"""Sentences that the generated pages show, from ``docs/notes.yaml``."""

from functools import cache
from typing import Any

from cbo_gym._util.yaml import read_yaml
from website.common.paths import DOCS


@cache
def note(name: str, **values: Any) -> str:
    """Return a note, with other notes and these values in place of their names in braces."""
    notes = read_yaml(DOCS / "notes.yaml")
    return notes[name].format(**notes, **values)
