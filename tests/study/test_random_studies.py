"""Random studies: kinds x limits x modes x agents, with and without data, parts and failures, of ten steps each."""

import pytest

from tests.support.random_studies import RandomStudy
from tests.support.study_laboratory import MODES, PAIRS

FEW = [*(("Random", mode) for mode in MODES), ("Optuna", "hard"), ("Optuna", "soft"), ("TS", "discrete")]
OF_SEVERAL = ("Auto", "CausalParetoSelect", "qNEHVI(samples=4)", "qNEHVI-Sets(samples=4)", "qNEHVI-Network(draws=2)")
SEVERAL = [(agent, mode) for agent in ("Random", *OF_SEVERAL) for mode in ("hard", "soft")]
MANY_SEVERAL = [(*SEVERAL[index % len(SEVERAL)], 500 + index) for index in range(60)]
MANY = [(*PAIRS[index % len(PAIRS)], 200 + index) for index in range(300)]


@pytest.mark.filterwarnings("ignore::cbo_gym.study.diagram_check.DiagramWarning")
@pytest.mark.filterwarnings("ignore::cbo_gym.study.campaigns.UnusedDataWarning")
@pytest.mark.parametrize(
    ("agent", "mode", "seed"),
    [*((*pair, 100) for pair in FEW), *(pytest.param(*case, marks=pytest.mark.slow) for case in MANY)],
)
def test_only_refusals_in_words_nothing_outside_and_the_log_replays(agent, mode, seed, tmp_path):
    RandomStudy(agent, mode, seed, tmp_path).play()


@pytest.mark.filterwarnings("ignore::cbo_gym.study.diagram_check.DiagramWarning")
@pytest.mark.filterwarnings("ignore::cbo_gym.study.campaigns.UnusedDataWarning")
@pytest.mark.parametrize(
    ("agent", "mode", "seed"),
    [
        *((*pair, 100) for pair in SEVERAL[:2]),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in MANY_SEVERAL),
    ],
)
def test_the_same_with_several_objectives(agent, mode, seed, tmp_path):
    RandomStudy(agent, mode, seed, tmp_path, several=True).play()
