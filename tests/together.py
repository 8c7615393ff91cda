"""Small tasks of the modes, and whether two runs are the same."""

from cbo_gym.evaluation.runs.results import SECONDS

#: a small task of each mode in which actions can be chosen together
TOGETHER = {
    "soft": "CBO/Dropwave-v0",
    "hard": "CBO/ToyGraph-v0",
    "aggregated": "CBO/GPBandit1-v0",
    "masked": "CBO/SSEMPeriodic-v0",
    "discrete": "CBO/XYZWSTBandit-v0",
}
ALONE = {"ParallelBandit": "CBO/ParallelBandit-v0"}  # plays nothing else


def rounds_alike(one, other):
    return all(
        one.table[name].equals(other.table[name], null_equal=True) for name in one.table.columns if name not in SECONDS
    )
