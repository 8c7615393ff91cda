"""Colour, dash and marker of each agent in all figures and pages, and short forms of its label.

Colours are those of Okabe & Ito (2008, Color Universal Design) without black and yellow, the purple of Tol's bright
scheme (2021, SRON/EPS/TN/09-002), a violet and a brown. With each of the three colour vision deficiencies any two
colours are at least 16 apart in CIELAB, and each contrasts with white and with dark paper. After nine agents colours
repeat, with other dashes and markers.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.errors import printable

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#AA3377", "#7A5CFA", "#8B5E3C")
GREY = "#777777"
# Lengths of strokes and gaps in widths of the line; empty for a solid line.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.8), (5, 1.8, 1.2, 1.8), (1.2, 1.6))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Agent whose lines are grey.
BASELINE = "Random"
ELLIPSIS = "…"
# Largest length of a file's name without its suffix; file systems allow 255 bytes.
MAX_FILE_NAME = 100


@dataclass(frozen=True)
class LineStyle:
    """Colour as ``#RRGGBB``, dash from :data:`DASHES`, and marker of Matplotlib."""

    colour: str
    dash: tuple[float, ...]
    marker: str

    @property
    def linestyle(self) -> tuple[int, tuple[float, ...] | None]:
        """Dash in Matplotlib's form."""
        return 0, self.dash or None

    @property
    def plot_arguments(self) -> dict[str, Any]:
        """Arguments of Matplotlib's ``plot``."""
        return {"color": self.colour, "linestyle": self.linestyle, "marker": self.marker}


def line_styles(labels: Iterable[str]) -> dict[str, LineStyle]:
    """Return the style of each agent.

    Agents of the zoo have a fixed style, independent of the other agents: Random is grey, and agents of one mode differ
    in colour, because ``pyproject.toml`` lists them in an order that keeps them apart. Third-party agents take the
    least used colours, in the order of their names. Labels of an agent with different parameters share its colour, and
    differ in dash and marker.

    Args:
        labels: labels of all agents of a report, with parameters.
    """
    distinct = set(labels)
    indices = _colour_indices({bare_name(label) for label in distinct})
    # Labels without parameters come first, so that no label with parameters takes the style of another agent.
    ordered = sorted(distinct, key=lambda label: (label != bare_name(label), indices[bare_name(label)], label))
    styles: dict[str, LineStyle] = {}
    for label in ordered:
        styles_of_colour = list(_styles_of_colour(bare_name(label), indices[bare_name(label)]))
        taken = set(styles.values())
        styles[label] = next((style for style in styles_of_colour if style not in taken), styles_of_colour[0])
    return styles


def line_style(index: int) -> LineStyle:
    """Return the style of a line that is not an agent's, by its index among the lines of a figure."""
    return next(_styles_of_colour("", index))


def _colour_indices(names: set[str]) -> dict[str, int]:
    """Return name -> index of its style: its position in the zoo; for others, one with the least used colour."""
    known = [name for name in zoo() if name != BASELINE]
    indices = {name: index for index, name in enumerate(known) if name in names} | {BASELINE: -1}
    used = Counter(index % len(COLOURS) for index in indices.values() if index >= 0)
    for name in sorted(names - indices.keys()):
        colour = min(range(len(COLOURS)), key=lambda index: (used[index], index))
        indices[name] = colour + len(COLOURS) * used[colour]
        used[colour] += 1
    return indices


def _styles_of_colour(name: str, index: int) -> Iterator[LineStyle]:
    """Yield all styles of one colour, the agent's own first."""
    colour = GREY if name == BASELINE else COLOURS[index % len(COLOURS)]
    repetition, colour_index = divmod(index, len(COLOURS))
    # Agents with the same colour and dash differ in marker: the term after the product moves on when dashes repeat.
    first_marker = colour_index + 2 * repetition + repetition // len(DASHES)
    for step in range(len(DASHES) * len(MARKERS)):
        marker = MARKERS[(first_marker + step + step // len(MARKERS)) % len(MARKERS)]
        yield LineStyle(colour, DASHES[(repetition + step) % len(DASHES)], marker)


def for_figure(label: str) -> str:
    r"""Escape a label for Matplotlib, where ``$`` would start a formula and a leading ``_`` would hide the label."""
    literal = printable(label).replace("$", r"\$")
    return f"\N{HAIR SPACE}{literal}" if literal.startswith("_") else literal


def shorten(labels: Iterable[str], width: int) -> dict[str, str]:
    """Return label -> short form of at most ``width`` printable characters, with an ellipsis where it is cut.

    Different labels have different forms: forms that would be equal end with a number.

    Args:
        labels: labels that are shown together; repetitions are ignored.
        width: at least 12.
    """
    distinct = sorted(set(labels))
    short = {label: _cut(printable(label), width) for label in distinct}
    counts = Counter(short.values())
    numbers: Counter[str] = Counter()
    for label in distinct:
        if counts[name := short[label]] > 1:
            numbers[name] += 1
            end = f" #{numbers[name]}"
            short[label] = f"{name[: width - len(end)]}{end}"
    return short


def _cut(label: str, width: int) -> str:
    """Keep the beginning and the end of a long label, because parameters differ at the end."""
    if len(label) <= width:
        return label
    beginning = (width - 1) // 2
    return f"{label[:beginning]}{ELLIPSIS}{label[len(label) - (width - 1 - beginning) :]}"


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """Return label -> name of letters, digits and ``-``, which is safe in a file system, URL, shell and LaTeX.

    A hash of the label is appended if names would be equal, too long or empty.
    """
    distinct = sorted(set(labels))
    # A horizon, "T=200", becomes "T200".
    names = {label: re.sub(r"[^A-Za-z0-9]+", "-", re.sub(r"\bT=", "T", label)).strip("-") for label in distinct}
    # Some file systems ignore case.
    counts = Counter(name.lower() for name in names.values())
    for label, name in names.items():
        if counts[name.lower()] > 1 or not 0 < len(name) <= MAX_FILE_NAME:
            ending = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            names[label] = f"{name[: MAX_FILE_NAME - 9]}-{ending}".lstrip("-")
    return names
