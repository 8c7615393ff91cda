"""Partial mode: the nodes of a function network are bought one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from cbo_gym._util.arguments import require_positive, require_truth_value
from cbo_gym.actions import Costs, Domains
from cbo_gym.actions.codec import Actions, PurchaseCodec, Record
from cbo_gym.actions.costs import Changed
from cbo_gym.actions.reading import as_choice, as_choices
from cbo_gym.actions.spaces import unit_box
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.interface import Description, Region
from cbo_gym.modes.base.parametric import ParametricInterface
from cbo_gym.modes.base.pricing import Priceable
from cbo_gym.problems.base import ModeData, ProblemStatement
from cbo_gym.problems.modes.partial import NodePurchases
from cbo_gym.problems.transform import Transform
from cbo_gym.scm import Intervention
from cbo_gym.scm.system import Values
from cbo_gym.task import Action, Mode, Observation, PartialTask

KEYS = ("node", "values")
# The choice of all nodes, if parts can be bought.
WHOLE = "all"
# Index that stands for a purchase beyond the budget. Arrays of choices have a last row for it.
NOTHING = -1


class PartialInterface(ParametricInterface):
    """Actions that buy a node of a function network."""

    mode = Mode.PARTIAL
    task_class = PartialTask
    remembers = True
    default_initial_data = (0, None)
    trial_description = "a variable to measure, and its inputs"
    diagram_reason = "its edges are the inputs of the variables that a trial measures"
    reserved_names = {PurchaseCodec.choice_name: "a trial has the variable that it measures"}
    codec: PurchaseCodec
    unfinished: float

    def __init__(self, problem: ProblemStatement, *, upstream: bool = True, budget: float | None = None) -> None:
        if (data := problem.data(NodePurchases)) is None:
            raise ArgumentError(
                f"{problem.name} has no NodePurchases, such as the worth of an unfinished product, so no partial mode"
            )
        if problem.knowledge is not None:
            raise ArgumentError(
                f"{problem.name}: partial mode shows agents the true graph, because its edges are the inputs of the "
                "nodes that they buy; leave out the keyword graph"
            )
        scm = problem.scm
        if latent := [name for name in scm.all_names if name not in scm.nodes]:
            raise ArgumentError(f"{problem.name}: the nodes are bought, so that none can be latent; given {latent}")
        self.upstream = require_truth_value("upstream", upstream)
        if not (self.upstream or data.ranges):
            raise ArgumentError(f"{problem.name} has no parts with ranges, so upstream must be True")
        if problem.outcomes.costs is None:
            prices = Costs(variables=dict.fromkeys(scm.nodes, 1.0))
            problem = replace(problem, outcomes=replace(problem.outcomes, costs=prices))
        self.budget = None if budget is None else float(require_positive("budget", budget))
        self.unfinished = data.unfinished
        self._data = data
        self._width = scm.action_dim
        super().__init__(problem)
        self._absent = {name: data.absent.get(name, 0.0) for name in scm.nodes} | {scm.reward: data.unfinished}

    @classmethod
    def study_data(cls, lowest: float) -> Sequence[ModeData]:
        """Return data in which an unfinished product has a lower reward than any measured one."""
        return [NodePurchases(lowest)]

    @property
    def priced_items(self) -> Sequence[str]:
        """The nodes that are measured: all but a known composition."""
        is_known = self.problem.composition is not None
        return [name for name in self.scm.nodes if not (is_known and name == self.scm.reward)]

    @cached_property
    def purchases(self) -> Mapping[str, frozenset[str]]:
        """Choice -> the nodes that are made if nothing has been made before, the last one all nodes."""
        nodes, diagram = self.scm.nodes, self.scm.diagram
        if self.upstream:
            return {node: frozenset(diagram.ancestors([node])) for node in nodes}
        return {**{node: frozenset({node}) for node in nodes}, WHOLE: frozenset(nodes)}

    @property
    def parts(self) -> Sequence[str]:
        """The nodes that can be bought as parts."""
        return () if self.upstream else [node for node in self.scm.nodes if node in self._data.ranges]

    def make_codec(self) -> PurchaseCodec:
        domains = parameters = self.require_parameters()
        if self.parts:
            ranges = {node: self._data.ranges[node] for node in self.parts}
            domains = Domains({**dict(zip(parameters.names, parameters.intervals, strict=True)), **ranges})
            if len(domains) < len(parameters) + len(ranges):
                raise ArgumentError(
                    f"{self.problem.name}: a node and a parameter share a name, so parts cannot be bought"
                )
        box = unit_box(domains.levels)
        space = spaces.Dict({"node": spaces.Discrete(len(self.purchases)), "values": box})
        return PurchaseCodec(space, domains, KEYS[0], self._input_sets(parameters.names), list(self.purchases))

    def _input_sets(self, names: Sequence[str]) -> list[frozenset[str]]:
        """Return the inputs that matter for each choice: parameters of the nodes it makes, and bought parts."""
        sets = []
        for choice, nodes in self.purchases.items():
            parameters = {names[i] for node in nodes for i in self.scm.action_nodes.get(node, ())}
            bought = set() if choice == WHOLE or self.upstream else set(self.scm.diagram.parents(choice))
            sets.append(frozenset(parameters | bought))
        return sets

    @cached_property
    def _makes(self) -> np.ndarray:
        """Whether each choice makes each node if the stock is empty; the last row is for ``NOTHING``."""
        made = [[node in nodes for node in self.scm.nodes] for nodes in self.purchases.values()]
        return np.array([*made, [False] * len(self.scm.nodes)])

    @cached_property
    def _matters(self) -> np.ndarray:
        """Whether each input matters for each choice; the last row is for ``NOTHING``."""
        return np.array([[name in inputs for name in self.domains.names] for inputs in (*self.codec.sets, ())])

    @cached_property
    def _inputs(self) -> list[list[tuple[int, str]]]:
        """Index and name of the inputs that matter for each choice; the last list is for ``NOTHING``."""
        numbered = list(enumerate(self.domains.names))
        return [[(index, name) for index, name in numbered if name in inputs] for inputs in (*self.codec.sets, ())]

    def decode(self, action: Action) -> Intervention:
        index, point = as_choice(action, KEYS, len(self.purchases), self.domains.names)
        return self._intervention(float(index), self.domains.to_native(point))

    def decode_batch(self, actions: Actions) -> Intervention:
        chosen, values, inside = as_choices(actions, KEYS, len(self.purchases), len(self.domains))
        self.require_inside(inside, "action {}", node=chosen, values=values)
        return self._intervention(chosen.astype(float), self.domains.to_native(values.T))

    def _intervention(self, choice: Any, native: Sequence[Any]) -> Intervention:
        """Return an intervention whose soft parameters are the inputs, then the choice; bought parts are set."""
        hard = {}
        for part, value in zip(self.parts, native[self._width :], strict=True):
            indices = [i for i, node in enumerate(self.scm.nodes) if part in self.scm.diagram.parents(node)]
            mask = np.isin(choice, indices)
            if mask.any():
                hard[part] = (True if mask.ndim == 0 else mask, value)
        return Intervention([*native, choice], hard)

    def made(self, intervention: Intervention) -> dict[str, Any]:
        """Return whether an intervention makes each node: a truth value, or an array of the batch's shape."""
        choice, hard = intervention.soft[-1], intervention.hard
        if type(choice) is float:
            row = zip(self.scm.nodes, self._makes_as_lists[int(choice)], strict=True)
            return {node: makes and not (node in hard and bool(hard[node][0])) for node, makes in row}
        rows = self._makes[np.asarray(choice).astype(int)]
        return {
            node: rows[..., index] & ~np.asarray(hard[node][0]) if node in hard else rows[..., index]
            for index, node in enumerate(self.scm.nodes)
        }

    @cached_property
    def _makes_as_lists(self) -> list[list[bool]]:
        return self._makes.tolist()

    def products(self, action: Action) -> dict[str, Sequence[int]]:
        chosen = self.codec.choices[self.codec.choice_index(action)]
        made = [node for node in self.scm.nodes if node in self.purchases[chosen]]
        return {node: self.entering[node] for node in made}

    @cached_property
    def entering(self) -> Mapping[str, Sequence[int]]:
        """Node -> indices of the parameters that enter it or its ancestors."""
        indices = self.scm.action_nodes
        lineages = {node: self.scm.diagram.ancestors([node]) for node in self.scm.nodes}
        return {node: sorted({i for n in lineage for i in indices.get(n, ())}) for node, lineage in lineages.items()}

    def priceable(self) -> Priceable:
        """Return the nodes; every choice must cost something if the stock is empty."""
        return Priceable({node: (node,) for node in self.scm.nodes}, list(self.purchases.values()), {}, units=False)

    def changed_items(self, intervention: Intervention) -> Changed:
        """Return the nodes that are made."""
        return {node: (mask, 0.0) for node, mask in self.made(intervention).items()}

    def after(self, nodes: np.ndarray, values: Values) -> Observation:
        if nodes.ndim == 1 and self._flags[self.scm.reward] in values:
            flags = np.array([values[flag] for flag in self._flags.values()])
        else:
            # In a study, each measured node was made.
            measured = np.isfinite(nodes)
            bought = [values.get(flag, measured[..., index]) for index, flag in enumerate(self._flags.values())]
            flags = np.stack(np.broadcast_arrays(*bought, nodes[..., 0])[:-1], axis=-1).astype(np.float64)
        return {"nodes": nodes, "bought": flags, "spent": np.zeros((*nodes.shape[:-1], 1))}

    @cached_property
    def _flags(self) -> Mapping[str, str]:
        """Node -> the name of the value that is 1 where it was made."""
        return {node: f"{node} bought" for node in self.scm.nodes}

    def empty_observation(self) -> Observation:
        return {"nodes": np.zeros(len(self.nodes)), "bought": np.zeros(len(self.nodes)), "spent": np.zeros(1)}

    def describe(self, intervention: Intervention) -> Description:
        """Return the index of the choice, -1 if nothing was bought, and the inputs that matter by name."""
        *native, choice = intervention.soft
        return {"node": int(choice), **{name: native[index] for index, name in self._inputs[int(choice)]}}

    def describe_batch(self, intervention: Intervention) -> Description:
        *native, choice = intervention.soft
        chosen = np.asarray(choice).astype(int)
        info: Description = {"node": chosen, "_node": np.ones(chosen.shape, dtype=bool)}
        for index, (name, value) in enumerate(zip(self.domains.names, native, strict=True)):
            matters = self._matters[chosen, index]
            if matters.any():
                info[name], info[f"_{name}"] = np.where(matters, value, 0.0), matters
        return info

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return by default 2q + 1 random purchases of all nodes."""
        count = 2 * self._width + 1 if random is None else random
        null = np.tile(np.array(self.problem.null_action, dtype=float), (observational, 1))
        return self.whole_actions(np.concatenate([null, rng.random((count, self._width))]))

    def whole_actions(self, points: np.ndarray) -> Actions:
        """Return a batch of purchases of all nodes with the parameters ``points`` in [0, 1], ``(n, q)``."""
        values = np.tile(self.domains.unset, (len(points), 1))
        values[:, : self._width] = points
        return {"node": np.full(len(points), len(self.purchases) - 1), "values": values}

    def regions(self) -> list[Region]:
        return [Region(self._width, self.whole_actions)]

    def transform_record(self, transform: Transform, record: Any) -> Record:
        names = [old for old, new in transform.names.items() if new in self.problem.domains.names]
        units = {name: unit for name, (_, unit) in zip(names, transform.coordinates, strict=True)}
        units |= transform.units
        inputs = {transform.names[name]: float(units[name].to_new(v)) for name, v in record.items() if name != "node"}
        return {"node": transform.names.get(record["node"], record["node"]), **inputs}

    def task_fields(self) -> dict[str, Any]:
        names = self.problem.domains.names
        return {
            **super().task_fields(),
            "action_names": names,
            "null_action": tuple(self.problem.null_action),
            "composition": self.problem.composition,
            "parts": {node: self._data.ranges[node] for node in self.parts},
            "budget": self.budget,
            "unfinished": self.unfinished,
        }
