"""What the package says about itself says it alike everywhere."""

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml

import cbo_gym
from cbo_gym.envs.registry import entries
from website.commands.release import release_files

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere(pyproject, citation):
    assert "version" in pyproject["project"]["dynamic"]
    source = (ROOT / pyproject["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert f'__version__ = "{cbo_gym.__version__}"' in source
    newest = re.search(r"^## \[?(\d[^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert citation["version"] == newest[1] == cbo_gym.__version__


def test_the_licence_is_named_and_carried(pyproject, citation):
    project = pyproject["project"]
    assert project["license"] == citation["license"] == "MIT"
    (name,) = project["license-files"]
    assert (ROOT / name).read_text(encoding="utf-8").startswith("MIT License")
    assert not [each for each in project["classifiers"] if each.startswith("License ::")]  # PEP 639: not beside it


def test_no_library_is_required_twice(pyproject):
    names = [re.match(r"[\w.-]+", each)[0].lower() for each in pyproject["project"]["dependencies"]]
    assert len(set(names)) == len(names)


def test_the_citation_lists_the_papers_of_every_method_and_benchmark(citation):
    cited = {re.sub(r"\W+", " ", one["title"]).strip().lower() for one in citation["references"]}
    numbers = re.findall(r"arXiv:([\d.]+)", str(citation["references"]))
    named = {}
    for page in sorted((ROOT / "docs" / "methods").glob("*.md")):
        paper = re.search(r"## Paper\n(.*?)\n## ", page.read_text(encoding="utf-8"), re.DOTALL)
        named[page.stem] = re.sub(r"`[^`]*`", "", " ".join(paper[1].split())) if paper else ""
    missing = [
        f"{agent}: {title}"
        for agent, content in named.items()
        for title in re.findall(r'"([^"]+)"', content)
        if re.sub(r"\W+", " ", title).strip().lower() not in cited and "consistent extension" not in title
    ]
    assert missing == []
    arxiv = {number for content in named.values() for number in re.findall(r"arxiv.org/abs/([\d.]+\d)", content)}
    assert arxiv <= set(numbers)


def test_every_benchmarks_paper_is_cited(citation):
    """The registry names papers by their authors, or says that there is none."""
    first = {one["authors"][0]["family-names"] for one in citation["references"]} | {"none"}
    unknown = {entry.id: entry.paper for entry in entries() if re.match(r"[\w-]+", entry.paper)[0] not in first}
    assert unknown == {}, "add the reference to CITATION.cff, and begin `paper` with its first author; or write `none`"


def test_a_release_writes_its_date_and_address_everywhere():
    found = release_files(ROOT, "https://example.org/owner/cbo-gym", date(2026, 12, 1))
    strings = {path.name: content for path, content in found.items()}
    assert (
        tomllib.loads(strings["pyproject.toml"])["project"]["urls"]["Repository"] == "https://example.org/owner/cbo-gym"
    )
    assert yaml.safe_load(strings["CITATION.cff"])["date-released"] == date(2026, 12, 1)
    assert "(2026-12-01)" in strings["CHANGELOG.md"]
    assert "git clone https://example.org/owner/cbo-gym cbo-gym" in strings["README.md"]
    assert 'PACKAGE_SOURCE = "cbo-gym"' in strings["errors.py"]
    with pytest.raises(ValueError, match="must be like https"):
        release_files(ROOT, "owner/cbo-gym", date(2026, 12, 1))


def test_the_readme_is_short_and_its_links_lead_somewhere():
    content = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(content.split()) <= 1300
    pictures = re.findall(r"\]\((docs/pictures/[^)]+)\)", content)
    assert 0 < sum((ROOT / path).stat().st_size for path in pictures) <= 400_000
    links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", content)
    assert [link for link in links if not (ROOT / link).exists()] == []
