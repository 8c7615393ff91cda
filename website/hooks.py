"""What MkDocs runs while it builds the site: generated pages, output of tutorials, links to the glossary, formulas.

MkDocs calls every function of this module whose name begins with ``on_`` at the event of that name.
"""

import json
import re
from functools import cache, partial
from pathlib import Path

from mkdocs.structure.files import File

from cbo_gym import __version__
from cbo_gym.evaluation.claims.tables import published_parts
from website.common.cache import ENVIRONMENTS, RESULTS, cached
from website.common.paths import DOCS, ROOT
from website.maths.mathml import with_mathml
from website.pages import agent_results, agents, environments, results, surface
from website.pages.code_blocks import with_output

ROLE = re.compile(r":(?:class|meth|func|mod|attr|exc|data):<code>~?([^<]*)</code>")
#: Pages whose terms are linked to the glossary.
LINKED_PAGES = ("index.md", "guide/", "tutorials/", "faq.md", "which_method.md", "leaderboard.md")
#: Parts of these pages in which no term is linked: code, headings, links, tables, HTML, formulas.
UNLINKED = re.compile(
    r"```.*?^```|`[^`\n]+`|^#.*?$|\[[^\]]*\]\([^)]*\)|^\|.*?$|<summary>.*?</summary>|<[^>]*>|\$[^$]*\$",
    re.DOTALL | re.MULTILINE,
)
#: Parts that are not in the search index: numbers, tables, formulas, the changelog.
UNSEARCHED = re.compile(
    r"environments/(?!gallery).*#(?!about)|papers/.*#|leaderboard.html#(?!who)|CHANGELOG"
    r"|agents/.*#(cost-and-results|departures)"
)


def on_config(config):
    """Add the generated pages to the sections of the navigation, which ``mkdocs.yml`` lists."""
    for entry in config.nav:
        for title, section in entry.items():
            match title:
                case "Environments":
                    entry[title] = environments.navigation()
                case "Agents":
                    entry[title] = agents.navigation()
                case "Results":
                    entry[title] = results.navigation(section)
                case "Reference":
                    entry[title] = section + [{module: f"api/{module}.md"} for module in surface.modules()]
    return config


def on_files(files, config):
    """Add the generated pages and pictures to the files of the site."""
    pages = {**cached("environments", ENVIRONMENTS, environments.pages), **surface.pages()}
    for source in ("CONTRIBUTING.md", "CHANGELOG.md"):
        pages[source] = (ROOT / source).read_text().replace("](docs/", "](")  # links in the repository start at its top
    written = {file.src_uri for file in files}
    pages |= cached("curves", [ROOT / "results"], lambda: agent_results.curves(published_parts()))
    pages |= agents.pages(written | pages.keys())
    linkable = written | pages.keys()
    pages |= cached("results", [*RESULTS, *sorted(linkable)], lambda: results.pages(published_parts(), linkable))
    for figure in sorted((ROOT / "examples" / "figures").glob("*.png")):  # the guide shows them
        files.append(File.generated(config, f"examples/figures/{figure.name}", abs_src_path=str(figure)))
    for tutorial in [file for file in files.documentation_pages() if file.src_uri.startswith("tutorials/")]:
        pages |= cached(Path(tutorial.src_uri).stem, [tutorial.content_string], partial(_tutorial, tutorial))
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
    # These are on every page, and plain words.
    common = {"do", "Action", "Round", "Seed", "Score", "Mode", "Feedback", "Optimum"}
    anchors = {term: re.sub(r"[^\w]+", "-", term.lower()) for term in titles if term not in common}
    return dict(sorted(anchors.items(), key=lambda item: -len(item[0])))


def on_page_markdown(markdown, page, config, files):
    """Link the first use of a term on a page of the guide to the glossary, and name the version on the start page."""
    uri = page.file.src_uri
    markdown = markdown.replace("VERSION", __version__) if uri == "index.md" else markdown
    return link_terms(markdown, "../" * uri.count("/")) if uri.startswith(LINKED_PAGES) else markdown


def link_terms(markdown: str, root: str) -> str:
    """Return Markdown with a link at the first use of each term in prose; ``root`` leads to the root of the site."""
    for term, anchor in terms().items():
        pattern = re.compile(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", re.IGNORECASE)
        unlinked = [match.span() for match in UNLINKED.finditer(markdown)]
        for match in pattern.finditer(markdown):
            if not any(start <= match.start() < end for start, end in unlinked):
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
            # Keep the signature and the summary. The lists of arguments are a sixth of the index.
            entry["text"] = "".join(entry["text"].partition("</p>")[:2])
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
