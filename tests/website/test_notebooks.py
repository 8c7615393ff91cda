"""The tutorials as notebooks: as their pages say, whose code tests/test_docs.py runs, and run by a kernel."""

import nbformat
import pytest
from nbclient import NotebookClient

from website.commands.notebooks import NOTEBOOKS, PAGES, notebook_of

NAMES = sorted(page.stem for page in PAGES.glob("*.md"))
SECONDS = 600


def test_every_tutorial_has_its_notebook():
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == NAMES
    for name in NAMES:
        written = (NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
        assert written == notebook_of(PAGES / f"{name}.md"), "run 'make notebooks'"


def run(name, folder):
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(folder)}}).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of the kernel's client
def test_the_tour_runs_in_a_kernel(tmp_path):
    outputs = run("tour", tmp_path)
    assert not [output for output in outputs if output.output_type == "error"]
    shown = [output.data for output in outputs if output.output_type == "execute_result"]
    assert sum("image/svg+xml" in data for data in shown) == 2  # the run's curves, and the board's
    assert (tmp_path / "runs").is_dir()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "tour"])
def test_a_tutorial_runs_in_a_kernel(name, tmp_path):
    assert not [output for output in run(name, tmp_path) if output.output_type == "error"]
