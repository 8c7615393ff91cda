"""The order of the tests, and of the filters of warnings; what is collected as garbage."""

import gc
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gymnasium  # noqa: F401  # it adds filters of warnings before the others, so it comes first
import pytest

from tests.support.workers import SharedWorker, close_idle, describe

gc.disable()
#: what runs if nothing else is asked for, as in pyproject.toml
DEFAULT = "not benchmark and not slow"
SLOW_MODULE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow", re.MULTILINE)
# no test writes to the user's own folder; the processes that tests start inherit it
os.environ.setdefault("CBO_GYM_KEY", str(Path(tempfile.mkdtemp(prefix="cbo-gym-tests-"), "key")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module, which may take long, if all of its tests would be deselected."""
    if config.option.markexpr != DEFAULT:
        return None
    is_slow = collection_path.suffix == ".py" and SLOW_MODULE.search(collection_path.read_text(encoding="utf-8"))
    return True if is_slow or collection_path.name in ("benchmarks", "trials") else None


@pytest.fixture(autouse=True, scope="session")
def shared_workers(pytestconfig: pytest.Config) -> Iterator[None]:
    """Start few processes by default; slow tests start those that users would."""
    with pytest.MonkeyPatch.context() as patch:
        if pytestconfig.option.markexpr == DEFAULT:
            for module in ("evaluation.play.sweep", "referee.admission", "referee.isolated", "referee.submission"):
                patch.setattr(f"cbo_gym.{module}.Worker", SharedWorker)
            patch.setattr("cbo_gym.evaluation.play.grid.describe_isolated", describe)
            if os.name == "posix":
                from tests.support.forks import ForkedProcess

                patch.setattr("cbo_gym._util.processes.worker.start_process", ForkedProcess)
        yield
    close_idle()


@pytest.fixture
def coarse_search(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let agents search coarsely by default; slow tests search as those of users do."""
    if pytestconfig.option.markexpr == DEFAULT:
        from tests.support.quick import search_coarsely

        search_coarsely(monkeypatch)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples come first: they take longest, and at the end one core would wait while the other plays them."""
    items.sort(key=lambda item: "test_examples" not in item.nodeid)


def pytest_collection_finish() -> None:
    """Collect no garbage before, and exempt all objects of today, which would take a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()
