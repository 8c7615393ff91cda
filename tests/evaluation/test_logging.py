"""The guide's loggers: TensorBoard's is run here, slowly, that of CSV with the page."""

import re
from pathlib import Path

import pytest

import cbo_gym
from website.pages.code_blocks import blocks

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "evaluation.md"


@pytest.mark.slow
def test_the_guide_s_tensorboard_logger_writes_every_reward(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="not among the test tools")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (block,) = [one for one in blocks(PAGE.read_text(encoding="utf-8")) if "SummaryWriter" in one.code]
    monkeypatch.chdir(tmp_path)
    exec(block.code, {"cbo_gym": cbo_gym})
    runs = {(run.agent, run.seed): run for run in cbo_gym.evaluation.load_runs(tmp_path / "runs")}
    assert len(runs) == 4
    for (agent, seed), run in runs.items():
        log = EventAccumulator(str(tmp_path / "logs" / agent / "CBO-Dropwave-v0" / str(seed)))
        log.Reload()
        assert [one.value for one in log.Scalars("reward")] == pytest.approx(run.curve("reward").tolist())
    assert len([line for line in block.code.splitlines() if line.strip()]) <= 12


def test_the_guide_s_loggers_are_short():
    functions = re.findall(r"def log\(played\):\n(?:    .*\n|\n(?=    ))+", PAGE.read_text(encoding="utf-8"))
    assert len(functions) == 3
    assert all(len(string.splitlines()) <= 10 for string in functions)
