"""One agent, one look: the colour, dash and marker that every figure and page gives it, and its name shown in short.

Colours are Okabe & Ito's (2008, Color Universal Design) without black and yellow, the purple of Tol's bright scheme
(2021, SRON/EPS/TN/09-002), a violet and a brown. To eyes with any of the three colour vision deficiencies two of them
are at least 16 apart in CIELAB, and each stands out from white and from dark paper alike. Colours repeat after nine
agents, so that dashes and markers tell what shares one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cbo_gym.agents.zoo import zoo
from cbo_gym.errors import printable
from cbo_gym.labels import bare_name

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#AA3377", "#7A5CFA", "#8B5E3C")
GREY = "#777777"
#: lengths of strokes and gaps in widths of the line; none for a solid line
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.8), (5, 1.8, 1.2, 1.8), (1.2, 1.6))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BASELINE = "Random"
ELLIPSIS = "…"
LONGEST_FILE_NAME = 100  # characters, without the suffix; file systems allow 255 bytes


@dataclass(frozen=True)
class Look:
    """A colour as ``#RRGGBB``, a dash from :data:`DASHES`, and a marker of Matplotlib's."""

    colour: str
    dash: tuple[float, ...]
    marker: str

    @property
    def linestyle(self) -> tuple[int, tuple[float, ...] | None]:
        """The dash as Matplotlib takes it."""
        return 0, self.dash or None

    @property
    def of_line(self) -> dict[str, Any]:
        """Arguments of Matplotlib's plot."""
        return {"color": self.colour, "linestyle": self.linestyle, "marker": self.marker}


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """The look of each agent.

    Agents of the zoo have theirs by their place in its list, whoever else is shown: Random is grey, and those that play
    the same mode stand together and differ in colour. Agents of your own take the colours that are left, in the order
    of their names. Variants of an agent, told by parameters, share its colour and differ in dash and marker.

    Args:
        labels: of all agents of a report, parameters included.
    """
    distinct = set(labels)
    places = _places({bare_name(label) for label in distinct})
    # agents as they come first, so that a variant never takes the look of another agent
    ordered = sorted(distinct, key=lambda label: (label != bare_name(label), places[bare_name(label)], label))
    found: dict[str, Look] = {}
    for label in ordered:
        possible = list(_possible(bare_name(label), places[bare_name(label)]))
        taken = set(found.values())
        found[label] = next((look for look in possible if look not in taken), possible[0])
    return found


def of_place(place: int) -> Look:
    """The look of what is not an agent, by its place from 0 among the lines of a figure."""
    return next(_possible("", place))


def _places(names: set[str]) -> dict[str, int]:
    """Places that colours follow from: in the zoo's list; for others those whose colours are used least."""
    known = [name for name in zoo() if name != BASELINE]
    places = {name: place for place, name in enumerate(known) if name in names} | {BASELINE: -1}
    used = Counter(place % len(COLOURS) for place in places.values() if place >= 0)
    for name in sorted(names - places.keys()):
        colour = min(range(len(COLOURS)), key=lambda place: (used[place], place))
        places[name] = colour + len(COLOURS) * used[colour]
        used[colour] += 1
    return places


def _possible(name: str, place: int) -> Iterator[Look]:
    """All looks of one colour, the agent's own first."""
    colour = GREY if name == BASELINE else COLOURS[place % len(COLOURS)]
    tier, column = divmod(place, len(COLOURS))
    # a variant's marker is not that of the agent with its colour and dash, nor one agent's that of another
    first = column + 2 * tier + tier // len(DASHES)
    for step in range(len(DASHES) * len(MARKERS)):
        marker = MARKERS[(first + step + step // len(MARKERS)) % len(MARKERS)]
        yield Look(colour, DASHES[(tier + step) % len(DASHES)], marker)


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
