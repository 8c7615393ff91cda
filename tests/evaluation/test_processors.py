"""Verifying what was played with the kernels of another processor: honest runs pass, runs of another agent do not."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cbo_gym.evaluation import load_runs
from cbo_gym.evaluation.runs.results import name_of, save_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("AVX" not in torch.backends.cpu.get_cpu_capability(), reason="needs a processor with AVX2"),
]
ENV, AGENTS, SEEDS, ROUNDS = "CBO/Alpine2-Noisy-v0", ("Random", "GP-UCB", "MCBO"), 10, 25
PLAYED = {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2"}
ELSEWHERE = {"OPENBLAS_CORETYPE": "Prescott", "ATEN_CPU_CAPABILITY": "default"}


def command(kernels: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line in a process that has these kernels."""
    return subprocess.run(
        [sys.executable, "-m", "cbo_gym", *map(str, arguments)],
        env={**os.environ, **kernels, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played") / "tried"
    how = ["--horizon", ROUNDS, "--seeds", SEEDS, "-e", ENV, *(part for agent in AGENTS for part in ("-a", agent))]
    done = command(PLAYED, "sweep", folder, *how)
    assert done.returncode == 0, done.stderr
    return folder


def verified(folder: Path, store: Path) -> tuple[int, dict[str, str]]:
    """The status, and the verdict on each agent, on a processor with other kernels."""
    assert command(PLAYED, "publish", folder, "--store", store).returncode == 0
    done = command(ELSEWHERE, "verify", store, "--sample", SEEDS * len(AGENTS), "--json")
    return done.returncode, {one["agent"]: one["verdict"] for one in json.loads(done.stdout)}


def test_honest_runs_pass_with_the_kernels_of_another_processor(played: Path, tmp_path: Path) -> None:
    status, verdicts = verified(played, tmp_path / "store")
    assert status == 0
    assert verdicts == {"Random": "identical", "GP-UCB": "agrees", "MCBO": "agrees"}


def test_runs_of_another_agent_do_not(played: Path, tmp_path: Path) -> None:
    forged = tmp_path / "forged"
    forged.mkdir()
    for run in load_runs(played):
        if run.agent == "MCBO":
            false = replace(run, agent="Random")
            save_run(forged / name_of(false), false)
    status, verdicts = verified(forged, tmp_path / "store")
    assert status == 1
    assert verdicts == {"Random": "differs"}
