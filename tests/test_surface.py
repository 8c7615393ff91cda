"""The stable surface: its names and parameters are those of the committed list."""

import inspect
import re
from functools import partial
from importlib import import_module
from pathlib import Path

from website.pages import surface

ROOT = Path(__file__).parents[1]


def test_the_list_is_as_the_code_is():
    """A line that is gone, or a parameter that is gone or needed now, is a broken promise."""
    how = "see docs/guide/stability.md, How something goes; for new names and parameters run make surface"
    assert surface.listing() == surface.LIST.read_text(encoding="utf-8"), how


def test_what_is_offered_is_documented():
    bare = [
        f"{module}.{name}"
        for module in surface.modules()
        for name in surface.names(module)
        if callable(thing := getattr(import_module(module), name)) and not inspect.getdoc(thing)
    ]
    assert bare == []


def test_docstrings_begin_with_a_noun_or_a_verb():
    """Not with a riddle: "What a round costs" is the cost of a round."""
    things = [
        thing
        for module in surface.modules()
        for one in map(partial(getattr, import_module(module)), surface.names(module))
        for thing in (one, *(vars(one).values() if inspect.isclass(one) else ()))
        if getattr(thing, "__module__", "").startswith("cbo_gym")
    ]
    assert things
    assert [thing for thing in things if (inspect.getdoc(thing) or "").startswith("What ")] == []


def test_the_guide_lists_the_modules():
    page = (ROOT / "docs" / "guide" / "stability.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\.\./api/([\w.]+)\.md", page)) == set(surface.modules())


def test_the_page_of_a_module_begins_with_a_table_of_its_names():
    page = surface.page("cbo_gym.evaluation")
    assert "| [`evaluate`](#evaluate) | Let an agent play one experiment and score it. |" in page.partition("\n## ")[0]
    names = surface.names("cbo_gym.evaluation")
    assert re.findall(r"^## (\w+) ", page, re.MULTILINE) == re.findall(r"\(#(\w+)\)", page) == names


def test_what_is_deprecated_says_when_it_goes_and_what_to_use():
    """The policy, on all that bears the mark."""
    for module in surface.modules():
        for name in surface.names(module):
            said = getattr(getattr(import_module(module), name), "__deprecated__", None)
            assert said is None or re.fullmatch(r"since \d+\.\d+, goes in \d+\.\d+: use .+", said), f"{module}.{name}"
