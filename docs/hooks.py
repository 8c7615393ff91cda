"""Pages that are written by the code: one an environment, one an API module, and the start page."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import environment_pages
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
ROLE = re.compile(r":(?:class|meth|func|mod|attr|exc):<code>~?([^<]*)</code>")


def on_config(config):
    """The API section lists every module, in one group a folder."""
    groups: dict[str, list[str]] = {}
    for name in modules():
        parts = name.split(".")
        nested = len(parts) > 2 or (ROOT / Path(*parts)).is_dir()
        groups.setdefault(".".join(parts[:2]) if nested else parts[0], []).append(f"api/{name}.md")
    for entry in config.nav:
        if "Environments" in entry:
            entry["Environments"] = environment_pages.navigation()
    config.nav = [*config.nav, {"API": [{group: pages} for group, pages in groups.items()]}]
    return config


def on_files(files, config):
    pages = environment_pages.pages()
    for source in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / source).read_text().replace("](docs/", "](")  # links in the repository start at its top
        pages["index.md" if source == "README.md" else source] = text
    for name in modules():
        pages[f"api/{name}.md"] = f"---\ntitle: {name}\n---\n\n# {name}\n\n{offered(name)}::: {name}\n"
    for figure in sorted((ROOT / "examples" / "figures").glob("*.png")):  # the README shows them
        uri = f"examples/figures/{figure.name}"
        files.append(File.generated(config, uri, abs_src_path=str(figure)))
    for uri, content in pages.items():
        files.append(File.generated(config, uri, content=content))
    return files


def modules() -> list[str]:
    """The import paths of all modules; cbo_gym/agents is a link, which the search does not follow by itself."""
    package = ROOT / "cbo_gym"
    found = [*sorted(package.rglob("*.py")), *sorted((package / "agents").rglob("*.py"))]
    paths = [path for path in found if path.name != "__main__.py"]  # a program, which offers no names
    return [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]


def offered(name: str) -> str:
    """What a package offers by its own name and holds elsewhere, with links."""
    module, links = import_module(name), []
    for one in getattr(module, "__all__", ()):
        thing = getattr(module, one)
        home, called = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
        if called and home != name and str(home).startswith("cbo_gym"):
            links.append(f"[`{one}`][{home}.{called}]")
    return f"`from {name} import` {', '.join(links)}\n\n" if links else ""


def on_page_content(html, page, config, files):
    """Docstrings name things as Python code does; show the names."""
    return ROLE.sub(r"<code>\1</code>", html).replace("::</p>", ":</p>")


def on_post_page(output, page, config):
    """The theme's search has no name for screen readers."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')
