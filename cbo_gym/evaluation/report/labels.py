"""Labels of agents and environments as they are shown: on one line, short where room is short, and told apart."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from cbo_gym.errors import printable

ELLIPSIS = "…"
LONGEST_FILE_NAME = 100  # characters, without the suffix; file systems allow 255 bytes


def for_figure(text: str) -> str:
    r"""The text for Matplotlib: ``$`` as itself, never as formulas; labels with a leading ``_`` stay in legends."""
    literal = printable(text).replace("$", r"\$")
    return f"\N{HAIR SPACE}{literal}" if literal.startswith("_") else literal


def shortened(labels: Iterable[str], width: int) -> dict[str, str]:
    """Every label in at most ``width`` characters, printable; what is left out is an ellipsis.

    Labels that differ stay different: those that would look alike have a number at their end.

    Args:
        labels: to show beside each other; repeated ones count once.
        width: at least 12.
    """
    distinct = sorted(set(labels))
    short = {label: _cut(printable(label), width) for label in distinct}
    counts = Counter(short.values())
    numbers: Counter[str] = Counter()
    for label in distinct:
        if counts[alike := short[label]] > 1:
            numbers[alike] += 1
            end = f" #{numbers[alike]}"
            short[label] = f"{alike[: width - len(end)]}{end}"
    return short


def _cut(text: str, width: int) -> str:
    """The beginning and the end of a long text: the end is where parameters differ."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - (width - 1 - head) :]}"


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """A name of letters, digits and ``-`` for each label: safe as a file, in an address, a shell and LaTeX.

    Where labels would get the same name, or one that is too long or empty, a hash of the label tells them apart.
    """
    distinct = sorted(set(labels))
    names = {label: re.sub(r"[^A-Za-z0-9]+", "-", re.sub(r"\bT=", "T", label)).strip("-") for label in distinct}
    counts = Counter(name.lower() for name in names.values())  # some file systems see no difference of case
    for label, name in names.items():
        if counts[name.lower()] > 1 or not 0 < len(name) <= LONGEST_FILE_NAME:
            ending = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            names[label] = f"{name[: LONGEST_FILE_NAME - 9]}-{ending}".lstrip("-")
    return names
