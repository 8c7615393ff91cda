"""A study that an environment feeds suggests what ``evaluate`` plays, bit for bit, also after restarts and in parts."""

import numpy as np
import pytest

from cbo_gym.evaluation.play.seeds import seeds_of
from tests.support.families import one_mode_each
from tests.support.studies import PAIRS, ROUNDS, SEED, SEVERAL_PAIRS, Robot, play_run


@pytest.mark.filterwarnings("ignore:.*The reward returned by")
@pytest.mark.parametrize(("agent", "mode"), one_mode_each([*PAIRS, *SEVERAL_PAIRS]))
def test_a_study_plays_as_evaluate_does(agent, mode, tmp_path):
    table = play_run(agent, mode)
    robot = Robot(mode, agent, tmp_path / "study.db", ROUNDS, seeds_of(SEED, ""))
    for number in range(ROUNDS):
        trial = robot.ask()
        values = robot.play(trial)
        if number % 2:  # the first suggestions are of one process, then each call has a new one
            robot.restart()
            for name in [*values][:-1]:
                robot.study.tell(trial, {name: values.pop(name)}, final=False)
                robot.restart()
        robot.study.tell(trial, values)
        if number:
            robot.restart()
    units = robot.study.units
    rewards = [
        units.to_rewards(list(units.objective_values(units.from_flat(entry.action), entry.values).values()))
        for entry in robot.study.trials
    ]
    expected = table["rewards"].to_list() if len(units.objectives) > 1 else table["reward"].to_numpy()[:, None]
    if (unfinished := robot.env.unwrapped.dynamics.unfinished) is not None:
        rewards = np.where(np.isnan(rewards), unfinished, rewards)
    np.testing.assert_array_equal(rewards, expected)
    if "choice" in table.columns and mode != "discrete":
        np.testing.assert_array_equal([flat[0] for flat in robot.actions()], table["choice"].to_numpy())
