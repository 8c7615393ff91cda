"""What the package says about itself says it alike everywhere."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import cbo_gym

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_build_reads_the_version_where_python_does(pyproject):
    assert "version" in pyproject["project"]["dynamic"]
    source = (ROOT / pyproject["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'__version__ = "{cbo_gym.__version__}"' in source


def test_the_citation_is_of_this_version(citation):
    assert citation["version"] == cbo_gym.__version__


def test_the_newest_entry_of_the_changelog_is_of_this_version():
    newest = re.search(r"^## \[?(\d[^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest
    assert newest[1] == cbo_gym.__version__


def test_the_licence_is_named_and_carried(pyproject, citation):
    project = pyproject["project"]
    assert project["license"] == citation["license"] == "MIT"
    (name,) = project["license-files"]
    assert (ROOT / name).read_text(encoding="utf-8").startswith("MIT License")
    assert not [each for each in project["classifiers"] if each.startswith("License ::")]  # PEP 639: not beside it


def test_no_library_is_required_twice(pyproject):
    names = [re.match(r"[\w.-]+", each)[0].lower() for each in pyproject["project"]["dependencies"]]
    assert len(set(names)) == len(names)
