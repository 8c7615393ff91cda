"""Write the notebooks of the tutorials from their pages: ``make notebooks``."""

import re
import tomllib
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_code_cell

from website.common.paths import DOCS, ROOT
from website.pages.code_blocks import Block, blocks

PAGES = DOCS / "tutorials"
NOTEBOOKS = ROOT / "examples" / "notebooks"
INSTALL = """\
try:
    import cbo_gym
except ModuleNotFoundError:  # for example on Colab
    %pip install --quiet {source}
"""
FROM_HERE = '"../..[all]"  # of the checkout that contains this notebook'
COLAB = "https://colab.research.google.com/github/{repository}/blob/main/examples/notebooks/{name}.ipynb"
GITHUB = "https://github.com/"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\.md(#[^)]*)?\)")


def notebook_of(page: Path) -> str:
    """Return the notebook of a page as JSON: its prose, and a cell for each block that runs."""
    markdown = LINK.sub(_link, page.read_text(encoding="utf-8"))
    parts, start = [], 0
    for block in blocks(markdown):
        parts += [re.sub(r"<!-- not run: .*\n\Z", "", markdown[start : block.start]), _block(block, markdown)]
        start = block.end
    notebook = jupytext.reads("".join([*parts, markdown[start:]]), fmt="md")
    notebook.cells.insert(1, new_code_cell(INSTALL.format(source=source(repository())).rstrip()))
    if repository().startswith(GITHUB):
        name = repository().removeprefix(GITHUB)
        notebook.cells[0].source += f"\n\n[Open in Colab]({COLAB.format(repository=name, name=page.stem)})"
    for index, cell in enumerate(notebook.cells):
        cell.update(id=f"{page.stem.replace('_', '-')}-{index}", metadata={})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def repository() -> str:
    """Return the address of the repository; empty before the first release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "")


def source(address: str) -> str:
    """Return the requirement by which a notebook installs the package."""
    return f'"cbo-gym[all] @ git+{address}"' if address else FROM_HERE


def _block(block: Block, markdown: str) -> str:
    """Return a block in the form that jupytext reads; its cells write files and run commands."""
    block_lines, code = markdown[block.start : block.end], block.code.rstrip()
    if block.not_run:  # the text of the page says why; a reader of the notebook may run it
        return f"<!-- #region -->\nNot run here, {block.not_run}:\n\n{block_lines}<!-- #endregion -->\n"
    if block.title:
        return f"```python\n%%writefile {block.title}\n{code}\n```\n"
    if block.language == "sh":
        return "\n".join(["```python", *map(_command, code.replace("\\\n", " ").splitlines()), "```\n"])
    return block_lines


def _command(line: str) -> str:
    return f"!{line}" if line.startswith("cbo-gym") else f"# {line}".rstrip() if line else line


def _link(match: re.Match[str]) -> str:
    """Return a link to the notebook of a page, or to the page if it has none."""
    if "/" not in match[1] and (PAGES / f"{match[1]}.md").is_file():
        return f"]({match[1]}.ipynb)"
    return f"](../../docs/{match[1].removeprefix('../')}.md)"


def write() -> None:
    """Write the notebooks of all tutorials."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in sorted(PAGES.glob("*.md")):
        (NOTEBOOKS / f"{page.stem}.ipynb").write_text(notebook_of(page), encoding="utf-8")
