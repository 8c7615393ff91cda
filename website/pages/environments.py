"""The pages of environments: a page for every entry of the registry, a table and a gallery of all."""

import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from markdown.extensions.toc import slugify

from cbo_gym._util.yaml import read_yaml
from cbo_gym.actions.sets import to_string
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.envs.registry import EnvEntry, entries
from cbo_gym.evaluation.claims.papers import papers
from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS
from cbo_gym.modes import make_dynamics
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.scm import SeparableSEM, Zero
from cbo_gym.task import Mode
from website.common.markdown import ALL
from website.common.markdown import table as table_of
from website.common.svg import light_and_dark, size_of
from website.maths.equations import Equation, equations_html, equations_of
from website.pages.agent_results import milliseconds, ranking
from website.pages.pictures import Pictures, pictures_of

ROLE = re.compile(r":(?:class|meth|func|mod|attr|exc):`~?([^`]*)`")
FOLDER = "environments"
MAX_LISTED = 40  # targets or scopes
ROUNDING_ERROR = 1e-12  # relative size


@dataclass(frozen=True)
class Environment:
    """One entry of the registry with the facts of its page."""

    entry: EnvEntry

    @property
    def name(self) -> str:
        return self.entry.id.removeprefix("CBO/")

    @property
    def page(self) -> str:
        return f"{FOLDER}/{self.name}.md"

    @cached_property
    def dynamics(self) -> Dynamics:
        return make_dynamics(**self.entry.make_kwargs)

    @cached_property
    def equations(self) -> list[Equation]:
        """The equation of every variable."""
        return equations_of(self.dynamics.scm, self.dynamics.symbols)

    @cached_property
    def pictures(self) -> Pictures:
        return pictures_of(self.entry, self.dynamics)

    @property
    def mode_description(self) -> str:
        """The first line of the mode's docstring."""
        return _plain((inspect.getdoc(type(self.dynamics)) or "").split("\n")[0])

    @property
    def picture_names(self) -> list[str]:
        return [picture for picture in ("graph", "landscape") if getattr(self.pictures, picture)]

    @property
    def family(self) -> str:
        """The system's name, which the ids of its versions and modes begin with."""
        return self.name.split("-")[0]


@cache
def environments() -> tuple[Environment, ...]:
    """Return all registered environments."""
    return tuple(map(Environment, entries()))


def pages() -> dict[str, str]:
    """Return address of a page or a picture -> its content."""
    contents = {"environments.md": table(), f"{FOLDER}/gallery.md": gallery()}
    for env in environments():
        contents[env.page] = page(env)
        for picture in env.picture_names:
            contents |= light_and_dark(f"{FOLDER}/pictures/{env.name}-{picture}", getattr(env.pictures, picture))
    return contents


def navigation() -> list[dict[str, Any]]:
    """Return the pages by mode, after the table and the gallery."""
    groups = {f"{mode.capitalize()} mode": [{env.name: env.page} for env in own] for mode, own in _by_mode().items()}
    first = {"All environments": "environments.md", "Gallery": f"{FOLDER}/gallery.md"}
    return [{title: entry} for title, entry in (first | groups).items()]


def _by_mode() -> dict[Mode, list[Environment]]:
    by_mode = {mode: [env for env in environments() if env.entry.mode is mode] for mode in Mode}
    return {mode: members for mode, members in by_mode.items() if members}


# Overviews ---------------------------------------------------------------------------------------------------


