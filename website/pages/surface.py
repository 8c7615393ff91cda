"""The stable API: the modules that ``website/pages/surface.yaml`` lists, their public names, and their parameters.

From it come the reference section of the site and ``tests/surface.txt``, which ``make surface`` writes and the tests
compare with the code. A line may be removed only after the name has warned for one minor version, see
``docs/guide/stability.md``.
"""

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import GenericAlias
from typing import Any

from cbo_gym._util.files import write_text
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.zoo import zoo
from website.common.agents import plain
from website.common.markdown import table
from website.common.paths import ROOT

PROMISES = Path(__file__).parent / "surface.yaml"
LIST = ROOT / "tests" / "surface.txt"


def modules() -> dict[str, str]:
    """Return module -> a sentence on what stays stable in it."""
    return read_yaml(PROMISES)


def names(module: str) -> list[str]:
    """Return the names that a module offers: its ``__all__``, else the public functions and classes that it defines."""
    imported = import_module(module)
    offered = getattr(imported, "__all__", None)
    if offered is None:
        offered = [
            name
            for name, value in vars(imported).items()
            if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == module
        ]
    return sorted(name for name in offered if not name.startswith("__"))


def lines() -> Iterator[str]:
    """Yield a line for each name and for each public method of a class, with the names of its parameters.

    The methods of agents are those of their base class.
    """
    for module in modules():
        for name in names(module):
            value = getattr(import_module(module), name)
            yield f"{module}.{name}{_parameters(value)}"
            if inspect.isclass(value) and value.__module__.startswith("cbo_gym") and module != "cbo_gym.agents":
                for method in sorted(_methods(value)):
                    yield f"{module}.{name}.{method}{_parameters(getattr(value, method))}"


def _methods(cls: type) -> set[str]:
    """Return the public methods of a class that the package itself defines."""
    own = [base for base in cls.__mro__ if base.__module__.startswith("cbo_gym")]
    wrappers = (staticmethod, classmethod)
    return {
        name
        for base in own
        for name, value in vars(base).items()
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, wrappers))
    }


def _parameters(value: Any) -> str:
    """Return the parameters of an object, such as ``(path, task, trusted=)``; empty if it is not callable."""
    # The signatures of aliases and enumerations depend on the version of Python.
    is_standard = isinstance(value, GenericAlias) or (inspect.isclass(value) and issubclass(value, Enum))
    if not callable(value) or is_standard:
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        # Types that are written in C may have no signature.
        return ""
    return f"({', '.join(_parameter(parameter) for parameter in parameters if parameter.name not in ('self', 'cls'))})"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    return f"{stars}{parameter.name}" + ("" if stars or parameter.default is parameter.empty else "=")


def listing() -> str:
    """Return the content of the list."""
    return "".join(f"{line}\n" for line in dict.fromkeys(lines()))


def page(module: str) -> str:
    """Return the reference of a module, as Markdown for mkdocstrings; the agents of the zoo have separate pages."""
    parts = [f"---\ntitle: {module}\n---", f"# {module}", f"{modules()[module][:1].upper()}{modules()[module][1:]}"]
    elsewhere = {}
    if module == "cbo_gym.agents":
        elsewhere = {path.partition(":")[2]: f"../agents/{name}.md" for name, path in zoo().items()}
        links = [f"[{name}]({address})" for name, address in elsewhere.items()]
        parts.append(f"Agents have separate pages: {', '.join(links)}.")
    rows, objects = [], []
    for name in names(module):
        value = getattr(import_module(module), name)
        home, qualname = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        if qualname and home.startswith("cbo_gym") and name not in elsewhere:
            rows.append([f"[`{name}`](#{name})", plain((inspect.getdoc(value) or "").partition("\n\n")[0])])
            objects.append(f"## {name} {{ #{name} }}\n\n::: {home}.{qualname}")
    return "\n\n".join([*parts, table(["name", "summary"], rows, left=2), *objects, ""])


def pages() -> dict[str, str]:
    """Return address in the site -> Markdown."""
    return {f"api/{module}.md": page(module) for module in modules()}


def write() -> None:
    """Write the list of the stable names."""
    write_text(LIST, listing())
