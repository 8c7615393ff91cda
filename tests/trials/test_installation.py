"""cbo-gym as users install it: with other packages called ``agents``, from a wheel, a checkout, a source archive.

Everything is built from a clone, which holds what was committed last. The libraries are installed once; every trial
has a virtual environment that finds only these through a path file, so that a trial installs and removes packages in
its own site-packages, as in any other installation. pip must reach a package index.
"""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.types import check_types

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PLAY = "from cbo_gym import evaluate; assert evaluate('GP-UCB', 'CBO/Dropwave-v0', 0, horizon=3).table.height == 3;"
OURS = f"import cbo_gym.agents; assert cbo_gym.agents.GPUCB.__module__ == 'cbo_gym.agents.black_box.gp_ucb'; {PLAY}"
OPENAIS = "import agents; assert agents.Agent(name='a').name == 'a'; assert agents.Runner; print(agents.__file__);"
LIST = "from cbo_gym.agent_registry.finding import known_agents; print(*known_agents());"


def call(*words, cwd, succeeds=True, **variables):
    """What a command prints; the tests' own import path is kept from it."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**inherited, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
    return (done.stdout if succeeds else done.stderr).strip()


class Environment:
    """A new virtual environment; ``libraries`` is another one whose packages are found behind its own."""

    def __init__(self, folder, libraries=None):
        call(sys.executable, "-m", "venv", folder, cwd=folder.parent)
        self.bin, self.empty = folder / "bin", folder / "empty"
        self.empty.mkdir()
        (self.site,) = folder.glob("lib/python*/site-packages")
        if libraries:
            (self.site / "libraries.pth").write_text(f"{libraries.site}\n")

    def pip(self, *words):
        quiet = ("--quiet", "--disable-pip-version-check")
        return call(self.bin / "python", "-m", "pip", *words, *quiet, cwd=self.empty)

    def python(self, code, cwd=None, **options):
        return call(self.bin / "python", "-c", code, cwd=cwd or self.empty, **options)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("not in a checkout")
    folder = tmp_path_factory.mktemp("clone") / "cbo-gym"
    call("git", "clone", "--quiet", ROOT, folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(clone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, clone, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def libraries(clone, wheel, tmp_path_factory):
    """All that cbo-gym needs, with its extras, as pip finds it for the wheel; not cbo-gym itself."""
    environment = Environment(tmp_path_factory.mktemp("libraries") / "venv")
    constraints = ("-c", clone / "constraints.txt")
    environment.pip("install", *constraints, "torch")
    environment.pip("install", *constraints, f"{wheel}[dask,optuna,sb3]")
    environment.pip("check")
    environment.python(OURS)  # with nothing but what the wheel asks for
    environment.pip("uninstall", "--yes", "cbo-gym")
    assert not [path.name for path in environment.site.iterdir() if path.name.startswith(("cbo_gym", "agents"))]
    return environment


@pytest.fixture
def environment(libraries, tmp_path):
    return Environment(tmp_path / "venv", libraries)


@pytest.fixture
def installed(environment, wheel):
    """An environment with the wheel."""
    environment.pip("install", "--no-deps", wheel)
    return environment


def zoo_of(clone):
    """The published names, read with no help of the package."""
    lines = (clone / "pyproject.toml").read_text().partition('[project.entry-points."cbo_gym.agents"]\n')[2]
    return {line.partition(" = ")[0] for line in lines.partition("\n\n")[0].splitlines()}


def files_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    return sorted(names)


def test_the_wheel_and_openai_agents_leave_each_other_alone(installed, wheel):
    def both_work():
        assert Path(installed.python(OPENAIS)).is_relative_to(installed.site / "agents")
        installed.python(OURS)
        installed.python(OURS + OPENAIS)
        installed.python(OPENAIS + OURS)

    installed.pip("install", "openai-agents")
    both_work()
    installed.pip("uninstall", "--yes", "cbo-gym")
    installed.python(OPENAIS)
    assert "No module named 'cbo_gym'" in installed.python(OURS, succeeds=False)

    installed.pip("install", "--no-deps", wheel)  # now the second of the two
    both_work()
    installed.pip("uninstall", "--yes", "openai-agents")
    installed.python(OURS)
    assert "No module named 'agents'" in installed.python(OPENAIS, succeeds=False)


def test_a_project_with_its_own_folder_of_agents(installed, tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").write_text("")
    (tmp_path / "agents" / "mine.py").write_text("from cbo_gym.agents import Random\n\n\nclass Mine(Random): ...\n")
    mine = "import agents.mine; print(agents.mine.__file__);"
    for code in (mine + OURS, OURS + mine):
        assert Path(installed.python(code, cwd=tmp_path)) == tmp_path / "agents" / "mine.py"
    words = ("CBO/Dropwave-v0", "--horizon", "3")
    assert "Random" in call(installed.bin / "cbo-gym", "run", "Random", *words, cwd=tmp_path)
    here = {"PYTHONPATH": str(tmp_path)}
    assert "Random" in call(installed.bin / "cbo-gym", "run", "Random", *words, cwd=tmp_path, **here)
    assert "Mine" in call(installed.bin / "cbo-gym", "run", "agents.mine:Mine", *words, cwd=tmp_path, **here)


def test_a_checkout_that_is_not_installed(environment, clone):
    assert "No module named 'cbo_gym'" in environment.python(OURS, succeeds=False)
    environment.python(f"from cbo_gym.agents import Random; {OURS}", cwd=clone)
    planned = (  # creates every agent
        "from pathlib import Path; from cbo_gym.evaluation.play.sweep import plan;"
        "print(*[job.agent for job in plan(['*'], ['CBO/Dropwave-v0'], [0], Path())])"
    )
    assert set(environment.python(planned, cwd=clone).split()) == zoo_of(clone)
    assert set(environment.python(planned, PYTHONPATH=str(clone)).split()) == zoo_of(clone)


def test_an_editable_installation(environment, clone):
    environment.pip("install", "--no-deps", "-e", clone)
    assert Path(environment.python("import cbo_gym.agents as a; print(a.__file__)")).is_relative_to(clone)
    environment.python(OURS)
    assert set(environment.python(LIST).split()) == zoo_of(clone)
    assert "Random" in call(
        environment.bin / "cbo-gym", "run", "Random", "CBO/Dropwave-v0", "--horizon", "3", cwd=environment.empty
    )

    # The checkout's root is on the import path, so agents is found there too, with an error that has the right name.
    for wrong in ("import agents", "import agents.zoo", "from agents.baselines.random import Random"):
        assert "is the package cbo_gym.agents; import it by that name" in environment.python(wrong, succeeds=False)
    environment.python(
        "import pickle\n"
        "try: import agents\n"
        "except ImportError: pass\n"
        "from cbo_gym.agents import Random\n"
        "packed = pickle.dumps(Random())\n"
        "assert b'cbo_gym.agents.baselines.random' in packed\n"
        "assert type(pickle.loads(packed)) is Random\n"
    )

    # openai-agents lies in site-packages, which comes before it: there, agents is openai's ...
    environment.pip("install", "openai-agents")
    assert Path(environment.python(OPENAIS + OURS)).is_relative_to(environment.site)
    environment.python(OURS + OPENAIS)
    # ... but not for a program that runs in the checkout itself: the folder where Python starts comes first.
    assert "import it by that name" in environment.python(OPENAIS, cwd=clone, succeeds=False)
    environment.pip("uninstall", "--yes", "openai-agents")
    environment.python(OURS)


def test_the_source_archive_holds_what_the_checkout_does(environment, clone, wheel, tmp_path):
    environment.pip("install", "hatchling")
    call(environment.bin / "python", "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=clone)
    (archive,) = tmp_path.glob("*.tar.gz")
    environment.pip("wheel", "--no-deps", "-w", tmp_path, archive)
    (built,) = tmp_path.glob("*.whl")
    assert files_of(built) == files_of(wheel)
    data = ("envs/envs_registry.yaml", "evaluation/suites.yaml", "evaluation/results/mcbo2023.parquet", "py.typed")
    assert {f"cbo_gym/{name}" for name in data} <= set(files_of(wheel))
    tops = {name.partition("/")[0] for name in files_of(wheel)}
    assert tops == {"cbo_gym", f"{wheel.name.partition('-py3')[0]}.dist-info"}, "a wheel has no agents of its own"

    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    environment.python(OURS, cwd=unpacked)
    assert set(environment.python(LIST, cwd=unpacked).split()) == zoo_of(clone)


def test_the_wheels_types_are_seen(installed, tmp_path):
    check_types(tmp_path, python=installed.bin / "python")
    (installed.site / "cbo_gym" / "py.typed").unlink()
    with pytest.raises(AssertionError, match=r"py\.typed"):
        check_types(tmp_path, python=installed.bin / "python")