def table() -> str:
    """Return the page with a row for each environment."""
    rows = []
    for env in environments():
        entry, best = env.entry, env.entry.optimum
        value = f"{without_rounding_error(best.value, best):.4g}" if best else "not recorded"
        if best and best.standard_error:
            value += f" ({best.standard_error:.1g})"
        at_random = f"{without_rounding_error(best.random_value, best):.4g}" if best else ""
        system = f"{env.dynamics.problem.description} <small>{', '.join(entry.tags)}</small>"
        numbers = [str(len(env.dynamics.scm.nodes)), str(entry.horizon), value, at_random]
        rows.append([f"[`{entry.id}`]({env.page})", entry.mode, *numbers, system])
    header = ["environment", "mode", "nodes", "rounds", "optimum", "random action", "system"]
    return (
        f"---\nhide: [toc]\n---\n\n# All environments\n\n{len(environments())} environments; the "
        f"[gallery]({FOLDER}/gallery.md) shows them in pictures. Rewards are expectations: of the best action, with "
        "its standard error in brackets unless it is exact, and of a random one. Click a heading to sort.\n\n"
        f'<div class="environment-table" markdown>\n\n{table_of(header, rows, left=(0, 1, 6))}\n\n</div>\n'
    )


def gallery() -> str:
    """Return cards with the graph and the landscape of every environment, by mode."""
    rows = ["---\nhide: [toc]\n---\n\n# Gallery\n\nEach environment's graph and a slice of its rewards.\n"]
    for mode, members in _by_mode().items():
        rows += [f"## {mode.capitalize()} mode", "", members[0].mode_description, "", '<div class="gallery">']
        families = {env.family: [other for other in members if other.family == env.family] for env in members}
        rows += [*(_card(family, own) for family, own in families.items()), "</div>", ""]
    return "\n".join(rows)


def _card(family: str, members: Sequence[Environment]) -> str:
    """Return the card of a family of environments: pictures of its first member, and links to all."""
    first = members[0]
    pictures = "".join(
        f'<span class="card-picture">{_images(first, picture, "")}</span>' for picture in first.picture_names
    )
    about = f'<span class="card-text">{escape(first.dynamics.problem.description)}</span>'
    links = " ".join(f'<a href="{env.name}.html">{env.name}</a>' for env in members)
    return (
        f'<div class="environment-card"><a class="card-title" href="{first.name}.html">{family}{pictures}</a>{about}'
        f'<span class="card-links">{links}</span></div>'
    )


def _images(env: Environment, picture: str, alt: str) -> str:
    """Return a picture for light pages and one for dark pages, of which the theme shows one."""
    width, height = size_of(getattr(env.pictures, picture))
    size = f'width="{width}" height="{height}" loading="lazy"'
    return "".join(
        f'<img src="pictures/{env.name}-{picture}{suffix}.svg#only-{scheme}" alt="{escape(alt)}" {size}>'
        for suffix, scheme in (("", "light"), ("-dark", "dark"))
    )


def without_rounding_error(value: float, best: RecordedOptimum) -> float:
    """Return the value, or 0 if it is a rounding error next to the gap between the optimum and a random action."""
    return 0.0 if abs(value) < ROUNDING_ERROR * abs(best.value - best.random_value) else value


# The page of one environment ---------------------------------------------------------------------------------


def page(env: Environment) -> str:
    """Return the page with all its sections; those without content are left out."""
    description = env.dynamics.problem.description
    parts = [
        f'---\ntitle: {env.name}\ndescription: "{description}"\n---',
        f"# {env.entry.id}",
        description,
        _facts(env),
        f'```python\nimport gymnasium as gym\n\nenv = gym.make("cbo_gym:{env.entry.id}")\n```',
    ]
    for title, section in SECTIONS.items():
        if paragraphs := list(section(env)):
            parts += [f"## {title}", *paragraphs]
    return "\n\n".join(parts) + "\n"


def _facts(env: Environment) -> str:
    entry, initial, outcomes = env.entry, env.entry.initial_data, env.dynamics.problem.outcomes
    data = []
    if initial.observational:
        data.append(f"{initial.observational} observations")
    if initial.random:
        data.append(f"{initial.random} random actions {env.dynamics.random_rounds_of}".rstrip())
    facts = {
        "mode": f"{entry.mode}. {env.mode_description.replace('`', '')}",
        "rounds": str(entry.horizon),
        "initial data": " and ".join(data) or "none",
        "objectives": ", ".join(map(str, outcomes.objectives)),
        "constraints": ", ".join(f"E[{c.node}] {c.side} {c.threshold:g}" for c in outcomes.constraints),
        "costs": ", ".join(costs.describe()) if (costs := outcomes.costs) else "",
        "tags": ", ".join(entry.tags),
    }
    items = "".join(f"<div><dt>{name}</dt><dd>{escape(fact)}</dd></div>" for name, fact in facts.items() if fact)
    return f'<dl class="facts">{items}</dl>'


