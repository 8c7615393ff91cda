"""YAML files that would take much time or memory, and their errors."""


def nested_lines(line, count=8):
    """Return ``count`` lines, each of which holds the line before nine times."""
    return "a0: &a0 {k: 1}\n" + "".join(line.format(i=i, list=",".join([f"*a{i - 1}"] * 9)) for i in range(1, count))


BOMBS = {
    "aliases": (
        nested_lines("a{i}: &a{i} [{list}]\n"),
        "line 6: with its aliases written out .* more than 30000 parts",
    ),
    "merge keys": (nested_lines("a{i}: &a{i} {{<<: [{list}]}}\n"), "line 6: with its aliases .* more than 30000 parts"),
    "an alias of itself": ("a: &a [*a]", "line 1: an alias of a part that contains it"),
    "a chain of aliases": (
        "- &a0 [x]\n" + "".join(f"- &a{i} [*a{i - 1}]\n" for i in range(1, 5000)),
        "line 50: nested more than 50 deep",
    ),
    "brackets": ("[" * 400_000, "line 1: nested more than 50 deep"),
    "braces": ("{a: " * 50_000, "line 1: nested more than 50 deep"),
    "dashes": ("- " * 50_000 + "a", "line 1: nested more than 50 deep"),
    "a large file": ("#" + "x" * 5_000_000, "larger than 500000 bytes"),
    "many parts": ("a: [" + "[]," * 100_000 + "]", "line 1: the file holds more than 30000 parts"),
    "a long text": ("\na: " + "x" * 300_000, "line 2: a string of 300000 characters"),
    "a long number": ("a: " + "9" * 5000, "line 1: a number of 5000 digits; at most 100"),
    "a number in base 16": ("a: 0x" + "f" * 9000, "line 1: a number of 9002 digits"),
    "a key twice": ("a: 1\nb: {c: 1,\n c: 2}", "line 3: the key 'c' comes twice, first in line 2"),
    "a list as a key": ("[a]: 1", "line 1: a key that is a list"),
    "code": ("a: !!python/object/apply:os.system [ls]", "line 1: the tag .* not allowed"),
    "a tag": ("a: !!int ''", "line 1: the tag .* not allowed"),
    "no text": ("a: \0", "control characters are not allowed"),
    "two documents": ("a: 1\n---\nb: 2", "line 2: but found another document"),
    "an open list": ("a: [1\nb: 2", "line 1: while parsing a flow sequence; line 2: did not find"),
}
