"""Every keyword of every environment and agent, given everything: it plays, or says by name what is wrong, soon."""

import inspect
import random
from collections import Counter

import pytest

from cbo_gym.agent_registry.finding import find_agent, known_agents
from cbo_gym.envs.registry import entries
from cbo_gym.modes import OUTCOME_KEYWORDS, classes_of
from cbo_gym.problems.build import builder_parameters
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS, KEYWORDS
from tests.trials.fuzzing import Case, Workplace
from tests.trials.helpers import say

pytestmark = pytest.mark.slow

GENERAL = ("mode", "problem", "render_mode", "max_episode_steps", *OUTCOME_KEYWORDS, *GRAPH_KEYWORDS)
PAIRS = 60  # an environment or agent
SHARE = 8  # of the values for a keyword that all environments have, each gets one in so many
COUNT: Counter[str] = Counter()
SLOWEST = [(0.0, "")]

NUMBERS = [
    "-1", "0", "1", "2", "3", "6", "12", "40", "100", "1000", "2**31", "2**63 - 1", "2**63", "10**400", "10**5000",
    "-2**63", "0.0", "-0.0", "0.5", "1.0", "1e-300", "1e308", "-1e308", "nan", "inf", "-inf", "np.float32(0.5)",
    "np.int8(3)", "np.int64(2)", "np.bool_(True)", "np.timedelta64(3)", "Decimal('0.5')", "Decimal(10**400)",
    "Fraction(1, 3)", "Fraction(10**400)", "1j", "True", "False", "None",
]  # fmt: skip
TEXTS = [
    "''", "'x'", "'x' * 10_000", "'\\n\\x1b[31m'", "'\\0'", "b'x'", "bytearray(3)", "'1'", "'0.5'", "'[[0.5]]'",
    "'__class__'", "'known'", "'hidden'", "'wrong'", "'partial'", "'soft'", "'hard'", "'dynamic'", "'masked'",
    "'os:system'", "'os:'", "'.yaml'", "'/dev/null'", "'/dev/zero'", "'/'", "'/dev/stdin'", "' ' * 10_000",
    "'\\0.yaml'", "'x' * 10_000 + '.yaml'", "'..:x'", "'\\ud800'", "'cbo_gym.problems.base:Problem'",
    "'cbo_gym.problems.base:non_negative'",
]  # fmt: skip
COLLECTIONS = [
    "[]", "()", "{}", "set()", "[[]]", "[[[]]]", "[None]", "[0]", "[1, 2]", "[0, 0]", "(0, 1)", "[-1]", "[100]",
    "[nan]", "[0.5]", "[[0.5]]", "[[0.5, 0.5]]", "[[1.0, 0.0, 1.0]]", "[[1e308, 1e308, 1e308]]",
    "[[1e-320, 0.0, 1e-320]]", "[[nan, 0.0, 1.0]]", "[['1', 0, 1]]", "[[True, 0, 1]]", "[[10**400, 0, 1]]",
    "[[0.5] * 10_000]", "[[1.0, 0.0, 1.0]] * 100_000", "[[0.5, 0.5], [0.5]]", "[[[0.5, 0.5]] * 2] * 3",
    "[[[nan, 0.5]] * 2] * 3", "[0.5] * 1_000_000", "[[0, 1]] * 100_000", "deep(90)", "deep(5_000)", "range(3)",
    "range(10**9)", "iter([1])", "['x']", "['X0']", "['Y']", "[['X0', 'Y']]", "[('X0', 'X1')]", "[['Y', 'X0']]",
    "[[['X0', 'Y']]]", "[[('X0', 'X1'), ('X1', 'Y')]]", "[[]] * 1_000", "[{}]", "[{}] * 10_000", "[{'X': ['C']}]",
    "[{'X': 3}]", "[{3: [3]}]", "['X0 <= 1']", "['X0 <= nan']", "['X0 <= 1e400']", "['<=']", "['X0 <= 1'] * 10_000",
    "['Y >= 0']", "['x' * 10_000 + ' <= 1']", "[[['X0', 'Y']]] * 1_000", "{'X0': 1}", "{'X0': nan}", "{'X0': 10**400}",
    "{'X0': '1'}", "{'X0': []}", "{3: 1}", "{'base': 1}", "{'base': []}", "{'base': 10**400}",
    "{'sets': {('X0',): 1}}", "{'sets': {3: 1}}", "{'sets': []}", "{'variables': {3: 1}}",
    "{'per_unit': {'X0': 1e308}}", "{'reference': {'X0': 1}}", "{'observed': {'Y': 1}}", "{'observed': {None: 1}}",
    "{None: 1}", "{(1, 2): 1}", "{'variables': UserDict(X0=1)}", "{'base': 1, 'x': 1}", "{'base': 1, 3: 1}",
    "UserDict(X0=1)", "{f'X{i}': 1.0 for i in range(10_000)}", "np.zeros(0)", "np.zeros(3)", "np.zeros((2, 2))",
    "np.zeros((3, 2, 2))", "np.zeros((1,) * 20)", "np.ones(3, bool)", "np.array(2)", "np.array(0.5)", "np.array('x')",
    "np.array([None, 1], object)", "np.arange(3)", "np.zeros(3, complex)", "np.array(['X0', 'Y'])", "np.zeros(10**6)",
    "np.ma.masked_array([1.0], [True])", "np.zeros(2, [('a', float)])", "np.full((2, 3), nan)",
]  # fmt: skip
OTHERS = [
    "object()", "lambda *given: 0", "lambda *given: 'x'", "lambda: 1 / 0", "len", "int", "Ellipsis", "NotImplemented",
    "np", "Tanh()", "Linear(nan)", "Polynomial(())", "Normal(0.0, 1.0)", "Tanh",
    "CausalDiagram(['X0', 'Y'], [('X0', 'Y')])", "[CausalDiagram(['X0', 'Y'], [('X0', 'Y')])]",
    "type('Rude', (), {'__repr__': lambda self: 1 / 0})()",
    "type('Rude', (), {'__eq__': lambda *given: 1 / 0, '__hash__': lambda self: 1 / 0})()",
    "type('Rude', (), {'__iter__': lambda self: 1 / 0, '__len__': lambda self: -1})()",
]  # fmt: skip
VALUES = NUMBERS + TEXTS + COLLECTIONS + OTHERS