def _figure(env: Environment, picture: str, caption: str) -> str:
    width = size_of(getattr(env.pictures, picture))[0]
    images = _images(env, picture, caption)
    min_height = min(width, max(round(0.62 * width), 300))
    return (
        f'<figure class="wide"><div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}" '
        f'style="--least: {min_height}px">{images}</div><figcaption>{escape(caption)}</figcaption></figure>'
    )


def _graph(env: Environment) -> Iterator[str]:
    diagram = env.dynamics.scm.diagram
    hidden = [" and ".join(sorted(pair)) for pair in sorted(diagram.bidirected, key=sorted)]
    yield _figure(env, "graph", f"The causal diagram of {env.name}.")
    sentences = [f"{_count_of(len(diagram.nodes), 'observed node')}, {_count_of(len(diagram.directed), 'edge')}."]
    if hidden:
        more = "" if len(hidden) <= 6 else f" and {len(hidden) - 6} more pairs"
        sentences.append(f"Latent confounding: {'; '.join(hidden[:6])}{more}.")
    if not diagram.is_acyclic:
        sentences.append("The graph has cycles; a round is the fixed point of the equations.")
    yield " ".join(sentences)


def _count_of(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'s' * (count != 1)}"


def _equations(env: Environment) -> Iterator[str]:
    scm = env.dynamics.scm
    sentences = ["Traced from the code that is run; numbers are rounded to five digits."]
    if env.dynamics.problem.action_domains:
        sentences.append(env.dynamics.parameters_note)
    if isinstance(scm, SeparableSEM) and not isinstance(scm.arguments["node_noise"], Zero):
        signals, nodes = (scm.arguments[name].std for name in ("signal_noise", "node_noise"))
        sentences.append(
            f"Signals and nodes are observed with normal errors of the standard deviations {signals:.3g} and "
            f"{nodes:.3g}; the reward is computed from the observed nodes."
        )
    yield " ".join(sentences)
    yield equations_html(env.equations)


def _spaces(env: Environment) -> Iterator[str]:
    sections, spaces = dict(_mode_sections(env.dynamics)), env.dynamics.observation_space
    yield f"### Action space\n\n{sections['Action space']}"
    yield from _actions(env)
    yield f"### Observation space\n\n{sections['Observation space']}"
    sizes = ", ".join(f"`{key}`: {_count_of(box.shape[0], 'number')}" for key, box in spaces.items())
    yield f"Here {sizes}; the nodes are {_code_list(env.dynamics.scm.nodes)}."
    yield f"### Reward\n\n{sections['Reward']}"


def _actions(env: Environment) -> Iterator[str]:
    dynamics = env.dynamics
    yield f"Here `{dynamics.action_space}`."
    if len(dynamics.domains):
        yield _coordinates(env)
    noun, options = dynamics.codec.options
    if options:
        labels = [f"{i}: `{name}`" for i, name in enumerate(options[:MAX_LISTED])]
        more = f", and {len(options) - MAX_LISTED} more" if len(options) > MAX_LISTED else ""
        yield f"The {len(options)} {noun}: {', '.join(labels)}{more}."


def _coordinates(env: Environment) -> str:
    dynamics = env.dynamics
    action_nodes, chosen = dynamics.scm.action_nodes, bool(dynamics.codec.choices)
    rows = []
    for i, (label, ends) in enumerate(dynamics.coordinate_labels):
        acts_on = [label] if chosen else [node for node, own in action_nodes.items() if i in own]
        coordinate = dynamics.codec.coordinate.format(i)
        rows.append([f"`{coordinate}`", f"`{label}`", ends, ", ".join(f"`{node}`" for node in acts_on)])
    return table_of(["coordinate", "name", "native range", "acts on"], rows, left=ALL)


