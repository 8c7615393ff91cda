"""Plan a sweep: make the grid of agents, environments and seeds as a list of jobs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from cbo_gym._util.arguments import MAX_SEEDS, seed_number, whole_number
from cbo_gym.agent_registry.finding import create_agent, find_agent, known_agents, modes_of
from cbo_gym.agent_registry.labels import AGENTS_LISTED_BY, ENVS_LISTED_BY, Spec, expand
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.making import env_spec, make_env, rounds_of
from cbo_gym.envs.registry import entries
from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.evaluation.play.agent_sources import AgentFacts, import_path, labelled_agents, pickle_agent
from cbo_gym.evaluation.play.players import LISTING_SECONDS, MAKING_SECONDS, describe_isolated
from cbo_gym.evaluation.play.runner import problem_of
from cbo_gym.evaluation.play.seeds import draw_instance
from cbo_gym.evaluation.runs.recorded import RecordedAgent
from cbo_gym.evaluation.runs.results import Recommend, recommendation_rounds, run_name
from cbo_gym.evaluation.runs.revisions import forget_sources, is_of_package, is_package_problem, modules_of, sources
from cbo_gym.evaluation.suites import Suite


class Cell(NamedTuple):
    """An environment with a seed.

    Attributes:
        env: Id and parameters; in blind play including the instance.
        seed: Seed of the run.
        secret: Secret of blind play; empty otherwise.
        mode: Feedback mode.
        horizon: Number of rounds.
        problem: The problem of the environment: an import path, the path of a YAML file, or a Problem.
    """

    env: Spec
    seed: int
    secret: str
    mode: str
    horizon: int
    problem: object


@dataclass(frozen=True)
class Job:
    """A run to play: an agent in one cell of the grid.

    Attributes:
        agent: Name and parameters of the agent.
        facts: Facts about the agent.
        cell: Environment and seed, without the problem, which need not be importable in another process.
        recommend, batch, checkpoint_every: Arguments of :func:`sweep`.
        sources: Names and stamps of the code, see :func:`cbo_gym.evaluation.runs.revisions.sources`.
        leaves_no_trace: Whether a process that played the job can play another one, because no third-party code ran in
            it.
        folder: Folder of the run's file, if the run is stored.
        recorded: Actions to play instead of the agent's; None to play the agent.
    """

    agent: Spec
    facts: AgentFacts
    cell: Cell
    recommend: Recommend
    batch: int
    sources: tuple[tuple[str, str], ...]
    leaves_no_trace: bool
    folder: Path
    checkpoint_every: int | None = None
    recorded: RecordedAgent | None = None

    @property
    def path(self) -> Path:
        """Path of the run's file."""
        cell = self.cell
        identity = (str(self.agent), str(cell.env), cell.seed, cell.horizon, self.recommend, dict(self.sources))
        return self.folder / run_name(*identity, self.batch)


def plan(
    agents: Any,
    envs: Any,
    seeds: Iterable[int] | int | None,
    folder: Path,
    horizon: int | None = None,
    recommend: Recommend = "every",
    skip_published: Path | str | None = None,
    blind: str | None = None,
    batch: int = 1,
) -> list[Job]:
    """Return the grid of :func:`sweep` as a list of jobs without repetitions; the errors are those of :func:`sweep`."""
    if isinstance(envs, Suite):
        seeds = envs.seed_numbers() if seeds is None else seeds
        horizon = envs.horizon if horizon is None else horizon
        envs = envs.environments
    if seeds is None:
        raise ArgumentError("give the seeds; only a suite has default seeds")
    env_specs = _environments(envs, horizon)
    seed_list = seeds_in(seeds)
    # This raises an error for an unknown value of recommend.
    recommendation_rounds(recommend, 1)
    whole_number("batch", batch, at_least=1)
    # Source files may have been edited since the last sweep.
    forget_sources()
    facts_by_agent = _agents(agents)
    if not (facts_by_agent and env_specs and seed_list):
        raise ArgumentError("give at least one agent, one environment and one seed")
    published: set[tuple[Any, ...]] = set()
    if skip_published is not None:
        # Imported here, because the import is slow.
        from cbo_gym.evaluation.store.published import load_published

        # Runs that failed are played again.
        runs = (run for run in load_published(skip_published) if run.status != "failed")
        published = {(run.agent, run.env, run.seed, run.horizon, run.recommend, run.batch) for run in runs}
    return [
        job_of(agent, facts, cell, recommend, batch, folder)
        for cells in _cells(env_specs, seed_list, horizon, blind)
        for agent, facts in facts_by_agent.items()
        for cell in cells
        if (str(agent), str(cell.env), cell.seed, cell.horizon, recommend, batch) not in published
    ]


