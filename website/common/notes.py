"""Sentences that the generated pages show, from ``docs/notes.yaml``."""

from functools import cache
from typing import Any

from cbo_gym._util.yaml import read_yaml
from website.common.paths import DOCS


@cache
def note(name: str, **values: Any) -> str:
    """Return a note, in which names in braces are replaced by other notes and by ``values``."""
    notes = read_yaml(DOCS / "notes.yaml")
    return notes[name].format(**notes, **values)