def _code_list(names: Sequence[str]) -> str:
    if len(names) > 20:
        return f"{', '.join(f'`{name}`' for name in names[:8])}, …, `{names[-1]}`"
    return ", ".join(f"`{name}`" for name in names)


def _optimum(env: Environment) -> Iterator[str]:
    best, codec, limits = env.entry.optimum, env.dynamics.codec, env.dynamics.problem.outcomes.constraints
    if best is None:
        yield f"None is recorded; `cbo-gym optimum {env.entry.id}` computes it."
        return
    value = f"{without_rounding_error(best.value, best):.6g}"
    rows = [
        ["Pareto front" if best.front else "optimal", value, f"{best.standard_error:.1g}"],
        ["random", f"{without_rounding_error(best.random_value, best):.6g}", f"{best.random_standard_error:.1g}"],
    ]
    sentences = [f"Reached at {to_string(codec, best.action)}."]
    if isinstance(best.action, str):
        sentences = [f"Reached by the {'sequence' if env.dynamics.remembers else 'policy'} {best.action}."]
    if best.front:
        reference = ", ".join(f"{number:g}" for number in best.reference)
        sentences.append(
            f"Both are hypervolumes of expected rewards above the reference point ({reference}): of the whole front, "
            "and of one action."
        )
    if limits:
        sentences.append("Both are of the actions that meet the constraints; any other counts as a random one.")
    yield table_of(["action", "expected reward", "standard error"], rows)
    yield from sentences
    yield f"Computed by `{best.command}`."


def _landscape(env: Environment) -> Iterator[str]:
    if not env.pictures.landscape:
        yield "No landscape is drawn without a recorded optimum."
        return
    marked = "" if env.dynamics.problem.outcomes.objectives else " The optimum is marked."
    yield _figure(env, "landscape", env.pictures.caption + marked)


@cache
def published_tables() -> list[dict[str, Any]]:
    """Return the numbers printed in papers, from their exhibits and from ``published.yaml``."""
    tables = [
        {
            "environments": exhibit.environments,
            "source": f"{paper.authors}, {exhibit.name}",
            "what": exhibit.shows,
            "columns": [f"{rounds} rounds" for rounds in exhibit.rounds] or ["published"],
            "rows": exhibit.published_numbers,
        }
        for paper in papers()
        for exhibit in paper.exhibits
        if exhibit.published_numbers and len(exhibit.environments) == 1
    ]
    return tables + read_yaml(Path(__file__).parent / "published.yaml")


def _results(env: Environment) -> Iterator[str]:
    printed_tables = [printed for printed in published_tables() if env.entry.id in printed["environments"]]
    for printed in printed_tables:
        rows = [[name, *map(str, cells)] for name, cells in printed["rows"].items()]
        yield f"**Published** ({printed['source']}). {printed['what']}"
        yield table_of(["method", *printed["columns"]], rows)
    if not printed_tables:
        yield "**Published**: no figures are on record for this environment."
    figures = [
        f"[{paper.short}, {exhibit.name}](../{paper.page}#{slugify(exhibit.name, '-')})"
        for paper in papers()
        for exhibit in paper.exhibits
        if any(bare_name(label) == env.entry.id for label in exhibit.environments)
    ]
    if figures:
        yield f"**In figures of papers, with our runs**: {'; '.join(figures)}."
    ours = ranking().get(env.entry.id)
    if ours is None:
        command = f"cbo-gym sweep runs -a '*' -e {env.entry.id} --seeds {MIN_SEEDS}"
        yield f"**Ours**: no agent has {MIN_SEEDS} published seeds on it. To play every agent on it: `{command}`."
        return
    yield (
        f"**Ours**: score of the action recommended after {ours[0].rounds} rounds; 1 is the optimum, 0 a random "
        f"action; ± half the 95 % t-interval. Agents with their defaults and at least {MIN_SEEDS} published seeds."
    )
    rows = [
        [
            f"[`{score.agent}`](../agents/{score.agent}.md)",
            f"{score.score:.3f} ± {score.half:.3f}",
            str(score.seeds),
            milliseconds(score.seconds),
        ]
        for score in ours
    ]
    yield table_of(["agent", "score", "seeds", "ms a round"], rows)


