"""What can change a run: the modules of this package that its agent and its environment import while they play.

They are found in the texts, without running any, from the modules in which an agent or a problem is defined:

* every import counts, at the top of a module or within a function, but for ``if TYPE_CHECKING:``; so do the packages
  that a module lies in, whose ``__init__`` runs first;
* a text that is a module's name, ``"cbo_gym.agents.networks.mcbo"`` or ``"cbo_gym.later:Later"``, counts as an import
  of it, and within ``cbo_gym.agents`` a text that is an agent's published name, for so what is chosen later is named;
* a text that is the name of a file in the module's folder stands for this file's bytes;
* nothing is followed into :data:`NOT_AT_PLAY`.

What a module means is told by :mod:`cbo_gym.evaluation.runs.meaning`.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from cbo_gym.agents.zoo import zoo
from cbo_gym.errors import OperationError
from cbo_gym.evaluation.runs.meaning import DIGITS
from cbo_gym.evaluation.runs.source_texts import PACKAGE, Source, keep, source

ROOM = f"{PACKAGE}.agents"
#: Parts of the package that are imported where a run is played and have no part in it: facades, whose imports are of
#: whoever asks; what finds agents and environments, of which what is found counts; words of errors; pictures; how
#: processes are kept apart and talk; how runs are planned, kept and shown. Of the evaluator counts :data:`PLAYS`.
NOT_AT_PLAY = frozenset(
    f"{PACKAGE}.{name}"
    for name in (
        "agent_cards", "agent_finder", "channel", "closed", "drawing", "envs.picture", "envs.rendering", "envs.vector",
        "errors", "evaluation", "exchange", "files", "labels", "later", "notebook", "plain", "player", "progress",
        "registry", "seed_ranges", "specs", "suites", "validation", "version", "yaml_files", "agents.zoo",
    )
)  # fmt: skip
FACADES = frozenset({PACKAGE, ROOM})
#: what plays and scores every run, whatever its agent and environment
PLAYS = tuple(
    f"{PACKAGE}.evaluation.{name}" for name in ("play.runner", "play.playing", "play.blind", "metrics.regret")
)


def at_play(roots: Iterable[str]) -> frozenset[str]:
    """The modules of the package that are imported at play.

    Args:
        roots: modules of it; each counts, even one of those that are not followed into.

    Raises:
        OperationError: if one is not there.
    """
    found: set[str] = set()
    waiting = list(roots)
    for root in waiting:
        if root not in modules():
            raise OperationError(f"there is no module {root} in {_folder()}; is the installation whole?")
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _followed(name)
    return frozenset(found)


def stamp_at_play(roots: Iterable[str]) -> str:
    """A fingerprint of the modules that are imported at play, and of the files that they read; raises as they do."""
    digest = hashlib.sha256()
    for name in sorted(at_play(roots)):
        told = source_of(name)
        digest.update(f"{name}\0{told.meaning}\0".encode())
        for path in _beside(name, told):
            content = path.read_bytes()
            digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    keep()
    return digest.hexdigest()[:DIGITS]


@cache
def modules() -> dict[str, Path]:
    """All modules of the package and their files; folders that are links included."""
    top, found = _folder(), {}
    for folder, _, names in os.walk(top, followlinks=True):
        for path in (Path(folder, name) for name in names if name.endswith(".py") and not name.startswith(".")):
            parts = path.relative_to(top).with_suffix("").parts
            if path.is_file():  # editors leave links to nothing
                found[".".join((PACKAGE, *(part for part in parts if part != "__init__")))] = path
    return found


@cache
def source_of(name: str) -> Source:
    """What a module's text is, for runs."""
    return source(modules()[name].read_bytes())


def forget_texts() -> None:
    """Read the files anew when they are asked for next."""
    for what in (modules, source_of, _followed):
        what.cache_clear()


def _folder() -> Path:
    return Path(str(sys.modules[PACKAGE].__file__)).parent


@cache
def _followed(name: str) -> tuple[str, ...]:
    """What a module leads to."""
    told = source_of(name)
    parents = [name[:place] for place in range(len(name)) if name[place] == "."]
    named = [zoo()[text].partition(":")[0] for text in told.names if text in zoo()] if _within(name, [ROOM]) else []
    led = (one if one in modules() else one.rpartition(".")[0] for one in (*parents, *told.imports, *named))
    return tuple(one for one in dict.fromkeys(led) if one in modules() and _counts(one))


def _counts(name: str) -> bool:
    return name in PLAYS or not (name in FACADES or _within(name, NOT_AT_PLAY))


def _within(name: str, parts: Iterable[str]) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def _beside(name: str, told: Source) -> Iterator[Path]:
    folder = modules()[name].parent
    return (path for path in (folder / file for file in told.files) if path.is_file())
