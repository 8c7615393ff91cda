"""Rounds of earlier campaigns: which of their values hold for this system too, although some mechanisms differ.

The differing mechanisms form a selection diagram (Bareinboim & Pearl 2016): a selection node points at each node whose
mechanism differs. Variables that were set are cut from their causes. A node has the same distribution in both systems
if no selection node then has a directed path to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.scm import CausalDiagram
from cbo_gym.study.units import Units
from cbo_gym.task import Action, Observation

# Agents that learn the mechanism of each node by itself.
LEARN_MECHANISMS = ("MCBO", "EIFN", "CBO")


class UnusedDataWarning(UserWarning):
    """The agent of a study learns nothing from some of the past rounds."""


class Difference(NamedTuple):
    """What a round of an earlier campaign cannot tell about this system.

    Attributes:
        mechanisms: nodes whose mechanisms differ in that campaign.
        values: nodes whose expected values under the action may differ: those of ``mechanisms``, and their descendants.
    """

    mechanisms: frozenset[str]
    values: frozenset[str]


class LearnedRound(NamedTuple):
    """A round as an agent learns it.

    Attributes:
        observation: what the agent observes.
        is_partial: whether it has no reward that the agent may learn.
    """

    observation: Observation
    is_partial: bool


@dataclass(frozen=True)
class Campaign:
    """The rounds of an earlier campaign in which the same mechanisms differ.

    Attributes:
        name: name of the campaign.
        differs: the variables whose mechanisms differ.
        rounds: number of rounds.
        full: number of rounds that the agent learns with their reward.
        partial: number of rounds from which the agent learns only the mechanisms or variables that do not differ.
    """

    name: str
    differs: tuple[str, ...]
    rounds: int
    full: int
    partial: int

    @property
    def use(self) -> str:
        """How many rounds the agent learns, in words."""
        unused = self.rounds - self.full - self.partial
        counts = {"as a whole": self.full, "in part": self.partial, "not at all": unused}
        return ", ".join(f"{count} {how}" for how, count in counts.items() if count)

    def __str__(self) -> str:
        change = f"{', '.join(self.differs)}: another mechanism" if self.differs else "all mechanisms are the same"
        return f"{self.name}: {self.rounds} {'round' if self.rounds == 1 else 'rounds'}; {change}; learned: {self.use}"


def difference(units: Units, record: Mapping[str, Any]) -> Difference:
    """Return the difference between a round's system and this one; empty for a round of this campaign."""
    if not record.get("differs"):
        return Difference(frozenset(), frozenset())
    done = units.native_values(units.from_flat(record["action"])) if units.interface.sets_variables else ()
    return _difference(units.interface.knowledge.diagram, units.interface.nodes, (*record["differs"],), frozenset(done))


@lru_cache(maxsize=1000)
def _difference(
    diagram: CausalDiagram | None, nodes: tuple[str, ...], differs: tuple[str, ...], done: frozenset[str]
) -> Difference:
    differing = frozenset(differs) - done
    if not differing:
        return Difference(differing, differing)
    if diagram is None:
        # Any variable may depend on any other.
        unknown = frozenset(nodes) - done
        return Difference(unknown, unknown)
    cut = diagram.mutilate(done)
    # The noise of a node may come from a latent cause, which other nodes share.
    confounded = frozenset[str]().union(*(pair for pair in cut.bidirected if pair & differing))
    return Difference(differing | confounded, cut.descendants(differing | confounded))


def shows_reward(units: Units, record: Mapping[str, Any]) -> bool:
    """Return whether a round is complete, and all objectives were measured."""
    return is_complete(units, record) and not units.unknown_objectives(record["values"])


def is_complete(units: Units, record: Mapping[str, Any]) -> bool:
    """Return whether a round shows the outcome that an action of this study has in this system.

    Otherwise the outcome was not measured, its mechanism may differ, or the study cannot suggest the action.
    """
    action = units.from_flat(record["action"])
    is_same = difference(units, record).values.isdisjoint(units.objectives)
    return is_same and not units.missing_outcome(action, record["values"]) and not observes_only(action)


def observes_only(action: Action) -> bool:
    """Return whether an action sets nothing although no target is empty, see :meth:`Units.past_action`."""
    return isinstance(action, dict) and int(action.get("target", 0)) < 0


def round_for_agent(agent: Any, units: Units, record: Mapping[str, Any], context: Any = None) -> LearnedRound | None:
    """Return a round as an agent learns it, None if it learns nothing; ``context`` replaces that of the observation."""
    mechanisms, values = difference(units, record)
    is_partial, observes = not is_complete(units, record), observes_only(units.from_flat(record["action"]))
    learns_mechanisms = getattr(agent, "learns_mechanisms", False)
    if observes and not learns_mechanisms:
        return None
    observation, nodes = units.observation(record, context), units.interface.nodes
    if mechanisms and learns_mechanisms:
        return LearnedRound({**observation, "differs": np.isin(nodes, list(mechanisms))}, is_partial)
    if values:
        # Hide the values that may differ.
        observation["nodes"] = np.where(np.isin(nodes, list(values)), np.nan, observation["nodes"])
        if not is_partial and not getattr(agent, "takes_missing", False):
            return None
    if is_partial and not observes and not getattr(agent, "takes_partial", False):
        return None
    return LearnedRound(observation, is_partial)


def campaigns_of(records: Sequence[Mapping[str, Any]], learned: Sequence[LearnedRound | None]) -> list[Campaign]:
    """Group rounds by campaign, and count how many of each an agent learns; ``learned`` has None for the others."""
    groups: dict[tuple[str, tuple[str, ...]], list[LearnedRound | None]] = {}
    for record, learned_round in zip(records, learned, strict=True):
        groups.setdefault((record["campaign"], tuple(record.get("differs", ()))), []).append(learned_round)
    campaigns = []
    for (name, differs), group in groups.items():
        are_partial = [learned_round.is_partial for learned_round in group if learned_round is not None]
        campaigns.append(Campaign(name, differs, len(group), are_partial.count(False), are_partial.count(True)))
    return campaigns


def describe_unused(units: Units, unused: Sequence[Mapping[str, Any]], count: int, learners: str) -> str:
    """Return a warning that the agent learns nothing from ``unused`` ones of ``count`` past rounds."""
    names = sorted({name for record in unused for name in record.get("differs", ())})
    reasons = []
    if names:
        reasons.append(f"another mechanism of {', '.join(names)} may change {' or '.join(units.objectives)} there")
    if any("differs" not in record for record in unused):
        name = units.settable[0]
        reasons.append(f"they only observe, and no target is empty; if {name} was set, its column is do({name})")
    return (
        f"{units.description.agent} learns nothing from {len(unused)} of {count} past rounds: {'; '.join(reasons)}; "
        f"they are kept. Agents that learn single mechanisms: {learners}"
    )