def _plain(doc: str) -> str:
    """Return a docstring as Markdown."""
    return ROLE.sub(lambda match: f"`{match[1].rsplit('.', 1)[-1]}`", doc).replace("::\n", ":\n")


def _docstring(env: Environment) -> tuple[str, dict[str, str]]:
    """Return the docstring of the problem's function: its text, and the meanings of its arguments by name."""
    about, arguments = _parse_docstring(env.entry.problem)
    if network := env.entry.kwargs.get("network"):
        about = f"{_parse_docstring(network)[0]}\n\n{about}"
    return about, arguments


@cache
def _parse_docstring(path: str) -> tuple[str, dict[str, str]]:
    doc = inspect.getdoc(resolve_name(path)) or ""
    about, *sections = re.split(r"^(Args|Raises|Returns):$", doc, flags=re.MULTILINE)
    arguments: dict[str, str] = {}
    if "Args" in sections:
        section = textwrap.dedent(sections[sections.index("Args") + 1].strip("\n"))
        items = re.split(r"^(\w+): ", section, flags=re.MULTILINE)[1:]
        arguments = {item: _plain(meaning) for item, meaning in zip(items[::2], items[1::2], strict=True)}
    elif other := re.search(r"see :func:`~?(\w+)`", doc):
        arguments = _parse_docstring(f"{path.partition(':')[0]}:{other[1]}")[1]
    return _plain(about.strip()), arguments


def _mode_sections(dynamics: Dynamics) -> list[tuple[str, str]]:
    """Return the headings and paragraphs of the mode's docstring."""
    doc = textwrap.dedent(inspect.getdoc(type(dynamics)) or "")
    parts = re.split(r"^## (.+)$", doc, flags=re.MULTILINE)
    return [(title.strip(), _plain(section.strip())) for title, section in zip(parts[1::2], parts[2::2], strict=True)]


def _keywords(env: Environment) -> Iterator[str]:
    meanings = _docstring(env)[1]
    own = inspect.signature(resolve_name(env.entry.problem)).parameters
    mode = [p for p in inspect.signature(type(env.dynamics).__init__).parameters.values() if p.kind is p.KEYWORD_ONLY]
    rows = []
    for parameter in [*own.values(), *mode]:
        default = "required" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
        value = f"`{env.entry.kwargs[parameter.name]!r}`" if parameter.name in env.entry.kwargs else ""
        meaning = " ".join(meanings.get(parameter.name, "of the mode, see below").split()).replace("|", "\\|")
        rows.append([f"`{parameter.name}`", default, value, meaning])
    if not rows:
        yield "None."
        return
    yield "Give them to `gym.make` after the id. If *here* is empty, this environment has the default."
    yield table_of(["keyword", "default", "here", "meaning"], rows, left=ALL)
    for title, section in _mode_sections(env.dynamics):
        if title == "Arguments" and mode:
            yield f"Of the mode: {section}"


def _source(env: Environment) -> Iterator[str]:
    entry, (module, name) = env.entry, env.entry.problem.split(":")
    yield f"{entry.paper}, {entry.section}."
    if (cited := env.dynamics.problem.citation) and entry.paper not in cited:
        yield f"The problem: {cited}."
    yield f"Built by `{name}` in `{module}`."
    related = [other for other in environments() if other.family == env.family and other is not env]
    if related:
        yield "Related: " + ", ".join(f"[`{other.name}`]({other.name}.md)" for other in related) + "."


SECTIONS = {
    "Graph": _graph,
    "Equations": _equations,
    "About": lambda env: filter(None, _docstring(env)[:1]),
    "Actions and observations": _spaces,
    "Optimum": _optimum,
    "Reward landscape": _landscape,
    "Results": _results,
    "Keywords": _keywords,
    "Source": _source,
}
