"""Which method for which task: for each mode a list of rules, of which the first that holds chooses.

A rule looks at what the task tells, never at its name. The other rules that hold come next, where a method refuses the
task or is too slow; ``Random`` plays everything.

Each rule carries its evidence. Scores are the leaderboard's, of the last recommendation: 0 is a random action, 1
the optimum. *Published* are means over the seeds in ``results``, which ``docs/choice_evidence.py`` computes anew;
*tried* are runs that were played besides, on one seed from 100 on, or as many as are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from cbo_gym.task import Mode, Task

Holds = Callable[[Any], bool]  # of a task of the rule's mode

MUCH_OBSERVED = 50  # time series; in what is published there are at most 10, or 100
FEW_NODES = 3  # CEO lists the graphs of at most 4 where none is told
SCARCE = 10  # rounds for each arm
FEW_TIMES = 4
MOST_SWITCHES, SINGLE_ROUNDS = 14, 500  # of GA-LCB


def always(task: Task) -> bool:
    """True: the condition of a rule for whatever the others leave."""
    return True


class Rule(NamedTuple):
    """An agent for the tasks of a mode of which something holds.

    Attributes:
        agent: its name in the zoo.
        reason: why it plays where the condition holds, a clause.
        holds: the condition.
        evidence: what was measured, in sentences; empty where another rule's evidence says it.
    """

    agent: str
    reason: str
    holds: Holds = always
    evidence: str = ""


def told(task: Task) -> bool:
    """Whether a causal diagram is told."""
    return task.graph.diagram is not None


def untold(task: Task) -> bool:
    """Whether no diagram is told, but candidates or names alone."""
    return task.graph.diagram is None


def separable(task: Any) -> bool:
    """Whether the components of a separable system are told."""
    return bool(task.components)


def much_observed(task: Any) -> bool:
    """Whether there are many time series in which nothing was set."""
    return max(map(len, task.observational.values()), default=0) >= MUCH_OBSERVED


def parallel(task: Task) -> bool:
    """Whether all nodes are independent causes of the reward."""
    diagram = task.graph.diagram
    edges = {(name, task.reward) for name in task.nodes if name != task.reward}
    return diagram is not None and not diagram.bidirected and diagram.directed == edges


def learnable(task: Any) -> bool:
    """Whether single interventions take less than half of the rounds, and subsets are not too many to go through."""
    count = len(task.action_domains)
    return count <= MOST_SWITCHES and 2 * SINGLE_ROUNDS * (count + 1) <= task.horizon


RULES: Mapping[Mode, tuple[Rule, ...]] = {
    Mode.SOFT: (
        Rule(
            "ConstrainedEI",
            "expected values have limits, and no diagram is told",
            lambda task: bool(task.constraints) and untold(task),
            evidence=(
                "No evidence: no soft environment limits expected values. It is the only one of these methods that "
                "heeds limits without a diagram."
            ),
        ),
        Rule(
            "GP-UCB",
            "no diagram is told",
            untold,
            evidence=(
                "It and EICF use no diagram, so their published scores are those without one. Published, 11 "
                "systems: 0.481, EICF 0.500, ahead on 5, behind on 5, and three times as slow. How the reward is "
                "composed, which helps EICF, is not told then."
            ),
        ),
        Rule(
            "MCBO",
            "a diagram is told, and it is the best of those that use one",
            told,
            evidence=(
                "Published: mean over 15 environments 0.841, EXCBO 0.826 (behind on 7, ahead on 3); over 11 others "
                "0.945, EIFN 0.944 (behind on 3, ahead on 2). GP-UCB is behind on all but one. Tried, the one system "
                "with latent confounding, 20 seeds: 0.845, EXCBO 0.688."
            ),
        ),
        Rule("GP-UCB", "it is the quickest of those that learn"),
    ),
    Mode.HARD: (
        Rule(
            "MCBO",
            "expected values have limits, and a diagram is told",
            lambda task: bool(task.constraints) and told(task),
            evidence=(
                "Tried, four tasks, 6 seeds each, 4 of the slowest: 0.822, ConstrainedEI 0.645 (ahead by 0.177 +- "
                "0.122; behind on one of the four)."
            ),
        ),
        Rule(
            "ConstrainedEI",
            "expected values have limits, and no diagram is told or MCBO is too slow",
            lambda task: bool(task.constraints),
            evidence="Published, five tasks with limits: 0.781, cCBO 0.702, CBO 0.015; it uses no diagram.",
        ),
        Rule(
            "CEO",
            "no diagram is told, and there are few nodes",
            lambda task: untold(task) and len(task.nodes) <= FEW_NODES,
            evidence=(
                "Published, three nodes without a diagram, two tasks: 0.918, CBO-U 0.844. Tried, three systems, 3 "
                "seeds: 0.800, CBO-U 0.571. With four nodes level, and sixty times as slow."
            ),
        ),
        Rule(
            "CBO-U",
            "no diagram is told",
            untold,
            evidence=(
                "Published, candidates for graphs of five and six nodes: 0.808, CEO 0.557. CBO-U and GP-UCB use no "
                "diagram; on 20 random graphs of 10 and 20 nodes: 0.855, GP-UCB 0.778; on ten other systems in 100 "
                "rounds 0.767 and 0.770."
            ),
        ),
        Rule(
            "MCBO",
            "a diagram is told, and it is the best of those that use one",
            told,
            evidence=(
                "Published, nine systems in 100 rounds: 0.926, CEO 0.838, GP-UCB 0.799, CBO 0.788, CBO-U 0.785. "
                "Tried, seven random graphs of 10 and 20 nodes in 40 rounds: 1.000, CBO-U 0.767, GP-UCB 0.754; two "
                "systems with latent confounding in 50 rounds, 8 and 6 seeds: 0.826, EXCBO 0.802 (of play 0.57 and "
                "0.50); in 100 rounds one of them, 6 seeds: 0.867, EXCBO 0.888."
            ),
        ),
        Rule("CBO-U", "it is quicker than the others that use what was observed"),
        Rule("HCBO", "it is the quickest of those that learn", told),
    ),
    Mode.CONTEXTUAL: (
        Rule(
            "CoCaBO",
            "the diagram tells which scopes can be the best",
            told,
            evidence=(
                "Published, five systems in 300 rounds: 0.968, CaBO 0.839, CoBO 0.685 (ahead by 0.018 on one of "
                "them). Tried, eight without confounding, where CoBO does the same, 6 seeds: 0.541, GP-UCB 0.514, "
                "of play 0.449 and 0.193."
            ),
        ),
        Rule(
            "CoBO",
            "no diagram is told, so everything is set by everything",
            evidence=(
                "Published, without using the diagram: three systems in 50 rounds, 0.542, GP-UCB 0.542; tried: see "
                "above."
            ),
        ),
        Rule("GP-UCB", "it is quicker than CoBO"),
    ),
    Mode.AGGREGATED: (
        Rule(
            "GPOO",
            "it is the best of this mode",
            evidence=(
                "Published, nine environments: 0.993 and the best or level on all; GPTree 0.840. Tried, four of "
                "more dimensions: 0.786, GPTree 0.403, Optuna 0.533; the best or level on three, on one 0.02 behind "
                "AVE-StoOO."
            ),
        ),
        Rule("GPTree", "it is quicker than GPOO"),
        Rule("AVE-StoOO", "it is the quickest of those that learn"),
    ),
    Mode.MASKED: (
        Rule(
            "SSEM-UCB-JO",
            "the components of a separable system are told",
            separable,
            evidence=(
                "Published, 31 tasks: 0.998; METS, which also needs the signals' family, 0.996, IGP-UCB 0.978, "
                "SEM-UCB 0.910. SSEM-UCB-Norm, twice as slow, is level: 0.995 on 12 of them, here 0.998. Tried, a "
                "system with cycles, 150 rounds: 1.000, SEM-UCB 1.000, IGP-UCB 0.859."
            ),
        ),
        Rule(
            "SGB",
            "no components of a separable system are told",
            lambda task: not task.components,
            evidence=(
                "Tried, four systems that are not separable, 500 rounds: 1.000 on each; IGP-UCB 0.539, Optuna 0.570."
            ),
        ),
        Rule(
            "IGP-UCB",
            "it is quicker than SSEM-UCB-JO",
            evidence="Published means, see above.",
        ),
        Rule("SGB", "it is the quickest of those that learn"),
    ),
    Mode.DISCRETE: (
        Rule(
            "ParallelBandit",
            "all nodes are independent causes of the reward",
            parallel,
            evidence=(
                "Published: 0.327, all others below 0. Tried, 11 seeds: 1.000, SuccessiveRejects 0.541, UCB 0.357."
            ),
        ),
        Rule(
            "POMIS-TS",
            "the diagram tells which arms can be the best",
            told,
            evidence=(
                "Published: 1.000, as POMIS-UCB; UCB 0.682. Tried, four systems in 100 rounds, 6 seeds: 0.921, UCB "
                "0.625. POMIS-UCB on 100 seeds of these is level: in 50 rounds 0.862, here 0.834 (+- 0.044 between "
                "them), in 100 rounds 0.941 and 0.943, in 400 rounds both 1.000. Of play it has 0.480 and 0.449, 0.540 "
                "and 0.580, 0.713 and 0.817."
            ),
        ),
        Rule(
            "SuccessiveRejects",
            "there are few rounds for each arm",
            lambda task: task.horizon < SCARCE * len(task.arms),
            evidence=(
                "Tried, a system whose possibly optimal sets have no arms, 4 rounds an arm, 11 seeds: 0.633, TS "
                "0.449, UCB 0.266; a parallel one: 0.541, TS 0.265, UCB 0.357."
            ),
        ),
        Rule(
            "TS",
            "there are rounds enough to try every arm",
            evidence=(
                "Tried, all rounds of four systems, 12 an arm and more: level, but of play 0.87, SuccessiveRejects "
                "0.27."
            ),
        ),
    ),
    Mode.ADVERSARIAL: (
        Rule(
            "CBO-MW",
            "a diagram is told, and it is the best of those that use one",
            told,
            evidence="Published, eight games of 100 rounds: 0.977, GP-MW 0.911, GP-UCB 0.828, MCBO 0.822.",
        ),
        Rule("GP-MW", "it needs no diagram, and is quicker than CBO-MW"),
    ),
    Mode.DYNAMIC: (
        Rule(
            "DCBO",
            "many time series were observed",
            much_observed,
            evidence=(
                "Published, the one system with 100 time series: 0.534, ABO 0.262. Tried, 16 seeds: 0.236, ABO "
                "-0.045. Over all 26 seeds CBO-Restarted is ahead by 0.14 with a standard error of 0.08; over the "
                "mode it is behind, 0.878 and 0.898."
            ),
        ),
        Rule(
            "ABO",
            "few time series were observed, or it is quicker than those that use them",
            evidence="Published, the seven others, 4 to 10 time series: 0.978 and the best on each; DCBO 0.950.",
        ),
    ),
    Mode.SUBSET: (
        Rule(
            "LinSEM-TS",
            "a diagram is told, and it is the best of those that use one",
            told,
            evidence=(
                "Tried, seven linear systems of 5 to 10 nodes, 5,000 rounds, 10 seeds: the least cumulative regret on "
                "each; LinSEM-UCB 1.2 to 3.6 times as much, SubsetUCB 2 to 25 times."
            ),
        ),
        Rule(
            "SubsetUCB",
            "each subset can be played a few times",
            lambda task: 2 ** len(task.action_domains) * FEW_TIMES <= task.horizon,
            evidence=(
                "Tried, 10 and 4 nodes in 20,000 and 40,000 rounds, 2 and 3 seeds: cumulative regret 14,123 and "
                "33,972, GA-LCB 26,627 and 40,345; 155, GA-LCB 6,700."
            ),
        ),
        Rule("GA-LCB", "no diagram is told, and there are rounds to find one", learnable),
    ),
}
LAST = Rule("Random", "no other plays such a task, or none is quick enough")

#: Seconds a round, act, update and recommend together: the published mean on the slowest environment of the mode.
SECONDS: Mapping[Mode, Mapping[str, float]] = {
    Mode.SOFT: {"ConstrainedEI": 0.25, "GP-UCB": 0.079, "MCBO": 1.4},
    Mode.HARD: {"ConstrainedEI": 1.0, "CEO": 2.5, "CBO-U": 0.18, "MCBO": 2.7, "HCBO": 0.015},
    Mode.CONTEXTUAL: {"CoCaBO": 0.086, "CoBO": 0.15, "GP-UCB": 0.048},
    Mode.AGGREGATED: {"GPOO": 0.011, "GPTree": 0.0013, "AVE-StoOO": 0.00018},
    Mode.MASKED: {"SSEM-UCB-JO": 0.073, "IGP-UCB": 0.0046, "SGB": 0.00041},
    Mode.DISCRETE: {"ParallelBandit": 4e-5, "POMIS-TS": 2.5e-5, "SuccessiveRejects": 2e-5, "TS": 0.00013},
    Mode.ADVERSARIAL: {"CBO-MW": 0.078, "GP-MW": 0.0051},
    Mode.DYNAMIC: {"DCBO": 0.66, "ABO": 0.014},
    Mode.SUBSET: {"LinSEM-TS": 0.0044, "SubsetUCB": 0.0002, "GA-LCB": 0.0002},
}


def ranking(task: Task) -> Iterator[Rule]:
    """The rules that hold for a task, in their order; at the end ``Random``, which plays every task."""
    yield from (rule for rule in RULES.get(task.mode, ()) if rule.holds(task))
    yield LAST


def seconds_of(rule: Rule, mode: Mode) -> float:
    """How long a round of the rule's agent may take, in seconds; 0 of ``Random``."""
    return SECONDS.get(mode, {}).get(rule.agent, 0.0)
