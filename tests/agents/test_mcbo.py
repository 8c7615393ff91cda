import torch

from cbo_gym.agents.common.search import maximise
from cbo_gym.agents.networks.eta import EtaNetworks
from cbo_gym.agents.networks.mcbo import MCBO
from tests.support.loop import start_agent


def test_the_noiseless_acquisition_by_hand():
    agent = start_agent(MCBO(beta=2.0), "CBO/Dropwave-v0")
    point = torch.tensor([[0.75, 0.4, 0.6]], dtype=torch.float64)  # eta of X0 is 0.5, then the action
    found = agent.acquisition(point[:, None], {})
    radius, spread = agent.network.surrogates["X0"].posterior(point[:, 1:])
    mean, std = agent.network.surrogates["Y"].posterior((radius + 2.0 * spread * 0.5)[:, None])
    torch.testing.assert_close(found, mean + 2.0 * std)


def test_the_search_beats_a_fine_grid():
    """Dropwave without noise: every action on a 60 x 60 grid with 21 values of eta."""
    agent = start_agent(MCBO(beta=1.0), "CBO/Dropwave-v0", 1)
    axis = torch.linspace(0, 1, 60, dtype=torch.float64)
    grid = torch.cartesian_prod(torch.linspace(0, 1, 21, dtype=torch.float64), axis, axis)
    with torch.no_grad():
        best = max(float(agent.acquisition(part[:, None], {}).max()) for part in grid.split(20_000))
    played = [past.action for past in agent.history]
    action = maximise(lambda x: agent.acquisition(x, {}), agent.search_points, played, seed=1)
    with torch.no_grad():
        etas = torch.linspace(0, 1, 201, dtype=torch.float64)[:, None]
        at_action = torch.cat([etas, torch.tensor(action).expand(201, 2)], -1)
        found = float(agent.acquisition(at_action[:, None], {}).max())
    assert found >= best - 1e-3 * abs(best)


def test_networks_start_at_their_constant_and_stay_between_the_bounds():
    agent = start_agent(MCBO(), "CBO/Alpine2-Noisy-v0")
    nodes = ["X0", "X1", "X2", "X3", "X4"]
    eta = {node: torch.tensor([[-0.8], [0.0], [0.8]], dtype=torch.float64) for node in nodes}
    networks = EtaNetworks.random(agent.network, eta, seed=0)
    points = torch.rand(3, 50, 2, dtype=torch.float64)
    output = networks("X1", points)
    assert output.shape == (3, 50)
    torch.testing.assert_close(output.mean(-1), eta["X1"][:, 0], atol=0.25, rtol=0.0)
    assert (output.abs() < 1.0).all()
    assert networks("Y", points) == 1.0
    assert all(parameter.shape[0] == 3 for parameter in networks.parameters)
