"""The code of the README, the guide and the tutorials, run; and the pages that are written from the agents' code."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from cbo_gym import task
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.cli import app
from cbo_gym.envs.registry import find_entry
from website.common.agents import DocumentedAgent
from website.pages import agents, code_blocks
from website.pages.agent_results import results

ROOT = Path(__file__).parent.parent
GUIDE, TUTORIALS = (sorted((ROOT / "docs" / folder).glob("*.md")) for folder in ("guide", "tutorials"))
OTHERS = [ROOT / "docs" / f"{name}.md" for name in ("index", "install", "how_it_works", "faq", "which_method")]
PAGES = [ROOT / "README.md", *OTHERS, *GUIDE, *TUTORIALS]
RUN = [
    page for page in PAGES if page.stem != "recipes"
]  # tests/test_recipes.py plays its files, in a copy of the package
LONG = ("libraries", "trained_policies")  # training and searches of other libraries
SWEEP = "a sweep starts processes; the tests of the command line run one"
MINUTES = "it takes minutes"
WRITER = "torch's writer needs the package tensorboard; a test of its own runs it"
FEWER_ROUNDS = {"horizon=30": "horizon=3", "horizon=20": "horizon=3", "learn(8_000)": "learn(512)"}
NOT_RUN = {
    "first_agent": [SWEEP],
    "apparatus": ["it needs an account"],
    "leaderboard": [SWEEP],
    "studies": [MINUTES],
    "study_dosing": [MINUTES],
    "study_service": [MINUTES],
    "study_spreadsheet": ["it runs until you stop it"],
    "evaluation": [WRITER, "it needs an account"],
    "trained_policies": ["it needs moviepy"],
}  # what pages say of blocks that are not run


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page in TUTORIALS or page.stem in LONG))
        for page in RUN
    ],
)
def test_the_code_of_a_page_runs(page, tmp_path, request):
    """In the README and the guide the Python alone: their commands are examples with names of the reader's own.

    Tutorials, commands and all, run whenever the site is built, which an error in one ends.
    """
    if page.stem != "gaussian_processes":  # it checks what a fit finds
        request.getfixturevalue("coarse_search")
    tutorial, content = page in TUTORIALS, page.read_text()
    for whole, part in FEWER_ROUNDS.items() if page.name == "README.md" else ():
        assert whole in content
        content = content.replace(whole, part)
    shown = [output for _, output in code_blocks.run(content, page.name, tmp_path, commands=tutorial)]
    assert any(output.printed for output in shown) or not tutorial


@pytest.mark.slow
def test_the_readme_prints_what_it_says(tmp_path):
    content = (ROOT / "README.md").read_text()
    outputs = [output.printed for _, output in code_blocks.run(content, "README.md", tmp_path, commands=False)]
    printed = ", ".join("".join(outputs).splitlines())
    said = re.findall(r"print\(.*\)  # (?:.*: )?(.*)$", content, re.MULTILINE)
    assert len(said) == 4
    assert re.split(NUMBER, ", ".join(said)) == re.split(NUMBER, printed)
    # but for a twentieth: another processor's kernels lead a search elsewhere
    assert numbers_in(", ".join(said)) == pytest.approx(numbers_in(printed), rel=0.05, abs=0.05)


NUMBER = r"-?\d+(?:\.\d+)?"


def numbers_in(text):
    return [float(number) for number in re.findall(NUMBER, text)]


def test_blocks_that_are_not_run_say_why_and_are_counted():
    reasons = {page.stem: [block.not_run for block in code_blocks.blocks(page.read_text())] for page in PAGES}
    assert {page: [why for why in said if why] for page, said in reasons.items() if any(said)} == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_have_options_that_the_command_line_knows(page):
    group = typer.main.get_command(app)
    commands = [block.code for block in code_blocks.blocks(page.read_text()) if block.language == "sh"]
    for line in "".join(commands).replace("\\\n", " ").splitlines():
        program, *words = shlex.split(re.split(" [|>] ", line)[0], comments=True) or [""]
        if program == "cbo-gym":
            group.commands[words[0]].make_context(words[0], words[1:])


def test_what_a_block_prints_and_draws_is_shown_below_it():
    blocks = ["x = 2\nprint(x + 1)", "import matplotlib.pyplot as plt\nplt.plot([x])"]
    page = "Before.\n\n" + "\n".join(f"```python\n{block}\n```\n" for block in blocks)
    text, figures = code_blocks.with_output(page + "\nAfter.\n", "tutorials/sum.md")
    assert re.sub(r"\n+", "\n", text).endswith("plt.plot([x])\n```\n![a figure](sum-1.svg)\nAfter.\n")
    assert '\n```text title="Output"\n3\n```\n' in text
    assert figures["sum-1.svg"].startswith(b"<?xml")


def test_the_guide_for_agents_names_every_class_of_tasks():
    named = set(re.findall(r"`(\w*Task)`", (ROOT / "docs" / "guide" / "agents.md").read_text()))
    assert named == {name for name in vars(task) if name.endswith("Task")}


def test_every_agent_has_a_page_with_all_its_parts():
    pages = agents.pages()
    assert set(pages) == {"agents/index.md", *(f"agents/{name}.md" for name in zoo())}
    index = pages.pop("agents/index.md")
    for name, page in zip(zoo(), pages.values(), strict=True):
        assert re.findall(r"^## (.*)", page, flags=re.MULTILINE) == [
            "Cost and results",
            "Paper",
            "Method",
            "Departures from the paper",
            "Parameters",
        ], name
        assert "A round costs" in page, f"{name} has no results: see make agent-results"
        assert f"| [{name}]({name}.md) |" in index


def test_no_method_is_left_of_an_agent_that_is_gone():
    assert {path.stem for path in (ROOT / "docs" / "methods").glob("*.md")} == {"index", *zoo()}


def test_results_are_of_registered_environments_and_of_the_zoo():
    for result in results():
        assert find_entry(result.id) is not None, result
        assert result.env.endswith(", T=50"), "the note on the pages says so"
        assert result.agent in zoo(), result


@pytest.mark.parametrize("part", ["summary", "method", "departures", "parameters"])
def test_an_agent_that_lacks_a_part_is_named(part):
    """DuckTyped has no method, Raises no docstring, Nonsense has a parameter without a meaning."""
    kind = {"summary": "SoftOnly", "parameters": "Nonsense"}.get(part, "DuckTyped")
    with pytest.raises(ValueError, match="Unwritten"):
        getattr(DocumentedAgent("Unwritten", f"tests.support.agents:{kind}"), part)


def test_parameters_are_those_of_the_class_that_takes_them():
    (degree, *_) = DocumentedAgent("SSEM-UCB-JO", zoo()["SSEM-UCB-JO"]).parameters
    assert (degree.name, degree.default) == ("degree", "4")
    assert degree.meaning.startswith("degree q of the Taylor polynomials, 1 to 4")
    assert DocumentedAgent("METS", zoo()["METS"]).parameters == []
