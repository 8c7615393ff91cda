"""Reads untrusted YAML files in bounded time and memory, without running code. A repeated key is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import yaml

from cbo_gym.errors import ArgumentError

MAX_BYTES = 500_000
# Number of keys and values, lists and mappings included. Each alias counts as a copy of its target.
MAX_NODES = 30_000
MAX_DEPTH = 50
# Part of the error message of a YAML parser that has its own limit of depth.
TOO_DEEP = "maximum nesting depth"
MAX_STRING = 10_000  # characters
MAX_NUMBER = 100  # characters

STRING, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
INTEGER, FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_NUMBERS = (INTEGER, FLOAT)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.2 (core schema, section 10.3.2), in which ``NO``, ``on``, ``12:30``, ``1_000`` and dates are strings."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _tag, _pattern, _first in (
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
    _Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})\\Z"), list(_first))


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
        if root is not None:
            self._add(root, ())

    def _add(self, node: yaml.Node, keys: tuple[str, ...]) -> None:
        """Store the line of each key and item below a node; below an alias, the lines of its target."""
        if isinstance(node, yaml.MappingNode):
            children = [(key.value, key, value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            children = [(str(number), item, item) for number, item in enumerate(node.value)]
        else:
            return
        for name, start, child in children:
            self._lines[*keys, name] = start.start_mark.line + 1
            self._add(child, (*keys, name))

    def of(self, path: KeyPath) -> int | None:
        """Return the line of a value, or of its nearest parent in the file; None if the file has neither."""
        keys = tuple(map(str, path))
        lengths = range(len(keys), 0, -1)
        return next((self._lines[keys[:length]] for length in lengths if keys[:length] in self._lines), None)


def read_yaml(path: Path) -> Any:
    """Return the contents of a YAML file.

    Raises:
        ArgumentError: if the file cannot be read or exceeds a limit. The message is one line and names the line of the
            file, but not the path, which callers add.
    """
    return read_yaml_with_lines(path)[0]


def read_yaml_with_lines(path: Path) -> tuple[Any, Lines]:
    """Return the contents of a YAML file, and the lines of its values; raise as :func:`read_yaml` does."""
    try:
        may_be_endless = path.exists() and not (path.is_file() or path.is_dir())
        data = b""
        if not may_be_endless:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ArgumentError(str(error.strerror)) from error
    # The path is not valid.
    except ValueError as error:
        raise ArgumentError(str(error)) from error
    if may_be_endless:
        raise ArgumentError("it is a device or a pipe, which might never end; give a file")
    return parse_yaml(data)


def parse_yaml(data: bytes) -> tuple[Any, Lines]:
    """Return the values of a YAML file, and the lines in which they begin; raise as :func:`read_yaml` does."""
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
        if root is None:
            return None, Lines(None)
        _Measure().of(root)
        lines = Lines(root)
        return loader.construct_document(root), lines
    finally:
        loader.dispose()


class _Measure:
    """Sizes and depths of nodes; each alias counts as a copy of its target."""

    def __init__(self) -> None:
        # None for a node whose children are being measured.
        self._sizes: dict[yaml.Node, tuple[int, int] | None] = {}

    def of(self, node: yaml.Node) -> tuple[int, int]:
        """Return the number of nodes in and below a node, and their depth.

        The target of an alias comes earlier in the file and is already measured. The recursion is therefore no deeper
        than the file is nested.
        """
        line = node.start_mark.line
        if node in self._sizes:
            size_and_depth = self._sizes[node]
            if size_and_depth is None:
                raise _refusal(line, "an alias of a part that contains it")
            return size_and_depth
        self._sizes[node] = None
        children = [self.of(child) for child in _children(node)]
        size, depth = 1 + sum(size for size, _ in children), 1 + max((depth for _, depth in children), default=0)
        if size > MAX_NODES:
            raise _refusal(line, f"with its aliases written out this holds more than {MAX_NODES} parts")
        if depth > MAX_DEPTH:
            raise _too_deep(line)
        self._sizes[node] = size, depth
        return size, depth


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    """Check a node, and yield its children. Keys become strings, ``no`` and ``null`` too."""
    if isinstance(node, yaml.MappingNode):
        key_lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line
            if not isinstance(key, yaml.ScalarNode):
                raise _refusal(line, "a key that is a list or a mapping; keys are names")
            if key.value in key_lines:
                raise _refusal(line, f"the key {key.value!r} comes twice, first in line {key_lines[key.value] + 1}")
            key_lines[key.value] = line
            if key.tag != MERGE:
                key.tag = STRING
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif node.tag in _NUMBERS and len(node.value) > MAX_NUMBER:
        raise _refusal(node.start_mark.line, f"a number of {len(node.value)} digits; at most {MAX_NUMBER} are allowed")


def _too_deep(line: int) -> ArgumentError:
    return _refusal(line, f"nested more than {MAX_DEPTH} deep")


def _refusal(line: int, message: str) -> ArgumentError:
    """Return the error for a line, counted from 0."""
    return ArgumentError(f"line {line + 1}: {message}")
