"""Lazy imports: what type checkers see of them, and that every list of their names is the same."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import cbo_gym
from cbo_gym import agents
from cbo_gym.agent_registry.cards import cards_json
from cbo_gym.agent_registry.finding import known_agents
from cbo_gym.agent_registry.zoo import DISTRIBUTION, GROUP, zoo
from tests.support.types import check_types

ROOT = Path(cbo_gym.__file__).parent.parent


@pytest.mark.slow
def test_type_checkers_see_what_lazy_imports_give(tmp_path):
    check_types(tmp_path, path=ROOT)


def test_every_lazy_name_is_there():
    for name in cbo_gym.__all__:
        assert getattr(cbo_gym, name) is not None
    assert set(cbo_gym.__all__) <= set(dir(cbo_gym))
    with pytest.raises(AttributeError, match="evalute"):
        cbo_gym.evalute  # noqa: B018


def test_every_list_of_the_zoo_has_the_same_agents():
    published = {path.rpartition(":")[2]: path for path in zoo().values()}
    assert set(agents.__all__) == {*published, "AskTell", "GPNetworkModel"}
    assert set(agents.__all__) <= set(dir(agents))
    for name in agents.__all__:
        found = getattr(agents, name)
        assert published.get(name, f"{found.__module__}:{name}") == f"{found.__module__}:{found.__name__}"
    assert set(zoo()) <= set(known_agents())
    with pytest.raises(AttributeError, match="no attribute 'MCBOO'; it has ABO, "):
        agents.MCBOO  # noqa: B018


def test_the_zoos_cards_are_up_to_date():
    assert Path(agents.__file__).with_name("cards.json").read_text() == cards_json(), "run 'make zoo'"


def test_the_installation_has_the_same_agents():
    try:
        points = distribution(DISTRIBUTION).entry_points.select(group=GROUP)
    except PackageNotFoundError:
        pytest.skip("cbo-gym is not installed")
    installation = {point.name: point.value for point in points}
    assert installation == zoo(), "pyproject.toml changed: run 'make install'"
