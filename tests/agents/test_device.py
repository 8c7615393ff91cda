"""Agents with models on a CUDA device; skipped where there is none."""

from __future__ import annotations

import inspect

import pytest
import torch

from cbo_gym.agent_registry.finding import find_agent, known_agents, modes_of
from cbo_gym.testing import check_agent
from tests.support.environments import FIRST_OF_MODE
from tests.support.families import ALONE

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
ON_DEVICE = sorted(name for name in known_agents() if "device" in inspect.signature(find_agent(name)).parameters)


@pytest.mark.parametrize("name", ON_DEVICE)
@pytest.mark.filterwarnings("ignore:.*out of date")
def test_agents_keep_their_contract_on_a_device(name: str) -> None:
    played = modes_of(find_agent(name))
    env_id = ALONE.get(name) or next(env_id for mode, env_id in FIRST_OF_MODE.items() if mode in played)
    check_agent(f"{name}(device='cuda')", env_id, rounds=3)
