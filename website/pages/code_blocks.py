"""Run the code of the documentation: the site shows the output of each block of a tutorial, the tests run all pages.

The blocks of a page run in order, in one namespace and one folder, so a page reads like a notebook:

* ``python`` runs;
* ``python title="name.py"`` (any language with a title) is written to the folder as a file, which later blocks import;
* in ``sh`` the lines that begin with ``cbo-gym`` run;
* a block below the line ``<!-- not run: why -->`` does not.
"""

import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

from sybil import Document
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

FENCES = RawFencedCodeBlockLexer(re.compile(r'(?P<language>\w+)(?: title="(?P<title>[^"]+)")?$\n', re.MULTILINE))
NOT_RUN = re.compile(r"<!-- not run: ([^\n]+) -->\n\Z")
COLUMNS = "80"  # width of the terminal that commands print to
FIGURE_ALT = "a figure"  # alternative text


class Block(NamedTuple):
    """A fenced block of a page: its start and end in the Markdown, its fence's attributes, and why it is not run."""

    start: int
    end: int
    language: str
    title: str | None
    code: str
    not_run: str | None


class Output(NamedTuple):
    """The output of a block, and its figures as SVG."""

    printed: str
    figures: list[bytes]


def blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    fenced = []
    for region in FENCES(Document(markdown, "")):
        fence, marker = region.lexemes, NOT_RUN.search(markdown[: region.start])
        reason = marker[1] if marker else None
        attributes = fence["language"], fence["title"], str(fence["source"])
        fenced.append(Block(region.start, region.end + 1, *attributes, reason))
    return fenced


def run(markdown: str, name: str, folder: Path, commands: bool = True) -> Iterator[tuple[Block, Output]]:
    """Run the blocks of a page in a folder, one by one; errors are raised as they are.

    Args:
        markdown: the page's Markdown.
        name: name of the page, for tracebacks.
        folder: working directory, and first folder of imports, while the page runs.
        commands: run those of the command line as well as Python.
    """
    with _page_environment(folder) as namespace:
        for block in blocks(markdown):
            output = Output("", [])
            if block.not_run is None and block.title is not None:
                Path(block.title).write_text(block.code, encoding="utf-8")
            elif block.not_run is None and block.language == "python":
                lines = markdown.count("\n", 0, block.start) + 1
                output = _run_python(compile("\n" * lines + block.code, name, "exec"), namespace)
            elif block.not_run is None and block.language == "sh" and commands:
                output = _run_commands(block.code)
            yield block, output


@contextmanager
def _page_environment(folder: Path) -> Iterator[dict[str, Any]]:
    """Return a working directory and a namespace; imports and figures are removed at the end of the page."""
    import matplotlib

    main = ModuleType("__main__")  # pickle finds the classes of the page there
    replaced, modules = sys.modules["__main__"], set(sys.modules)
    environment, path = patch.dict(os.environ, COLUMNS=COLUMNS), patch.object(sys, "path", [str(folder), *sys.path])
    with chdir(folder), matplotlib.rc_context({"backend": "agg"}), environment, path:
        sys.modules["__main__"] = main
        try:
            yield vars(main)
        finally:
            sys.modules["__main__"] = replaced
            for module in {path.stem for path in folder.glob("*.py")} - modules:
                sys.modules.pop(module, None)


def _run_python(code: CodeType, namespace: dict[str, Any]) -> Output:
    with redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")  # plt.show() of a script
        exec(code, namespace)
    return Output(printed.getvalue(), _figures())


def _run_commands(code: str) -> Output:
    from typer.testing import CliRunner

    from cbo_gym.cli import app

    printed = ""
    for line in code.replace("\\\n", " ").splitlines():
        command, *words = shlex.split(line, comments=True) or [""]
        if command == "cbo-gym":
            done = CliRunner().invoke(app, words)
            if done.exit_code:
                raise RuntimeError(f"{line}: {done.output}") from done.exception
            printed += done.stdout
    return Output(printed, [])


def _figures() -> list[bytes]:
    """Close the open figures of matplotlib, and return them as SVG."""
    from matplotlib import pyplot

    svgs = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="svg", bbox_inches="tight")
        svgs.append(file.getvalue())
    pyplot.close("all")
    return svgs


def with_output(markdown: str, name: str) -> tuple[str, dict[str, bytes]]:
    """Return a page with the output of its blocks, and its figures by file name."""
    parts, last, figures = [], 0, {}
    with TemporaryDirectory() as folder:
        for block, output in run(markdown, name, Path(folder)):
            parts.append(markdown[last : block.end])
            last = block.end
            if output.printed.strip():
                parts.append(f'\n```text title="Output"\n{output.printed.rstrip()}\n```\n')
            for figure in output.figures:
                uri = f"{Path(name).stem}-{len(figures) + 1}.svg"
                figures[uri] = figure
                parts.append(f"\n![{FIGURE_ALT}]({uri})\n")
    return "".join([*parts, markdown[last:]]), figures
