"""The grid of a sweep: agents, environments and seeds as a list of jobs, each with all that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym

from cbo_gym.agent_finder import create_agent, find_agent, known_agents, modes_of, usable_agents
from cbo_gym.agents.zoo import zoo
from cbo_gym.arguments import MAX_SEEDS, seed_number, whole_number
from cbo_gym.envs.making import env_spec, make_env, rounds_of
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.play.agent_sources import Handed, handed_over, import_path, in_a_list
from cbo_gym.evaluation.play.blind import secret_of, turned
from cbo_gym.evaluation.play.isolated import LISTING_SECONDS, MAKING_SECONDS, described
from cbo_gym.evaluation.play.processes import DiedError, Limits, Worker
from cbo_gym.evaluation.play.runner import problem_of
from cbo_gym.evaluation.runs.recorded import Recorded
from cbo_gym.evaluation.runs.results import Recommend, asked_after, last_line, run_name
from cbo_gym.evaluation.runs.revisions import forget_sources, is_of_package, is_our_own, modules_of, sources
from cbo_gym.labels import AGENTS_LISTED_BY, ENVS_LISTED_BY, Spec, expand
from cbo_gym.registry import entries
from cbo_gym.suites import Suite


class Player(NamedTuple):
    """Everything that a sweep has to know of an agent.

    Attributes:
        modules: in which it is defined.
        modes: the feedback modes that it plays, by its own word; empty if it says nothing.
        isolated: whether it is somebody else's, and so plays in a process of its own.
        handed: the agent, where no other process can import it.
    """

    modules: frozenset[str]
    modes: tuple[str, ...]
    isolated: bool
    handed: Handed | None = None


class Cell(NamedTuple):
    """Everything that a sweep has to know of an environment with a seed.

    Attributes:
        env: its name and keywords, the instance of blind play included.
        seed: of the run.
        secret: of blind play; empty for play that is not.
        mode: its feedback mode.
        horizon: number of rounds.
        problem: what it is made with: an import path, or the path of a file.
    """

    env: Spec
    seed: int
    secret: str
    mode: str
    horizon: int
    problem: object


@dataclass(frozen=True)
class Job:
    """One cell of the grid, and what follows from it.

    Attributes:
        recommend, batch, checkpoint_every: as of :func:`sweep`.
        mode: the environment's feedback mode.
        sources: name and stamp of the code it is played with, see
            :func:`cbo_gym.evaluation.runs.revisions.sources`.
        folder: where its run is kept.
        modes: those that the agent says it plays; empty if it says nothing.
        isolated: whether the agent is somebody else's, and so plays in a process of its own.
        leaves_no_trace: whether a process that played it is as it was.
        secret: of blind play, see :mod:`cbo_gym.evaluation.play.blind`; empty for play that is not.
        recorded: actions that are played instead of the agent's, whose run they were.
        handed: the agent, where no other process can import it.
    """

    agent: Spec
    env: Spec
    seed: int
    horizon: int
    recommend: Recommend
    mode: str
    sources: tuple[tuple[str, str], ...]
    folder: Path
    modes: tuple[str, ...] = ()
    isolated: bool = False
    leaves_no_trace: bool = True
    secret: str = ""
    recorded: Recorded | None = None
    handed: Handed | None = None
    batch: int = 1
    checkpoint_every: int | None = None

    @property
    def path(self) -> Path:
        """The file of its run."""
        what = (str(self.agent), str(self.env), self.seed, self.horizon, self.recommend, dict(self.sources))
        return self.folder / run_name(*what, self.batch)


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
    """The grid as a list of jobs, repeated cells left out; raises as :func:`sweep` does."""
    if isinstance(envs, Suite):
        seeds = envs.seed_numbers() if seeds is None else seeds
        horizon = envs.horizon if horizon is None else horizon
        envs = envs.environments
    if seeds is None:
        raise ArgumentError("give the seeds; only a suite has seeds of its own")
    env_specs = _environments(envs, horizon)
    seed_list = seeds_in(seeds)
    asked_after(recommend, 1)  # raises for another word
    whole_number("batch", batch, at_least=1)
    forget_sources()  # they may have been edited since the last sweep
    players = _players(agents)
    if not (players and env_specs and seed_list):
        raise ArgumentError("give at least one agent, one environment and one seed")
    there: set[tuple[Any, ...]] = set()
    if skip_published is not None:
        from cbo_gym.evaluation.store.published import load_published  # late: slow to import, and needed only here

        # Those that failed are played again.
        runs = (run for run in load_published(skip_published) if run.status != "failed")
        there = {(run.agent, run.env, run.seed, run.horizon, run.recommend, run.batch) for run in runs}
    return [
        job_of(agent, player, cell, recommend, folder, batch)
        for cells in _cells(env_specs, seed_list, horizon, blind)
        for agent, player in players.items()
        for cell in cells
        if (str(agent), str(cell.env), cell.seed, cell.horizon, recommend, batch) not in there
    ]


def job_of(agent: Spec, player: Player, cell: Cell, recommend: Recommend, folder: Path, batch: int = 1) -> Job:
    """The job of an agent in a cell."""
    code = sources(player.modules, cell.problem, cell.env) | dict(player.handed.stamps if player.handed else ())
    return Job(
        agent=agent,
        env=cell.env,
        seed=cell.seed,
        horizon=cell.horizon,
        recommend=recommend,
        mode=cell.mode,
        sources=tuple(code.items()),
        folder=folder,
        modes=player.modes,
        isolated=player.isolated,
        leaves_no_trace=is_our_own(cell.problem) and (player.isolated or all(map(is_of_package, code))),
        secret=cell.secret,
        handed=player.handed,
        batch=batch,
    )


def seeds_in(seeds: Iterable[int] | int) -> list[int]:
    """Each seed once; a number counts them from 0.

    Raises:
        ArgumentError: if one is no seed, or there are more than :data:`~cbo_gym.arguments.MAX_SEEDS`.
    """
    counted = (
        seeds if isinstance(seeds, Iterable) else range(whole_number("seeds", seeds, at_least=1, at_most=MAX_SEEDS))
    )
    return list(dict.fromkeys(seed_number(seed, "seeds") for seed in counted))


def player_of(spec: Spec, seconds: float = MAKING_SECONDS) -> Player:
    """Of an agent, which can be made; one that is not of this package in a process of its own, in so many seconds."""
    if spec.name in zoo():
        return Player(modules_of(create_agent(spec), spec), modes_of(find_agent(spec.name)), isolated=False)
    return Player(*described(spec, seconds), isolated=True)


def _players(agents: Any) -> dict[Spec, Player]:
    players: dict[Spec, Player] = {}
    for label, given in in_a_list(agents):
        if label is not None and isinstance(given, str | Spec):
            raise ArgumentError(f"{given} is called what it is named by; a label is for an agent without a name")
        path = given if isinstance(given, str | Spec) else None if label else import_path(given)
        if isinstance(path, str) and path.startswith("__main__:"):  # which no other process knows
            given, path = find_agent(path), None
        if path is not None:
            players |= {spec: player_of(spec) for spec in _named(path) if spec not in players}
        else:
            spec, handed = handed_over(given, label, map(str, players))
            players[spec] = Player(handed.modules, handed.modes, isolated=bool(handed.payload), handed=handed)
    return players


def _named(one: str | Spec) -> list[Spec]:
    if isinstance(one, str) and (fitting := expand([one], known_agents, AGENTS_LISTED_BY)) != [one]:
        return list(map(Spec, usable_agents(partial(player_of, seconds=LISTING_SECONDS), fitting)))
    return [one if isinstance(one, Spec) else Spec.parse(one)]


def _cells(envs: Iterable[Spec], seeds: Sequence[int], horizon: int | None, blind: str | None) -> Iterator[list[Cell]]:
    """For each environment the cells of all seeds; in blind play each has an instance of its own."""
    for env in dict.fromkeys(envs):
        if blind is None:
            first = cell_of(env, 0, horizon)
            yield [first._replace(seed=seed) for seed in seeds]
        else:
            secrets = [(seed, secret_of(blind, env, seed)) for seed in seeds]
            yield [cell_of(turned(env, secret), seed, horizon, secret) for seed, secret in secrets]


def _environments(named: Any, horizon: int | None) -> list[Spec]:
    """Texts, with ``*`` and ``?`` in them, as what they stand for; Specs, and environments that are made, as theirs."""
    known = [entry.id for entry in entries()]
    if isinstance(named, str | Spec) or not isinstance(named, Iterable):
        named = [named]
    specs: list[Spec] = []
    for one in named:
        texts = expand([one], lambda: known, ENVS_LISTED_BY) if isinstance(one, str) else [one]
        specs += map(env_spec, texts)
        own = rounds_of(one)
        if horizon is None and own is not None and own != gym.spec(specs[-1].name).max_episode_steps:
            raise ArgumentError(f"{specs[-1]} was made with {own} rounds; give all runs of the sweep a horizon={own}")
    return specs


def cell_of(env: Spec, seed: int, horizon: int | None, secret: str = "") -> Cell:
    """The cell of an environment and a seed.

    Raises:
        ArgumentError: if the environment cannot be made.
    """
    made: Any = make_env(env, horizon)
    made.close()
    return Cell(env, seed, secret, str(made.unwrapped.mode), made.spec.max_episode_steps, problem_of(made))


def cells_of_strangers(limits: Limits) -> Callable[[Spec, int, int, str], Cell]:
    """The cells of :func:`cell_of` by environment, seed, horizon and secret, where a stranger names the environment.

    Each is made in a process of its own first, with limits of time and memory, once for all seeds.

    Args:
        limits: of making one.
    """
    worker = Worker(limits)

    @cache
    def made(env: Spec, horizon: int) -> Cell:
        try:
            return Cell(env, 0, "", *worker.call(_first_cell, (env, horizon)))
        except DiedError as error:
            raise ArgumentError(f"cannot make the environment {env}: {last_line(str(error))}") from error

    return lambda env, seed, horizon, secret: made(env, horizon)._replace(seed=seed, secret=secret)


def _first_cell(what: tuple[Spec, int]) -> tuple[str, int, object]:
    env, horizon = what
    cell = cell_of(env, 0, horizon)
    return cell.mode, cell.horizon, cell.problem
