"""The events of MkDocs: the generated pages, the output of tutorials, links to the glossary, and formulas.

MkDocs takes every name of this module that begins with ``on_`` for one of its events.
"""

import json
import re
from functools import cache, partial
from pathlib import Path

from mkdocs.structure.files import File

from cbo_gym import __version__
from cbo_gym.evaluation.claims.tables import published_parts
from website.common.kept import ENVIRONMENTS, RESULTS, keep
from website.common.paths import DOCS, ROOT
from website.maths.mathml import with_mathml
from website.pages import agent_results, agents, environments, results, surface
from website.pages.code_blocks import with_output

ROLE = re.compile(r":(?:class|meth|func|mod|attr|exc|data):<code>~?([^<]*)</code>")
LINKED = ("index.md", "guide/", "tutorials/", "faq.md", "which_method.md", "leaderboard.md")  # pages that link terms
#: Parts without links to the glossary: code, headings, links, tables, HTML, formulas.
APART = re.compile(
    r"```.*?^```|`[^`\n]+`|^#.*?$|\[[^\]]*\]\([^)]*\)|^\|.*?$|<summary>.*?</summary>|<[^>]*>|\$[^$]*\$",
    re.DOTALL | re.MULTILINE,
)
#: Parts that are not in the search index: numbers, tables, formulas, the changelog.
UNSEARCHED = re.compile(
    r"environments/(?!gallery).*#(?!about)|papers/.*#|leaderboard.html#(?!who)|CHANGELOG"
    r"|agents/.*#(cost-and-results|departures)"
)


def on_config(config):
    navigation = {
        "Environments": lambda _: environments.navigation(),
        "Agents": lambda _: agents.navigation(),
        "Results": results.navigation,
        "Reference": lambda first: first + [{module: f"api/{module}.md"} for module in surface.modules()],
    }
    for entry in config.nav:
        for title, section in entry.items():
            entry[title] = navigation.get(title, lambda same: same)(section)
    return config


def on_files(files, config):
    pages = {**keep("environments", ENVIRONMENTS, environments.pages), **surface.pages()}
    for source in ("CONTRIBUTING.md", "CHANGELOG.md"):
        pages[source] = (ROOT / source).read_text().replace("](docs/", "](")  # links in the repository start at its top
    known = {file.src_uri for file in files} | pages.keys()
    pages |= keep("curves", [ROOT / "results"], lambda: agent_results.curves(published_parts()))
    pages |= agents.pages(known | pages.keys())
    others = known | pages.keys()
    pages |= keep("results", [*RESULTS, *sorted(others)], lambda: results.pages(published_parts(), others))
    for figure in sorted((ROOT / "examples" / "figures").glob("*.png")):  # the guide shows them
        files.append(File.generated(config, f"examples/figures/{figure.name}", abs_src_path=str(figure)))
    for tutorial in [file for file in files.documentation_pages() if file.src_uri.startswith("tutorials/")]:
        pages |= keep(Path(tutorial.src_uri).stem, [tutorial.content_string], partial(_tutorial, tutorial))
        files.remove(tutorial)
    for uri, content in pages.items():
        files.append(File.generated(config, uri, content=content))
    return files


def _tutorial(tutorial) -> dict[str, str | bytes]:
    """Return the page of a tutorial with the output of its blocks, and its figures."""
    page, figures = with_output(tutorial.content_string, tutorial.src_uri)
    return {tutorial.src_uri: page, **{f"tutorials/{name}": figure for name, figure in figures.items()}}


@cache
def terms() -> dict[str, str]:
    """Return the terms of the glossary and their anchors, long ones first."""
    titles = re.findall(r"^## (.+)$", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE)
    common = {"do", "Action", "Round", "Seed", "Score", "Mode", "Feedback", "Optimum"}  # on every page, and plain words
    anchors = {term: re.sub(r"[^\w]+", "-", term.lower()) for term in titles if term not in common}
    return dict(sorted(anchors.items(), key=lambda item: -len(item[0])))


def on_page_markdown(markdown, page, config, files):
    """Link the first use of a term on a page of the guide to the glossary, and name the version on the start page."""
    uri = page.file.src_uri
    markdown = markdown.replace("VERSION", __version__) if uri == "index.md" else markdown
    return link_terms(markdown, "../" * uri.count("/")) if uri.startswith(LINKED) else markdown


def link_terms(markdown: str, root: str) -> str:
    """Return Markdown with a link at the first use of each term in prose."""
    for term, anchor in terms().items():
        pattern = re.compile(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", re.IGNORECASE)
        apart = [match.span() for match in APART.finditer(markdown)]
        for match in pattern.finditer(markdown):
            if not any(start <= match.start() < end for start, end in apart):
                link = f"[{match[0]}]({root}glossary.md#{anchor})"
                markdown = markdown[: match.start()] + link + markdown[match.end() :]
                break
    return markdown


def on_page_content(html, page, config, files):
    """Show roles of docstrings, such as ``:class:``, as code, and formulas as MathML."""
    return with_mathml(ROLE.sub(r"<code>\1</code>", html).replace("::</p>", ":</p>"))


def on_post_page(output, page, config):
    """Name the theme's search for screen readers."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def on_post_build(config):
    """Keep the search index small, since it is read when the first page is opened."""
    path = Path(config.site_dir) / "search" / "search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["docs"] = [entry for entry in index["docs"] if not UNSEARCHED.match(entry["location"])]
    for entry in index["docs"]:
        if entry["location"].startswith("api/"):
            # The signature and the summary; the lists of arguments are a sixth of the index.
            entry["text"] = "".join(entry["text"].partition("</p>")[:2])
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
