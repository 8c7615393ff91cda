"""Suites: named lists of environments with the number of rounds, seeds and metric, read from ``suites.yaml``.

Each paper has a suite, and the suite ``all`` has every environment. ``cbo-gym sweep FOLDER --suite survey2026`` plays a
suite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, PositiveInt, ValidationError

from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.labels import ENVS_LISTED_BY, Spec, expand, matches
from cbo_gym.envs.registry import RegistryError, entries, find_entry, is_custom
from cbo_gym.errors import ArgumentError, did_you_mean, name_hint
from cbo_gym.evaluation.seed_ranges import PUBLICATION, is_for_publication

FILE_NAME = "suites.yaml"
Metric = Literal["average_regret", "simple_regret", "best_so_far_regret", "score", "average_score", "gap"]


class SuiteError(ArgumentError):
    """A file of suites is invalid, or has no suite with a given name."""


class Suite(StrictModel):
    """A named list of environments.

    Attributes:
        name: Lower case letters, digits and hyphens.
        title: Short title.
        paper: Paper whose benchmark it is, if any.
        description: A few sentences.
        environments: Ids, optionally with parameters, or patterns of ids, such as ``CBO/Alpine2*``.
        horizon: Number of rounds; None for the registered number of each environment.
        seeds: Number of seeds, counted from 0, or from ``first_seed``.
        verdict_seeds: Which runs its verdicts and tables use: ``"publication"`` for the seeds and instances that are
            kept for publication, see :mod:`cbo_gym.evaluation.seed_ranges`; ``"any"`` for all seeds, although some may
            have influenced the defaults of agents.
        first_seed: First seed and first instance for publication that its verdicts use; a larger one if runs with
            earlier seeds existed before the suite's claims were written.
        metric: Metric by which agents are compared; ``gap`` is GAP and PA-GAP of
            :mod:`cbo_gym.evaluation.metrics.gap`.
        references: Environment -> reward that its paper uses in place of the optimum, in the sense of maximisation.
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

    def seed_numbers(self) -> range:
        """Return the suite's seeds."""
        first = self.first_seed if self.verdict_seeds == "publication" else 0
        return range(first, first + self.seeds)

    def select(self, patterns: Sequence[str]) -> list[str]:
        """Return the labels of the suite's environments that match one of the patterns."""
        labels = self.labels()
        if unmatched := [pattern for pattern in patterns if not any(matches(label, [pattern]) for label in labels)]:
            listed_by = f"cbo-gym suites {self.name}"
            raise SuiteError(f"the suite {self.name} has no {unmatched[0]}{name_hint(unmatched[0], labels, listed_by)}")
        return [label for label in labels if matches(label, patterns)]

    def rounds(self, label: str) -> int:
        """Return the number of rounds on an environment; 0 if neither the suite nor the registry has a number."""
        if self.horizon is not None:
            return self.horizon
        entry = find_entry(Spec.from_label(label).name)
        return entry.horizon if entry else 0

    def counts(self, seed: int, label: str) -> bool:
        """Return whether a run with a seed on an environment is used for the suite's verdicts and tables."""
        return self.verdict_seeds == "any" or is_for_publication(seed, Spec.from_label(label).keywords, self.first_seed)

    def labels(self) -> list[str]:
        """Return the labels of the suite's environments, with patterns expanded."""
        known = [entry.id for entry in entries()]
        specs = [Spec.parse(label) for label in expand(self.environments, known, ENVS_LISTED_BY)]
        if unknown := [spec.name for spec in specs if spec.name not in known and not is_custom(spec.name)]:
            hints = did_you_mean(unknown[0], known)
            raise ArgumentError(f"field environments: not registered: {', '.join(unknown)}{hints}; see cbo-gym list")
        labels = list(dict.fromkeys(map(str, specs)))
        if unmatched := [label for label in self.references if label not in labels]:
            raise ArgumentError(f"field references: {', '.join(unmatched)} is not one of the environments")
        return labels


def suites_path() -> Path:
    """Return the path of suites.yaml: inside the installed package, or at the top of a checkout."""
    packaged = Path(__file__).with_name(FILE_NAME)
    return packaged if packaged.is_file() else packaged.parents[2] / FILE_NAME


def load(name: str, path: Path | None = None) -> Suite:
    """Return a suite.

    Args:
        name: Name of the suite, such as ``"survey2026"``.
        path: File of suites; None for the package's own.

    Raises:
        SuiteError: if there is no such suite, or a field or an id in it is invalid. The message names the file, the
            suite and the field.
    """
    path = path or suites_path()
    suites = _read_items(path)
    if name not in suites:
        listed_by = "cbo-gym suites" if path == suites_path() else str(path)
        raise SuiteError(f"no suite is called {name!r}{name_hint(name, suites, listed_by)}")
    return _parse(path, name, suites[name])


def load_all(path: Path | None = None) -> tuple[Suite, ...]:
    """Return all suites of a file, or of the package, in order; the errors are those of :func:`load`."""
    path = path or suites_path()
    return tuple(_parse(path, name, item) for name, item in _read_items(path).items())


@cache
def package_references() -> Mapping[str, float]:
    """Return environment -> reference of all suites of the package, see :attr:`Suite.references`."""
    return {label: value for suite in _package_suites() for label, value in suite.references.items()}


@cache
def _package_suites() -> tuple[Suite, ...]:
    """Return the suites of the package without checking their environments, which takes long."""
    return tuple(map(Suite.model_validate, _read_items(suites_path()).values()))


def is_compared_by(metric: Metric, label: str) -> bool:
    """Return whether an environment, with or without parameters, is in a suite of the package with this metric."""
    return any(suite.metric == metric and matches(label, suite.environments) for suite in _package_suites())


def _read_items(path: Path) -> dict[str, Any]:
    """Return the suites of a file, by name."""
    try:
        loaded = read_yaml(path)
    except ArgumentError as error:
        raise SuiteError(f"cannot read {path}: {error}") from error
    if not isinstance(loaded, list):
        raise SuiteError(f"{path} must hold a list of suites; it holds {type(loaded).__name__}")
    suites: dict[str, Any] = {}
    for number, item in enumerate(loaded, start=1):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise SuiteError(f"{path}, suite {number} has no name")
        if name in suites:
            raise SuiteError(f"{path}: the suite {name} is given twice")
        suites[name] = item
    return suites


def _parse(path: Path, name: str, item: object) -> Suite:
    try:
        suite = Suite.model_validate(item)
        # This raises an error for environments that are not registered.
        suite.labels()
        return suite
    except ValidationError as error:
        raise SuiteError(f"{path}, suite {name}: {field_errors(error, Suite)}") from error
    except RegistryError:
        # The registry is invalid, not this file.
        raise
    except ArgumentError as error:
        raise SuiteError(f"{path}, suite {name}: {error}") from error
