"""The guide's logger for TensorBoard writes every reward; those of CSV run with the page."""

from pathlib import Path

import pytest

import cbo_gym
from website.pages.code_blocks import blocks

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "evaluation.md"


@pytest.mark.slow
def test_the_guide_s_tensorboard_logger_writes_every_reward(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard", reason="not among the test tools")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (block,) = [one for one in blocks(PAGE.read_text(encoding="utf-8")) if "SummaryWriter" in one.code]
    monkeypatch.chdir(tmp_path)
    exec(block.code, {"cbo_gym": cbo_gym})
    runs = list(cbo_gym.evaluation.load_runs(tmp_path / "runs"))
    assert len(runs) == 4
    for run in runs:
        log = EventAccumulator(str(tmp_path / "logs" / run.agent / "CBO-Dropwave-v0" / str(run.seed)))
        log.Reload()
        assert [one.value for one in log.Scalars("reward")] == pytest.approx(run.curve("reward").tolist())