def job_of(
    agent: Spec, facts: AgentFacts, cell: Cell, recommend: Recommend, batch: int = 1, folder: Path = Path()
) -> Job:
    """Return the job of an agent in a cell."""
    code = sources(facts.modules, cell.problem, cell.env) | dict(facts.sent.stamps if facts.sent else ())
    leaves_no_trace = is_package_problem(cell.problem) and (facts.isolated or all(map(is_of_package, code)))
    cell = cell._replace(problem=None)
    return Job(agent, facts, cell, recommend, batch, tuple(code.items()), leaves_no_trace, folder)


def seeds_in(seeds: Iterable[int] | int) -> list[int]:
    """Return the seeds without repetitions; a number stands for that many seeds, counted from 0."""
    if not isinstance(seeds, Iterable):
        seeds = range(whole_number("seeds", seeds, at_least=1, at_most=MAX_SEEDS))
    return list(dict.fromkeys(seed_number(seed, "seeds") for seed in seeds))


def facts_of(spec: Spec, seconds: float = MAKING_SECONDS) -> AgentFacts:
    """Make an agent and return facts about it; a third-party agent is made in a separate process within ``seconds``."""
    if spec.name in zoo():
        return AgentFacts(modules_of(create_agent(spec), spec), modes_of(find_agent(spec.name)))
    return AgentFacts(*describe_isolated(spec, seconds), isolated=True)


def _agents(agents: Any) -> dict[Spec, AgentFacts]:
    """Return the agents that are passed to a sweep, and facts about each."""
    facts_by_agent: dict[Spec, AgentFacts] = {}
    for label, source in labelled_agents(agents):
        path: str | Spec | None = None
        if isinstance(source, str | Spec):
            path = source
            if label not in (None, str(source)):
                raise ArgumentError(f"{source} already has a name; a label is for an agent without one")
        elif not label:
            path = import_path(source)
        # No other process can import a path of __main__.
        if isinstance(path, str) and path.startswith("__main__:"):
            source, path = find_agent(path), None
        if path is not None:
            facts_by_agent |= _agents_of_label(path)
        else:
            spec, facts = pickle_agent(source, label, map(str, facts_by_agent))
            facts_by_agent[spec] = facts
    return facts_by_agent


def _agents_of_label(agent: str | Spec) -> dict[Spec, AgentFacts]:
    """Return the agents of a label or a pattern; a warning names each agent of a pattern that cannot be made."""
    if isinstance(agent, Spec):
        return {agent: facts_of(agent)}
    names = expand([agent], known_agents(), AGENTS_LISTED_BY)
    if names == [agent]:
        spec = Spec.parse(agent)
        return {spec: facts_of(spec)}
    facts_by_agent = {}
    for spec in map(Spec, names):
        try:
            facts_by_agent[spec] = facts_of(spec, LISTING_SECONDS)
        except CBOGymError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    return facts_by_agent


def _cells(envs: Iterable[Spec], seeds: Sequence[int], horizon: int | None, blind: str | None) -> Iterator[list[Cell]]:
    """Yield the cells of all seeds for each environment; in blind play each cell has its own instance."""
    for env in dict.fromkeys(envs):
        if blind is None:
            cell = cell_of(env, 0, horizon)
            yield [cell._replace(seed=seed) for seed in seeds]
        else:
            instances = [(seed, *draw_instance(blind, env, seed)) for seed in seeds]
            yield [cell_of(instance, seed, horizon, secret) for seed, instance, secret in instances]


def _environments(envs: Any, horizon: int | None) -> list[Spec]:
    """Return the environments that are passed to a sweep as strings, Specs or instances; patterns are expanded."""
    known = [entry.id for entry in entries()]
    if isinstance(envs, str | Spec) or not isinstance(envs, Iterable):
        envs = [envs]
    specs: list[Spec] = []
    for env in envs:
        specs += map(env_spec, expand([env], known, ENVS_LISTED_BY) if isinstance(env, str) else [env])
        rounds = rounds_of(env)
        if horizon is None and rounds is not None and rounds != gym.spec(specs[-1].name).max_episode_steps:
            raise ArgumentError(
                f"{specs[-1]} was made with {rounds} rounds; give all runs of the sweep a horizon={rounds}"
            )
    labels = Counter(map(str, dict.fromkeys(specs)))
    if shared := [label for label, count in labels.items() if count > 1]:
        raise ArgumentError(
            f"{labels[shared[0]]} environments have the label {shared[0]}; give their problems or functions different "
            "names, as in custom_problem(..., name='Greenhouse2')"
        )
    return specs


def cell_of(env: Spec, seed: int, horizon: int | None, secret: str = "") -> Cell:
    """Return the cell of an environment and a seed; raise ArgumentError if the environment cannot be made."""
    instance: Any = make_env(env, horizon)
    instance.close()
    return Cell(env, seed, secret, str(instance.unwrapped.mode), instance.spec.max_episode_steps, problem_of(instance))
