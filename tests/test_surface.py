"""The stable surface: its names and parameters are those of the committed list."""

import inspect
import re
from importlib import import_module
from pathlib import Path

from docs import surface

ROOT = Path(__file__).parents[1]


def test_the_surface_is_the_committed_list():
    """A line that is gone breaks a promise; new ones are added by ``python docs/surface.py``."""
    now, before = surface.text().splitlines(), surface.LIST.read_text(encoding="utf-8").splitlines()
    assert sorted(set(before) - set(now)) == [], "gone: see docs/guide/stability.md, How something goes"
    assert sorted(set(now) - set(before)) == [], "new: run python docs/surface.py"


def test_what_is_offered_is_documented():
    bare = [
        f"{module}.{name}"
        for module in surface.modules()
        for name in surface.names(module)
        if callable(thing := getattr(import_module(module), name)) and not inspect.getdoc(thing)
    ]
    assert bare == []


def test_the_guide_lists_the_modules():
    page = (ROOT / "docs" / "guide" / "stability.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\.\./api/([\w.]+)\.md", page)) == set(surface.modules())


def test_what_is_deprecated_says_when_it_goes_and_what_to_use():
    """The policy, on all that bears the mark."""
    for module in surface.modules():
        for name in surface.names(module):
            said = getattr(getattr(import_module(module), name), "__deprecated__", None)
            assert said is None or re.fullmatch(r"since \d+\.\d+, goes in \d+\.\d+: use .+", said), f"{module}.{name}"
