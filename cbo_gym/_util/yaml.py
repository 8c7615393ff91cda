"""Reader of YAML files that are not trusted: it bounds time and memory, and runs no code.

Tags are refused, and so are keys that come twice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

from cbo_gym.errors import ArgumentError

MAX_BYTES = 500_000
# Number of keys and values; lists and mappings count too, and each alias counts as a copy of its target.
MAX_NODES = 30_000
MAX_DEPTH = 50
# Part of the message of a parser whose own limit of depth is lower.
TOO_DEEP = "maximum nesting depth"
MAX_STRING = 10_000  # characters
MAX_NUMBER = 100  # characters

STRING, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
INTEGER, FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_NUMBERS = (INTEGER, FLOAT)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.2 (core schema, section 10.3.2), in which ``NO``, ``on``, ``12:30``, ``1_000`` and dates are strings."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _pattern, _first_characters in (
    ("tag:yaml.org,2002:bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    (INTEGER, "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        FLOAT,
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    (MERGE, "<<", "<"),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})\\Z"), list(_first_characters))


def _integer(_: Any, node: yaml.ScalarNode) -> int:
    bases = {"0o": 8, "0x": 16}
    return int(node.value, bases.get(node.value[:2], 10))


_Loader.add_constructor(INTEGER, _integer)


# The keys and indices that lead to a value.
KeyPath = tuple[str | int, ...]


class Lines:
    """The line in which each value of a file begins.

    Args:
        root: Root of the file's nodes; None for an empty file.
    """

    def __init__(self, root: yaml.Node | None) -> None:
        self._lines: dict[tuple[str, ...], int] = {}
        self._count = 0
        if root is not None:
            self._add(root, (), ())

    def _add(self, node: yaml.Node, keys: tuple[str, ...], parents: tuple[yaml.Node, ...]) -> None:
        """Check a node, and store the line of each key and item below it."""
        # Nodes below an alias have the lines of its target, which is earlier in the file: errors name the alias.
        line = max(ancestor.start_mark.line for ancestor in (*parents, node))
        self._count += 1
        if self._count > MAX_NODES:
            raise _refusal(line, f"with its aliases written out this holds more than {MAX_NODES} parts")
        if node in parents:
            raise _refusal(line, "an alias of a part that contains it")
        if len(parents) > MAX_DEPTH:
            raise _too_deep(line)
        children: list[tuple[str, yaml.Node, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            self._count += len(node.value)
            children = [(key.value, key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            children = [(str(number), item, item) for number, item in enumerate(node.value)]
        elif node.tag in _NUMBERS and len(node.value) > MAX_NUMBER:
            raise _refusal(line, f"a number of {len(node.value)} digits; at most {MAX_NUMBER} are allowed")
        for name, first_node, child in children:
            self._lines[*keys, name] = first_node.start_mark.line + 1
            self._add(child, (*keys, name), (*parents, node))

    def of(self, path: KeyPath) -> int | None:
        """Return the line of a value, or of its nearest parent that is in the file; None if there is none."""
        keys = tuple(map(str, path))
        lengths = range(len(keys), 0, -1)
        return next((self._lines[keys[:length]] for length in lengths if keys[:length] in self._lines), None)


def _check_keys(node: yaml.MappingNode) -> None:
    """Let all keys be strings, ``no`` and ``null`` too; refuse a key that comes twice, is a list or a mapping."""
    key_lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line
        if not isinstance(key, yaml.ScalarNode):
            raise _refusal(line, "a key that is a list or a mapping; keys are names")
        if key.value in key_lines:
            raise _refusal(line, f"the key {key.value!r} comes twice, first in line {key_lines[key.value] + 1}")
        key_lines[key.value] = line
        if key.tag != MERGE:
            key.tag = STRING


def read_yaml(path: Path) -> Any:
    """Return the contents of a YAML file.

    Raises:
        ArgumentError: if the file cannot be read or exceeds a limit. The message is one line and names the line of the
            file, but not the path, which callers add.
    """
    return read_yaml_with_lines(path)[0]


def read_yaml_with_lines(path: Path) -> tuple[Any, Lines]:
    """Return the contents of a YAML file, and the lines of its values; the errors are those of :func:`read_yaml`."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ArgumentError("it is a device or a pipe, which might never end; give a file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ArgumentError(str(error.strerror)) from error
    # The path is not valid.
    except ValueError as error:
        raise ArgumentError(str(error)) from error
    return parse_yaml(data)


def parse_yaml(data: bytes) -> tuple[Any, Lines]:
    """Return the contents of a YAML file, and the lines of its values, from the bytes of the file."""
    if len(data) > MAX_BYTES:
        raise ArgumentError(f"the file is larger than {MAX_BYTES} bytes, the most that is read")
    try:
        _check_events(data)
        return _construct(data)
    except yaml.MarkedYAMLError as error:
        if TOO_DEEP in (error.problem or "") and error.problem_mark:
            raise _too_deep(error.problem_mark.line) from error
        messages = [(error.context, error.context_mark), (error.problem, error.problem_mark)]
        lines = [f"line {mark.line + 1}: {message}" for message, mark in messages if message and mark]
        raise ArgumentError("; ".join(lines) or str(error.problem)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(" ".join(str(error).split())) from error


def _check_events(data: bytes) -> None:
    """Raise an error for a file that exceeds a limit or has a tag, before any object is built."""
    depth = 0
    for count, event in enumerate(yaml.parse(data, Loader=_Loader)):
        line = event.start_mark.line if event.start_mark else 0
        if count > MAX_NODES:
            raise _refusal(line, f"the file holds more than {MAX_NODES} parts")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(line)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_STRING:
            raise _refusal(line, f"a string of {len(event.value)} characters; at most {MAX_STRING} are allowed")
        if tag := getattr(event, "tag", None):
            raise _refusal(line, f"the tag {tag!r}; tags are not allowed, leave it out")


def _construct(data: bytes) -> tuple[Any, Lines]:
    loader = _Loader(data)
    try:
        root = loader.get_single_node()
        lines = Lines(root)
        return None if root is None else loader.construct_document(root), lines
    finally:
        loader.dispose()


def _too_deep(line: int) -> ArgumentError:
    return _refusal(line, f"nested more than {MAX_DEPTH} deep")


def _refusal(line: int, message: str) -> ArgumentError:
    """Return the error for a line, counted from 0."""
    return ArgumentError(f"line {line + 1}: {message}")
