"""LinearSEMAgent: the base class of the methods of subset mode that fit a linear system.

An action of subset mode is a set of nodes. Every node is a linear function of its causes with one vector of weights if
it is in the set, and with another one if it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cbo_gym.actions.spaces import SuperArmSpace
from cbo_gym.agent import Agent
from cbo_gym.agent_registry.zoo import name_of
from cbo_gym.agents.subsets.regressions import SwitchedRegressions
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Action, Info, Mode, Observation, SubsetTask


def enumerable_space(task: SubsetTask, max_subsets: int, agent: str) -> SuperArmSpace:
    """Return the action space for a method that enumerates the subsets; raise ArgumentError if there are too many.

    Args:
        task: task of subset mode.
        max_subsets: the largest number of subsets allowed.
        agent: start of the error message, such as ``"SubsetUCB keeps a mean for every subset"``.
    """
    space = task.action_space
    assert isinstance(space, SuperArmSpace)
    if space.count > max_subsets:
        raise ArgumentError(
            f"{agent} and takes at most {max_subsets}; {task.env_id} has {space.count}: make it with fewer nodes"
        )
    return space


class LinearSEMAgent(Agent):
    """Base class of the agents that fit the two vectors of weights of every node. Plays subset mode.

    Attributes:
        model: the regressions, on the causes of the diagram unless :meth:`fit_to` is called.

    Raises:
        UnsupportedModeError: from ``reset``, if a node has several parameters.
    """

    modes = frozenset({Mode.SUBSET})
    task: SubsetTask
    model: SwitchedRegressions

    def setup(self, seed: int) -> None:
        diagram = self.task.diagram
        self.fit_to({name: diagram.parents(name) for name in diagram.nodes})

    def fit_to(self, causes: Mapping[str, Sequence[str]]) -> None:
        """Start regressions on these causes with all rounds so far."""
        self.model = SwitchedRegressions(self.task, causes, name_of(self))
        for past in self.history:
            self.model.learn(past.action, past.observation["nodes"])

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.model.learn(action, observation["nodes"])

    def recommend(self) -> Action:
        """Return the best subset by the estimates, played or not."""
        return self.model.subset(self.model.network.best(self.model.estimates).options)

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        return {self.task.nodes[column]: value for column, value in self.model.expected_nodes(action).items()}
