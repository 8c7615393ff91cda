"""Every keyword of every environment and agent, given everything: it plays, or a named error says what is wrong, soon.

A value is an expression of Python, which can be printed and typed in again. The cases of an environment or agent are
tried in a process of their own, which ends if one of them hangs or wants too much memory.
"""

import inspect
import random
import time
import traceback
import warnings
from collections import UserDict
from decimal import Decimal
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import scm
from cbo_gym._util.processes.worker import Limits, Worker
from cbo_gym.agent_registry.finding import create_agent, find_agent, known_agents
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.making import make_env
from cbo_gym.envs.registry import entries
from cbo_gym.errors import CBOGymError
from cbo_gym.modes import OUTCOME_KEYWORDS, classes_of
from cbo_gym.problems.build import builder_parameters
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS, KEYWORDS

pytestmark = pytest.mark.slow

GENERAL = ("mode", "problem", "render_mode", "max_episode_steps", *OUTCOME_KEYWORDS, *GRAPH_KEYWORDS)
OF_GYMNASIUM = ("render_mode", "max_episode_steps", "num_envs")  # it looks at these itself, before or after us
PAIRS = 60  # an environment or agent
SHARE = 8  # of the values for a keyword that all environments have, each gets one in so many
REFUSAL, MAKING = 2.0, 10.0  # seconds of the processor's time
LIMITS = Limits(time_limit=600.0, memory_limit=4096.0)
LONGEST = 4000  # characters of a message: values are shown in short

VALUES = [
    "-1", "0", "1", "3", "12", "100", "2**63", "-2**63", "10**400", "10**5000", "-0.0", "0.5", "1e-300", "-1e308",
    "nan", "inf", "-inf", "np.float32(0.5)", "np.int64(2)", "np.bool_(True)", "np.timedelta64(3)", "Decimal(10**400)",
    "Fraction(1, 3)", "1j", "True", "None",
    "''", "'x'", "'x' * 10_000", "'\\n\\x1b[31m'", "'\\0'", "b'x'", "'1'", "'[[0.5]]'", "'__class__'", "'known'",
    "'hidden'", "'wrong'", "'partial'", "'soft'", "'dynamic'", "'os:system'", "'.yaml'", "'/dev/null'", "'/dev/zero'",
    "'/'", "'\\0.yaml'", "'\\ud800'", "'cbo_gym.problems.base:Problem'", "'cbo_gym.problems.base:non_negative'",
    "[]", "()", "{}", "set()", "[[[]]]", "[None]", "[1, 2]", "[0, 0]", "(0, 1)", "[nan]", "[[0.5, 0.5]]",
    "[[1.0, 0.0, 1.0]]", "[[1e308, 1e308, 1e308]]", "[[1e-320, 0.0, 1e-320]]", "[['1', 0, 1]]", "[[10**400, 0, 1]]",
    "[[1.0, 0.0, 1.0]] * 100_000", "[[0.5, 0.5], [0.5]]", "[[[nan, 0.5]] * 2] * 3", "[0.5] * 1_000_000", "deep(5_000)",
    "range(10**9)", "iter([1])", "['X0']", "[['X0', 'Y']]", "[[('X0', 'X1'), ('X1', 'Y')]]", "[[['X0', 'Y']]] * 1_000",
    "[{}] * 10_000", "[{'X': ['C']}]", "[{3: [3]}]", "['X0 <= nan']", "['X0 <= 1'] * 10_000",
    "['x' * 10_000 + ' <= 1']", "{'X0': 1}", "{'X0': 10**400}", "{'X0': []}", "{3: 1}", "{'base': 1, 3: 1}",
    "{'base': []}", "{'sets': {('X0',): 1}}", "{'sets': {3: 1}}", "{'variables': {3: 1}}",
    "{'per_unit': {'X0': 1e308}}", "{'reference': {'X0': 1}}", "{'observed': {None: 1}}", "{None: 1}",
    "{'variables': UserDict(X0=1)}", "UserDict(X0=1)", "{f'X{i}': 1.0 for i in range(10_000)}",
    "np.zeros(0)", "np.zeros((3, 2, 2))", "np.zeros((1,) * 20)", "np.array(2)", "np.array('x')",
    "np.array([None, 1], object)", "np.zeros(3, complex)", "np.zeros(10**6)", "np.ma.masked_array([1.0], [True])",
    "np.zeros(2, [('a', float)])", "np.full((2, 3), nan)",
    "object()", "lambda *given: 'x'", "lambda: 1 / 0", "int", "Ellipsis", "np", "Tanh()", "Linear(nan)",
    "Polynomial(())", "Normal(0.0, 1.0)", "Tanh", "CausalDiagram(['X0', 'Y'], [('X0', 'Y')])",
    "type('Rude', (), {'__repr__': lambda self: 1 / 0})()",
    "type('Rude', (), {'__eq__': lambda *given: 1 / 0, '__hash__': lambda self: 1 / 0})()",
    "type('Rude', (), {'__iter__': lambda self: 1 / 0, '__len__': lambda self: -1})()",
]  # fmt: skip