def keywords_of_environment(entry):
    own = inspect.signature(classes_of(entry.mode).DYNAMICS).parameters.values()
    of_mode = [parameter.name for parameter in own if parameter.kind is parameter.KEYWORD_ONLY]
    return [*dict.fromkeys([*builder_parameters(entry.problem), *of_mode, *GENERAL])]


def keywords_of_agent(name):
    return [*inspect.signature(find_agent(name)).parameters, "nonsense"]


ENVIRONMENTS = {entry.id: keywords_of_environment(entry) for entry in entries()}
AGENTS = {name: keywords_of_agent(name) for name in known_agents()}


def company(keyword):
    """Other keywords that a keyword needs: the kinds of knowledge of the graph that take it."""
    kinds = [kind for kind, taken in KEYWORDS.items() if keyword in taken]
    return [{"graph": repr(kind)} for kind in kinds] or [{}]


def singles(way, name, keywords):
    rng = random.Random(name)
    for keyword in keywords:
        shared = way != "create_agent" and keyword in (*GENERAL, "num_envs")
        for value in rng.sample(VALUES, len(VALUES) // SHARE) if shared else VALUES:
            for others in company(keyword) if shared else [{}]:
                yield Case(way, name, {keyword: value, **others})


def pairs(way, name, keywords):
    rng = random.Random(name)
    for _ in range(PAIRS if len(keywords) > 1 else 0):
        yield Case(way, name, {keyword: rng.choice(VALUES) for keyword in rng.sample(keywords, 2)})


def wrong(workplace, cases):
    """What goes wrong, in words."""
    found = []
    for case in cases:
        answer = workplace.ask(case)
        COUNT[answer.outcome] += 1
        SLOWEST.append((answer.seconds, str(case)))
        if answer.outcome == "wrong":
            found.append(f"{case}: {answer.said}")
    return found


@pytest.fixture(scope="module")
def workplace():
    with Workplace() as started:
        yield started


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments(workplace, name):
    """One keyword at a time, and some pairs; a sample of it natively vectorised, and as the evaluator makes it."""
    keywords = ENVIRONMENTS[name]
    cases = [*singles("make", name, keywords), *pairs("make", name, keywords)]
    cases += singles("make_vec", name, ["num_envs"])
    again = random.Random(name).sample(cases, len(cases) // 10)
    cases += [case._replace(way=way) for case in again for way in ("make_vec", "make_env")]
    assert wrong(workplace, cases) == []


@pytest.mark.parametrize("name", AGENTS)
def test_agents(workplace, name):
    keywords = AGENTS[name]
    cases = [*singles("create_agent", name, keywords), *pairs("create_agent", name, keywords)]
    assert wrong(workplace, cases) == []


def test_report():
    slowest, what = max(SLOWEST)
    say("keywords", f"{COUNT.total()} cases", *(f"{count} {outcome}" for outcome, count in COUNT.items()),
        f"slowest {slowest:.2f} s: {what[:200]}")  # fmt: skip
    assert COUNT["wrong"] == 0
