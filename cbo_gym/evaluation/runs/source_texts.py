"""Source texts as far as runs hang on them: what they mean, and what they name.

To read all texts of the package takes over a second. So what was read is kept beside Python's own compiled files, by
the hashes of the texts, and is as dispensable as these.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

from cbo_gym.errors import OperationError
from cbo_gym.evaluation.runs import meaning
from cbo_gym.files import write_text

PACKAGE = "cbo_gym"
PATH = re.compile(rf"({PACKAGE}(?:\.\w+)+)(?::[\w.]+)?")  # of a module, or of something in it
AGENT = re.compile(r"[A-Z][\w-]{1,39}")  # what an agent may be called
FILE = re.compile(r"\w[\w.-]*\.(?:ya?ml|json|csv|npz)")


class Source(NamedTuple):
    """A text, as far as runs hang on it.

    Attributes:
        meaning: its fingerprint.
        imports: what it names of the package: modules, or things in modules, ``"cbo_gym.task.Task"``.
        names: its texts that may be agents' names.
        files: its texts that may be files' names.
    """

    meaning: str
    imports: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def source(content: bytes) -> Source:
    """What the content of a file of Python is; one that is half-written means what its bytes are, and names nothing."""
    key, known = hashlib.sha256(content).hexdigest(), _known()
    if key not in known:
        try:
            known[key] = _read(content.decode("utf-8"))
        except (SyntaxError, ValueError):  # it is being edited while a sweep plays on
            known[key] = Source(key)
        _new.append(key)
    return known[key]


def keep() -> None:
    """Write what was read in this process to where compiled files are kept, if Python may write these."""
    if _new and not sys.dont_write_bytecode:
        _new.clear()
        try:
            write_text(_path(), json.dumps(_known()))
        except OperationError:  # a folder that may not be written: then texts are read anew
            return


_new: list[str] = []  # keys of what was read and is not kept yet


@cache
def _known() -> dict[str, Source]:
    """What is known of texts, by their hashes."""
    try:
        held = json.loads(_path().read_text(encoding="utf-8"))
        return {key: Source(means, *map(tuple, lists)) for key, (means, *lists) in held.items()}
    except (OSError, ValueError, TypeError):  # there is none yet, or it is damaged
        return {}


def _path() -> Path:
    """Of what is kept, by this version of what reads."""
    readers = b"".join(Path(str(file)).read_bytes() for file in (__file__, meaning.__file__))
    return Path(cache_from_source(__file__)).with_name(f"texts-{hashlib.sha256(readers).hexdigest()[:12]}.json")


def _read(text: str) -> Source:
    tree = meaning.syntax_tree(text)
    imports, texts = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    imports |= {found[1] for found in map(PATH.fullmatch, texts) if found}
    own = (name for name in imports if f"{name}.".startswith(f"{PACKAGE}."))
    fitting = (tuple(sorted(filter(pattern.fullmatch, texts))) for pattern in (AGENT, FILE))
    return Source(meaning.meaning_of(tree), tuple(sorted(own)), *fitting)