def deep(levels):
    """Return a list in a list in a list ..."""
    nested = []
    for _ in range(levels):
        nested = [nested]
    return nested


NAMES = {"deep": deep, "np": np, "nan": np.nan, "inf": np.inf, "Decimal": Decimal, "Fraction": Fraction}
NAMES |= {"UserDict": UserDict, **{name: getattr(scm, name) for name in scm.__all__}}


def play(env):
    env.reset(seed=0)
    env.action_space.seed(0)
    env.step(env.action_space.sample())
    env.close()


NATIVE = {"num_envs": 2, "vectorization_mode": "vector_entry_point"}
WAYS = {
    "make": lambda name, keywords: play(gym.make(name, **keywords)),
    "make_vec": lambda name, keywords: play(gym.make_vec(name, **{**NATIVE, **keywords})),
    "make_env": lambda name, keywords: play(make_env(Spec(name, tuple(keywords.items())))),
    "create_agent": lambda name, keywords: create_agent(Spec(name, tuple(keywords.items()))),
}


def what_is_wrong(way, name, expressions):
    """Try a case; return what is wrong with it, an empty string if it plays or is refused."""
    start = time.process_time()
    try:
        keywords = {keyword: eval(string, dict(NAMES)) for keyword, string in expressions.items()}
        start = time.process_time()  # some values take a while to make
        WAYS[way](name, keywords)
    except CBOGymError as error:
        seconds, said = time.process_time() - start, str(error)
        causes = [one for one in (error, error.__cause__, error.__context__) if isinstance(one, MemoryError)]
        is_right = seconds <= REFUSAL and 0 < len(said) <= LONGEST and not causes
        return "" if is_right else f"{seconds:.1f} s: {said[:300]}"
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        if not set(OF_GYMNASIUM).isdisjoint(expressions) and not any("/cbo_gym/" in frame.filename for frame in frames):
            return ""  # Gymnasium refuses a keyword of its own
        return f"{type(error).__name__} in {frames[-1].filename}:{frames[-1].lineno}"
    seconds = time.process_time() - start
    return "" if seconds <= MAKING else f"made in {seconds:.1f} s"


def try_all(cases):
    warnings.simplefilter("ignore")
    for agent in known_agents():
        find_agent(agent)  # imports are not counted
    return [f"{case}: {wrong}" for case in cases if (wrong := what_is_wrong(*case))]


def cases_of(way, name, keywords):
    """Yield each keyword with each value, and some pairs; keywords of all environments get a share of the values."""
    rng = random.Random(name)
    for keyword in keywords:
        shared = way != "create_agent" and keyword in (*GENERAL, "num_envs")
        kinds = [{"graph": repr(kind)} for kind, taken in KEYWORDS.items() if keyword in taken] if shared else []
        for value in rng.sample(VALUES, len(VALUES) // SHARE) if shared else VALUES:
            yield from ((way, name, {keyword: value, **others}) for others in kinds or [{}])
    for _ in range(PAIRS if len(keywords) > 1 else 0):
        yield way, name, {keyword: rng.choice(VALUES) for keyword in rng.sample(keywords, 2)}


@pytest.fixture(scope="module")
def worker():
    made = Worker(LIMITS)
    yield made
    made.close()


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.id)
def test_environments(worker, entry):
    """A sample of the cases is natively vectorised, and made as the evaluator does it."""
    own = inspect.signature(classes_of(entry.mode).DYNAMICS).parameters.values()
    of_mode = [parameter.name for parameter in own if parameter.kind is parameter.KEYWORD_ONLY]
    keywords = [*dict.fromkeys([*builder_parameters(entry.problem), *of_mode, *GENERAL])]
    cases = [*cases_of("make", entry.id, keywords), *cases_of("make_vec", entry.id, ["num_envs"])]
    again = random.Random(entry.id).sample(cases, len(cases) // 10)
    cases += [(way, *case) for _, *case in again for way in ("make_vec", "make_env")]
    assert worker.call(try_all, cases) == []


@pytest.mark.parametrize("name", known_agents())
def test_agents(worker, name):
    keywords = [*inspect.signature(find_agent(name)).parameters, "nonsense"]
    assert worker.call(try_all, [*cases_of("create_agent", name, keywords)]) == []
