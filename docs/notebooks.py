"""The tutorials as notebooks, made from their pages: ``python docs/notebooks.py`` writes examples/notebooks anew."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from docs.code_blocks import BLOCK  # noqa: E402  (the folder above is looked at for it)

PAGES = ROOT / "docs" / "tutorials"
NOTEBOOKS = ROOT / "examples" / "notebooks"
INSTALL = """\
try:
    import cbo_gym
except ModuleNotFoundError:  # on a machine that is new, as one of Colab's
    %pip install --quiet {source}
"""
FROM_HERE = '"../..[all]"  # of the checkout that this notebook lies in'
COLAB = "https://colab.research.google.com/github/{place}/blob/main/examples/notebooks/{name}.ipynb"
GITHUB = "https://github.com/"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\.md(#[^)]*)?\)")


def notebook_of(page: Path) -> str:
    """The text of a page's notebook: its prose, and a cell for each block that runs."""
    text = page.read_text(encoding="utf-8")
    cells = []
    start = 0
    for found in BLOCK.finditer(text):
        cells.append(new_markdown_cell(_prose(text[start : found.start()])))
        cells.append(_cell(found))
        start = found.end()
    cells.append(new_markdown_cell(_prose(text[start:])))
    cells = [cell for cell in cells if cell.source]
    cells.insert(1, new_code_cell(INSTALL.format(source=source(repository())).rstrip()))
    if repository().startswith(GITHUB):
        place = repository().removeprefix(GITHUB)
        cells[0].source += f"\n\n[Open in Colab]({COLAB.format(place=place, name=page.stem)})"
    for place, cell in enumerate(cells):
        cell["id"] = f"{page.stem.replace('_', '-')}-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def repository() -> str:
    """The address of the repository, as the release says it; empty before."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "")


def source(address: str) -> str:
    """From where a notebook installs the package."""
    return f'"cbo-gym[all] @ git+{address}"' if address else FROM_HERE


def _cell(found: re.Match[str]) -> nbformat.NotebookNode:
    code = found["code"].rstrip()
    if found["why"]:  # a page says why it is not run there; a reader of the notebook may
        return new_markdown_cell(f"Not run here, {found['why']}:\n\n```{found['language']}\n{code}\n```")
    if found["title"]:
        return new_code_cell(f"%%writefile {found['title']}\n{code}")
    if found["language"] == "sh":
        return new_code_cell("\n".join(_command(line) for line in code.replace("\\\n", " ").splitlines()))
    if found["language"] == "python":
        return new_code_cell(code)
    return new_markdown_cell(f"```{found['language']}\n{code}\n```")


def _command(line: str) -> str:
    return f"!{line}" if line.startswith("cbo-gym") else f"# {line}".rstrip() if line else line


def _prose(text: str) -> str:
    """Links lead to the notebooks beside it, or to the page's name where it has none."""

    def link(found: re.Match[str]) -> str:
        if "/" not in found[1] and (PAGES / f"{found[1]}.md").is_file():
            return f"]({found[1]}.ipynb)"
        return f"](../../docs/{found[1].removeprefix('../')}.md)"

    return LINK.sub(link, text).strip()


def main() -> None:
    """Write all of them."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for page in sorted(PAGES.glob("*.md")):
        (NOTEBOOKS / f"{page.stem}.ipynb").write_text(notebook_of(page), encoding="utf-8")


if __name__ == "__main__":
    main()
