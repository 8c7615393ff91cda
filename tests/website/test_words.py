"""Names and prose avoid words that readers had to read twice; docs/glossary.md lists the terms of this package."""

import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
AVOIDED = re.compile(r"(?i)(?<![a-z])(told|untold|anew|somebody|whoever|nobody|handed)(?![a-z])")
STORED = {'"told"', "'told'"}  # the status of a trial in the databases of studies
# keys of the cards of submissions, and of trials in the documents of studies, may be "told"
KEYS_IN = {"submission.py", "links.py", "results.md", "trials.py"}
CODE = [
    path
    for folder in ("cbo_gym", "agents", "website", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not path.is_relative_to(ROOT / "cbo_gym" / "agents")
]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def apart(text):
    """Return a text with the words of its names apart."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text)


def words_of(path):
    """Return the names, strings and comments of a module, one per line, with the words of a name apart."""
    kinds = (tokenize.NAME, tokenize.STRING, tokenize.COMMENT)
    with path.open("rb") as file:
        kept = [token.string for token in tokenize.tokenize(file.readline) if token.type in kinds]
    return "\n".join(apart(token) for token in kept if token not in STORED)


def test_words_are_plain():
    found = {}
    for path in CODE + PAGES:
        text = path.read_text(encoding="utf-8")
        # Few modules need the tokenizer, which is slow.
        if path.suffix == ".py":
            text = words_of(path) if AVOIDED.search(apart(text)) else ""
        words = {word.lower() for word in AVOIDED.findall(text)} - ({"told"} if path.name in KEYS_IN else set())
        if words:
            found[str(path.relative_to(ROOT))] = words
    assert found == {}
