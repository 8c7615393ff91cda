"""suites.yaml: named lists of environments, with how they are played and by what they are compared.

A suite is what ``cbo-gym sweep FOLDER --suite survey2026`` plays: one for each paper, and ``all``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, PositiveInt, ValidationError

from cbo_gym.errors import ArgumentError, did_you_mean, nearby
from cbo_gym.labels import ENVS_LISTED_BY
from cbo_gym.registry import RegistryError, entries, find_entry, is_custom
from cbo_gym.seed_ranges import PUBLICATION, is_for_publication
from cbo_gym.specs import Spec, expand, matches
from cbo_gym.validation import StrictModel, field_errors
from cbo_gym.yaml_files import read_yaml

FILE_NAME = "suites.yaml"
Metric = Literal["average_regret", "simple_regret", "best_so_far_regret", "score", "average_score", "gap"]


class SuiteError(ArgumentError):
    """A file of suites is broken, or there is no suite of a name."""


class Suite(StrictModel):
    """A named list of environments.

    Attributes:
        name: lower case letters, digits and hyphens.
        title: in a few words.
        paper: whose benchmark it is, if it is one's.
        description: in a few sentences.
        environments: ids, with keywords where wanted, or patterns of ids, as in ``CBO/Alpine2*``.
        horizon: rounds; None for the registered number of each environment.
        seeds: how many: counted from 0, or from the first that is for publication.
        verdict_seeds: which seeds, and which instances of random families, its verdicts and tables take: those for
            ``"publication"`` alone, see :mod:`cbo_gym.seed_ranges`, or ``"any"``, of which some may have chosen
            defaults.
        first_seed: of those for publication, and of such instances, which one its verdicts begin with: a later one
            where its claims were written when earlier ones had been played.
        metric: by which agents are compared; ``gap`` is GAP and PA-GAP of :mod:`cbo_gym.evaluation.metrics.gap`.
        references: environment -> what its paper scores by in place of the optimum, where it does, for rewards that
            are maximised.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    title: str
    paper: str = ""
    description: str
    environments: Annotated[list[str], Field(min_length=1)]
    horizon: PositiveInt | None = None
    seeds: PositiveInt
    verdict_seeds: Literal["publication", "any"] = "any"
    first_seed: Annotated[int, Field(ge=PUBLICATION.start, lt=PUBLICATION.stop)] = PUBLICATION.start
    metric: Metric
    references: dict[str, FiniteFloat] = {}

    def seed_numbers(self, count: int | None = None) -> range:
        """The seeds that it is played with; the first so many of them, if that is said."""
        first = self.first_seed if self.verdict_seeds == "publication" else 0
        return range(first, first + (self.seeds if count is None else count))

    def rounds(self, label: str) -> int:
        """How many an environment is played for; 0 for one that is not registered, where the suite names no number."""
        if self.horizon is not None:
            return self.horizon
        entry = find_entry(Spec.told(label).name)
        return entry.horizon if entry else 0

    def takes(self, seed: int, label: str) -> bool:
        """Whether a run of a seed on an environment counts for its verdicts and tables."""
        return self.verdict_seeds == "any" or is_for_publication(seed, Spec.told(label).keywords, self.first_seed)

    def labels(self) -> list[str]:
        """The environments as results name them, patterns written out.

        Raises:
            ArgumentError: if one cannot be read, is not registered, or if a reference is of no environment here.
        """
        known = [entry.id for entry in entries()]
        specs = [Spec.parse(text) for text in expand(self.environments, lambda: known, ENVS_LISTED_BY)]
        if unknown := [spec.name for spec in specs if spec.name not in known and not is_custom(spec.name)]:
            hints = did_you_mean(unknown[0], known)
            raise ArgumentError(f"field environments: not registered: {', '.join(unknown)}{hints}; see cbo-gym list")
        labels = list(dict.fromkeys(map(str, specs)))
        if strange := [label for label in self.references if label not in labels]:
            raise ArgumentError(f"field references: {', '.join(strange)} is none of the environments")
        return labels


def suites_path() -> Path:
    """Where suites.yaml lies: inside the installed package, or at the top of a checkout."""
    packaged = Path(str(files("cbo_gym"))) / FILE_NAME
    return packaged if packaged.is_file() else packaged.parent.parent / FILE_NAME


def load(name: str, path: Path | None = None) -> Suite:
    """One suite.

    Args:
        name: of the suite, such as ``"survey2026"``.
        path: of a file of suites; None for the package's own.

    Raises:
        SuiteError: if there is none of the name, or something is wrong with it: a field, or an id that is not
            registered. The message names the file, the suite and the field.
    """
    path = path or suites_path()
    found = _items(path)
    if name not in found:
        listed_by = "cbo-gym suites" if path == suites_path() else str(path)
        raise SuiteError(f"no suite is called {name!r}{nearby(name, found, listed_by)}")
    return _parse(path, name, found[name])


def load_all(path: Path | None = None) -> tuple[Suite, ...]:
    """Every suite of a file, in its order; None for the package's own. Raises as :func:`load` does."""
    path = path or suites_path()
    return tuple(_parse(path, name, item) for name, item in _items(path).items())


@cache
def own_references() -> Mapping[str, float]:
    """Environment -> what its paper scores by in place of the optimum, of all suites of the package."""
    return {label: value for suite in _own() for label, value in suite.references.items()}


@cache
def _own() -> tuple[Suite, ...]:
    """The package's own; whether their environments are registered matters to nobody who reads results."""
    return tuple(map(Suite.model_validate, _items(suites_path()).values()))


def is_compared_by(metric: Metric, label: str) -> bool:
    """Whether an environment, with its keywords or without, is in a suite of the package with that metric."""
    return any(suite.metric == metric and matches(label, suite.environments) for suite in _own())


def _items(path: Path) -> dict[str, Any]:
    """The contents of a file of suites, by name."""
    try:
        loaded = read_yaml(path)
    except ArgumentError as error:
        raise SuiteError(f"cannot read {path}: {error}") from error
    if not isinstance(loaded, list):
        raise SuiteError(f"{path} must hold a list of suites; it holds {type(loaded).__name__}")
    named: dict[str, Any] = {}
    for place, item in enumerate(loaded, start=1):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise SuiteError(f"{path}, suite {place} has no name")
        if name in named:
            raise SuiteError(f"{path}: the suite {name} is given twice")
        named[name] = item
    return named


def _parse(path: Path, name: str, item: object) -> Suite:
    try:
        suite = Suite.model_validate(item)
        suite.labels()  # raises
        return suite
    except ValidationError as error:
        raise SuiteError(f"{path}, suite {name}: {field_errors(error, Suite)}") from error
    except RegistryError:  # that file is broken, not this one
        raise
    except ArgumentError as error:
        raise SuiteError(f"{path}, suite {name}: {error}") from error
