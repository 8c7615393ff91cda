"""Random studies: random kinds, limits, modes, agents, objectives, past data, parts, repeats and failures."""

import math
import re
import shutil
from collections import Counter
from itertools import chain, combinations
from pathlib import Path

import numpy as np
from polars.testing import assert_frame_equal

from cbo_gym.errors import CBOGymError
from cbo_gym.study import Categorical, Integer, Range, RecommendedSet, create_study, load_study
from cbo_gym.study.suggesting import AgentError
from tests.support.studies import lose_caches

#: share of the sum of the widths by which a value may miss a limit
EXACT = 1e-9
#: words of errors that refuse a suggestion, and further words if it has fixed or shared values
ASK_REFUSED = ("suggests one trial at a time",)
STEERING_REFUSED = (
    "cannot keep values",
    "values can",
    "values cannot be fixed if max_interventions",
    "none of the",
    "no room",
    "no setting was found",
    "differ from their null values",
)
#: step -> weight
STEPS = {
    "ask": 6,
    "ask_more": 2,
    "ask_fixed": 2,
    "ask_shared": 2,
    "register": 1,
    "reject": 1,
    "tell": 6,
    "tell_more": 3,
    "tell_part": 3,
    "close": 1,
    "fail": 1,
    "correct": 1,
    "recommend": 2,
    "look": 1,
    "reopen": 1,
    "replay": 1,
}


class RandomStudy:
    """A study that is drawn at random, and a laboratory that uses it at random.

    Args:
        agent, mode: agent and mode of the study.
        seed: seed of all random choices.
        folder: folder of the databases.
        several: whether the study has several objectives.

    Attributes:
        study: the study; None if it was refused.
        refusals: message -> number of refusals with it.
        refusal: the last message.
    """

    def __init__(self, agent: str, mode: str, seed: int, folder: Path, several: bool = False) -> None:
        self.agent, self.mode, self.folder = agent, mode, folder
        self.rng = np.random.default_rng([seed, *map(ord, agent + mode)])
        self.path, self.copies, self.refusals = folder / "s.db", 0, Counter()
        self.measured_objectives = ["y"]
        self.fields = self.draw_fields(seed)
        if several:
            self.draw_objectives()
        self.study = self.attempt(lambda: create_study("s", storage=self.path, **self.fields))
        if self.study is None and self.rng.random() < 0.8:
            # An agent that refuses kinds or limits plays the plain study.
            self.domains = {name: self.ends(name) for name in self.names}
            self.fields = self.fields | self.settings() | {"limits": []}
            self.limits, self.at_most = [], None
            self.study = self.attempt(lambda: create_study("s", storage=self.path, **self.fields))

    # Drawing the study -----------------------------------------------------------------------------------------

    def chance(self, share):
        return self.rng.random() < share

    def some(self, names, least=1):
        count = int(self.rng.integers(min(least, len(names)), len(names) + 1))
        return [str(name) for name in self.rng.choice(names, count, replace=False)] if count else []

    def draw_domain(self):
        low = float(self.rng.choice([-1.0, 0.0, 0.5, 2.0]))
        match self.rng.integers(8):
            case 0:
                return Range(low, low + 2.0, step=0.25)
            case 1:
                return Range(0.1, 10.0, scale="log")
            case 2:
                return Integer(1, int(self.rng.integers(2, 7)))
            case 3:
                return Categorical(["red", "green", "blue"][: self.rng.integers(2, 4)])
            case 4:
                return Range(low, low + 2.0, digits=2)
            case 5:
                return Range(0.1, 10.0, scale="log", digits=1)
        return (low, low + float(self.rng.choice([1.0, 2.0, 5.0])))

    def ends(self, name):
        low, high = self.domains[name]
        return low, high

    def draw_fields(self, seed):
        self.nodes = ["a", "b", "c", "d", "y"][-int(self.rng.integers(3, 6)) :]
        causes = self.nodes[:-1]
        pairs = [(cause, effect) for cause, effect in combinations(self.nodes, 2) if self.chance(0.4)]
        pairs += [(cause, "y") for cause in causes if not any(cause == other for other, _ in pairs)]
        self.parents = {node: [cause for cause, effect in pairs if effect == node] for node in self.nodes}
        self.latent = [tuple(sorted(self.some(self.nodes, 2)[:2])) for _ in range(self.rng.integers(3))]
        arrows = [f"{a} -> {b}" for a, b in pairs] + [f"{a} <-> {b}" for a, b in sorted(set(self.latent))]
        fields = {
            "agent": self.agent,
            "seed": seed,
            "mode": self.mode,
            "reward": "y",
            "diagram": f"dag {{ {'; '.join(arrows)} }}",
            "horizon": 20,
            "direction": str(self.rng.choice(["maximize", "minimize"])),
        }
        self.contexts, self.entered, self.limits, self.at_most = [], {}, [], None
        self.targets, self.nulls, self.arms = None, {}, []
        plain = self.mode == "aggregated" or self.chance(0.3)
        names = self.some(causes)
        if self.mode == "contextual":
            self.contexts = [node for node in causes if not self.parents[node]][:1]
            names = self.some([node for node in causes if node not in self.contexts])
            fields["contexts"] = self.contexts
        if self.mode in ("soft", "aggregated"):
            names = [f"p{index}" for index in range(self.rng.integers(1, 4))]
            self.entered = {name: self.some(self.nodes)[:1] for name in names}
            if self.mode == "soft" and self.chance(0.4):
                self.entered[names[0]] = self.some(self.nodes)
        self.names = sorted(names)
        self.domains = {name: self.draw_domain() for name in self.names}
        if plain:
            self.domains = {name: self.ends(name) for name in self.names}
        if self.mode == "discrete":
            self.names, self.domains = [], {}
            sets = chain.from_iterable(combinations(causes, size) for size in range(len(causes) + 1))
            self.arms = [dict.fromkeys(names, level) for names in sets for level in (0.0, 1.0)][1:]
            if self.chance(0.5):
                self.arms = self.arms[:: self.rng.integers(2, 4)]
            fields |= {"arms": self.arms, "reward_range": (-20.0, 20.0)}
        if self.mode in ("hard", "soft") and self.chance(0.5):
            fields["limits"] = self.draw_limits()
        if self.mode == "soft" and not self.limits and self.at_most is None and self.chance(0.15):
            fields["options"] = {"max_interventions": 1}
        if self.mode == "hard" and self.chance(0.5):
            sets = list(chain.from_iterable(combinations(self.names, size) for size in range(len(self.names) + 1)))
            chosen = sorted(self.rng.choice(len(sets), int(self.rng.integers(1, len(sets) + 1)), replace=False))
            self.targets = [list(sets[index]) for index in chosen]
            if not any(self.targets):
                self.targets.append(list(self.names))
            fields["targets"] = self.targets
        if self.mode in ("hard", "soft") and self.chance(0.25):
            node = str(self.rng.choice(causes))
            fields["constraints"] = [f"{node} >= {self.rng.choice([-3.0, 0.0, 1.0])}"]
        if self.mode not in ("discrete", "aggregated") and self.chance(0.25):
            fields["costs"] = {self.names[0]: 3.0}
        if self.chance(0.2):
            fields["noise"] = dict.fromkeys(self.nodes, 0.1)
        return fields | self.settings()

    def draw_objectives(self):
        """Replace the reward by several objectives, one of which may be the cost."""
        del self.fields["reward"], self.fields["direction"]
        names = self.some([node for node in self.nodes if node not in self.names], 2)[:3]
        self.measured_objectives = sorted(names)
        if len(names) < 2 or self.chance(0.2):
            self.fields["costs"] = {self.names[0]: 3.0}
            names.append("cost")
        self.fields["objectives"] = {name: str(self.rng.choice(["maximize", "minimize"])) for name in names}
        if self.chance(0.9):
            # A study with several objectives refuses constraints.
            self.fields.pop("constraints", None)

    def settings(self):
        """Return the fields for the variables or parameters that can be set."""
        if self.mode in ("hard", "contextual"):
            return {"settable": self.domains}
        if self.mode in ("soft", "aggregated"):
            self.nulls = {name: self.draw_value(name) for name in self.names}
            null = self.nulls if self.mode == "soft" else {}
            return {
                "parameters": {
                    name: {"node": self.entered[name], "bounds": domain, "null": null.get(name)}
                    for name, domain in self.domains.items()
                }
            }
        return {}

    def draw_limits(self):
        """Return limits that some point meets, as strings; keep them in ``limits`` as coefficients and bounds."""
        names = [name for name in self.names if not getattr(self.domains[name], "categories", None)]
        if not names:
            return []
        inside = {name: self.draw_value(name) for name in names}
        words = []
        for _ in range(self.rng.integers(1, 3)):
            used = self.some(names)[:3]
            factors = {name: float(self.rng.choice([1.0, 1.0, 2.0, -1.0])) for name in used}
            total = sum(factor * inside[name] for name, factor in factors.items())
            written = " + ".join(f"{factor} * {name}" for name, factor in factors.items())
            sign = str(self.rng.choice(["<=", ">=", "=="] if len(used) > 1 else ["<=", ">="]))
            words.append(f"{written} {sign} {total!r}")
            low, high = (-math.inf if sign == "<=" else total), (math.inf if sign == ">=" else total)
            self.limits.append((factors, low, high))
        if len(self.names) > 1 and self.chance(0.4):
            count = int(self.rng.integers(1, len(self.names)))
            self.at_most = count
            words.append(f"at most {count} of {', '.join(self.names)}")
        return words

    # The system ------------------------------------------------------------------------------------------------

    def draw_value(self, name):
        domain = self.domains[name]
        low, high = domain
        if categories := getattr(domain, "categories", None):
            return str(self.rng.choice(categories))
        if isinstance(domain, Integer):
            return int(self.rng.integers(low, high + 1))
        if step := getattr(domain, "step", None):
            return float(low + step * self.rng.integers(0, round((high - low) / step) + 1))
        value = float(self.rng.uniform(low, high))
        return domain.round(value)[0] if getattr(domain, "digits", None) else value

    def number(self, name, value):
        if isinstance(value, str):
            return float(self.domains[name].categories.index(value))
        return float(np.mean(value))

    def context(self):
        return {name: float(self.rng.normal(1.0, 0.5)) for name in self.contexts} or None

    def outcome(self, do, context=None):
        """Return the values of all variables."""
        hidden = dict.fromkeys(self.nodes, 0.0)
        for first, second in self.latent:
            signal = self.rng.normal(0.0, 0.3)
            hidden[first] += signal
            hidden[second] -= signal
        values, numbers = {}, {}
        sets_variables = self.mode not in ("soft", "aggregated")
        for node in self.nodes:
            if sets_variables and node in do:
                values[node] = do[node]
            elif node in (context or {}):
                values[node] = context[node]
            elif sets_variables and getattr(self.domains.get(node), "categories", None):
                values[node] = self.draw_value(node)
            else:
                entering = [self.number(name, do[name]) for name in do if node in self.entered.get(name, ())]
                total = sum(math.sin(numbers[parent]) for parent in self.parents[node]) + sum(map(math.cos, entering))
                values[node] = float(np.clip(total + hidden[node] + self.rng.normal(0.0, 0.1), -20.0, 20.0))
            numbers[node] = self.number(node, values[node])
        return values

    def draw_action(self):
        """Return an action that a user could take, perhaps outside limits and targets."""
        if self.mode == "discrete":
            return dict(self.arms[self.rng.integers(len(self.arms))])
        if self.mode == "aggregated":
            return {name: sorted(self.rng.uniform(*self.ends(name), 2).tolist()) for name in self.names}
        chosen = self.names if self.mode == "soft" else self.some(self.names, 0)
        return {name: self.draw_value(name) for name in chosen}

    def drop_some(self, values, keep=None):
        """Return values, some of which were not measured; by default the objectives were."""
        kept = self.measured_objectives if keep is None else keep
        return {name: value for name, value in values.items() if name in kept or self.chance(0.7)}

    # Checks ----------------------------------------------------------------------------------------------------

    def attempt(self, call):
        """Return the result of a call; None if it is refused with a message for users."""
        try:
            return call()
        except AgentError:
            raise
        except CBOGymError as error:
            message = str(error)
            assert len(message) > 15, message
            assert "object at 0x" not in message, message
            assert "Traceback" not in message, message
            self.refusals[message] += 1
            self.refusal = message
            return None

    def check_action(self, do, fixed=None):
        """Assert that an action may be suggested."""
        if self.mode == "discrete":
            assert do in self.arms, (do, self.arms)
            return
        for name, value in do.items():
            domain = self.domains[name]
            low, high = domain
            if categories := getattr(domain, "categories", None):
                assert value in categories
                continue
            assert low <= np.min(value) <= np.max(value) <= high, (name, value, domain)
            if isinstance(domain, Integer):
                assert isinstance(value, int), (name, value)
            elif step := getattr(domain, "step", None):
                assert abs((value - low) / step - round((value - low) / step)) < EXACT, (name, value, domain)
            elif (digits := getattr(domain, "digits", None)) and name not in (fixed or {}):
                assert value == float(f"{value:.{digits}g}"), (name, value, domain)
        if self.mode in ("soft", "aggregated"):
            assert sorted(do) == self.names
        if self.targets is not None:
            assert sorted(do) in self.targets, (do, self.targets)
        for factors, low, high in self.limits:
            self.check_limit(do, factors, low, high)
        if self.at_most is not None and self.mode == "hard":
            assert len(do) <= self.at_most
        if self.at_most is not None and self.mode == "soft":
            changed = [name for name, null in self.nulls.items() if not same_setting(do[name], null)]
            assert len(changed) <= self.at_most, (do, self.nulls)
        for name, value in (fixed or {}).items():
            assert same_setting(do[name], value), (name, do, fixed)

    def check_set(self, recommended):
        """Assert that actions of a set may be suggested, differ, and have finite forecasts."""
        assert len({str(action.do) for action in recommended}) == len(recommended) > 0
        for action in recommended:
            self.check_action(action.do)
            assert list(action.expected) == list(self.fields["objectives"])
            assert all(map(math.isfinite, action.expected.values()))
        assert recommended.to_frame().height == len(recommended)

    def check_limit(self, do, factors, low, high):
        """Assert that a limit holds if the variables that are not set have their most favourable values."""
        least = most = width = 0.0
        for name, factor in factors.items():
            ends = [do[name]] * 2 if name in do else self.ends(name)
            least += min(factor * end for end in ends)
            most += max(factor * end for end in ends)
            width += abs(factor) * (self.ends(name)[1] - self.ends(name)[0])
        assert most >= low - EXACT * width, (do, factors, low, high, most - low)
        assert least <= high + EXACT * width, (do, factors, low, high, least - high)

    def rebuilt(self):
        """Return the study from a copy of the log, without any cache."""
        self.copies += 1
        copy = self.folder / f"copy{self.copies}.db"
        shutil.copy(self.path, copy)
        lose_caches(copy)
        return load_study(storage=copy)

    def asked(self, count=None, **steering):
        """Ask the study, and sometimes a copy from its log, which must give the same."""
        context = self.context()
        copy = self.rebuilt() if self.chance(0.25) else None
        trials = self.attempt(lambda: self.study.ask(count, context=context, **steering))
        if copy is not None:
            again = self.attempt(lambda: copy.ask(count, context=context, **steering))
            assert again == trials
        if trials is None:
            allowed = (*ASK_REFUSED, *(STEERING_REFUSED if steering else ()))
            assert any(words in self.refusal for words in allowed), self.refusal
        for trial in trials if isinstance(trials, list) else [trials] if trials else []:
            self.check_action(trial.do, steering.get("fixed"))
        if isinstance(trials, list):
            for name in steering.get("shared", ()):
                assert len({trial.do[name] for trial in trials}) == 1
        return trials

    # Steps -----------------------------------------------------------------------------------------------------

    def add_data(self):
        rows, done = [], []
        for _ in range(self.rng.integers(1, 5)):
            done.append(self.draw_action())
            rows.append(self.outcome(done[-1], self.context()))
        if self.chance(0.3):
            rows = [self.drop_some(row, (*self.measured_objectives, *self.contexts)) for row in rows]
        if self.chance(0.2):
            del rows[0]["y"]
        elif self.chance(0.1):
            rows, done = [rows[0]] * len(rows), [done[0]] * len(done)
        if self.chance(0.4):
            rows, done = [*rows, rows[0], rows[0]], [*done, done[0], done[0]]
        if self.chance(0.2):
            rows = [row | {"std(y)": 0.1} if "y" in row else row for row in rows]
        earlier = {}
        if self.chance(0.3):
            earlier = {"campaign": "before", "differs": self.some(self.nodes, 0)[:2]}
        self.attempt(lambda: self.study.add_data(rows, do=done, **earlier))

    def play(self, steps=10):
        """Take random steps; then check the tables and the log."""
        if self.study is None:
            return
        if self.chance(0.5):
            self.add_data()
        names, weights = list(STEPS), np.array(list(STEPS.values()), dtype=float)
        self.asked()
        for _ in range(steps - 1):
            getattr(self, f"step_{self.rng.choice(names, p=weights / weights.sum())}")()
        self.step_replay()
        self.check_tables()

    def pick(self, *statuses):
        entries = [entry for entry in self.study.trials if entry.status in statuses]
        return entries[self.rng.integers(len(entries))] if entries else None

    def step_ask(self):
        self.asked()

    def step_ask_more(self):
        self.asked(int(self.rng.integers(2, 4)))

    def step_ask_fixed(self):
        names = self.to_steer()
        fixed = {name: self.draw_value(name) for name in self.some(names)[:2]}
        if self.mode in ("aggregated", "discrete"):
            fixed = {"a": 1.0} if self.chance(0.2) else {}
        self.asked(int(self.rng.integers(1, 3)), fixed=fixed)

    def step_ask_shared(self):
        self.asked(int(self.rng.integers(2, 4)), shared=self.some(self.to_steer())[:2])

    def to_steer(self):
        """Return names that a suggestion sets together."""
        targets = [target for target in self.targets or [self.names] if target]
        return targets[self.rng.integers(len(targets))] if targets else self.names

    def step_register(self):
        self.attempt(lambda: self.study.register(self.draw_action(), context=self.context()))

    def step_reject(self):
        if entry := self.pick("pending"):
            self.study.reject(entry.number, "too hot")

    def step_fail(self):
        if entry := self.pick("pending", "partial"):
            self.study.fail(entry.number, "the pump broke")

    def done_by(self, entry):
        return self.study.units.native_values(self.study.units.from_flat(entry.action))

    def measured(self, entry):
        """Return an outcome that does not contradict what was recorded."""
        values = self.outcome(self.done_by(entry), entry.context)
        return values | {name: value for name, value in entry.values.items() if value is not None}

    def step_tell(self):
        if entry := self.pick("pending", "partial"):
            values = self.measured(entry)
            if self.chance(0.15):
                values = self.drop_some(values)
            did = None
            if self.chance(0.1) and self.mode in ("hard", "soft", "contextual"):
                did = {name: self.draw_value(name) for name in self.done_by(entry)}
                # The action that was carried out may be outside the bounds.
                excess = float(self.rng.choice([1e-7, 0.3]))
                did |= {name: value + excess for name, value in did.items() if type(self.domains[name]) is tuple}
                values = {name: value for name, value in values.items() if name not in did}
            self.attempt(lambda: self.study.tell(entry.number, values, did=did))
        else:
            self.asked()

    def step_tell_more(self):
        """Tell with a precision: standard errors, repeats or counts."""
        entry = self.pick("pending", "partial")
        if entry is None:
            return
        values = self.measured(entry)
        if self.chance(0.4):
            self.attempt(lambda: self.study.tell(entry.number, values, std={"y": float(self.rng.uniform(0.0, 0.3))}))
        elif self.chance(0.5):
            rows = [values, *({"y": values["y"] + self.rng.normal(0.0, 0.1)} for _ in range(3))]
            self.attempt(lambda: self.study.tell(entry.number, rows))
        else:
            self.attempt(lambda: self.study.tell(entry.number, values | {"y": "37 of 1000"}))

    def step_tell_part(self):
        if entry := self.pick("pending", "partial"):
            values = self.drop_some(self.measured(entry), ())
            self.attempt(lambda: self.study.tell(entry.number, values, final=False))

    def step_close(self):
        if entry := self.pick("partial", "pending"):
            self.attempt(lambda: self.study.close(entry.number))

    def step_correct(self):
        if entry := self.pick("measured", "partial", "closed"):
            values = self.outcome(self.done_by(entry), entry.context)
            self.attempt(lambda: self.study.correct(entry.number, values))

    def step_recommend(self):
        context = self.context()
        recommended = self.attempt(lambda: self.study.recommendation(context=context))
        if isinstance(recommended, RecommendedSet):
            self.check_set(recommended)
            recommended = recommended[0].do
        elif recommended is not None:
            self.check_action(recommended)
        do = recommended if recommended is not None and self.chance(0.5) else self.draw_action()
        expected = self.attempt(lambda: self.study.what_if(do, context=context))
        assert expected is None or all(isinstance(value, str) or math.isfinite(value) for value in expected.values())

    def step_look(self):
        if self.chance(0.3):
            self.attempt(lambda: self.study.report(self.folder / "s.html"))
        for best in self.study.best_trials:
            assert best.status == "measured"
            for limit in self.limits:
                self.check_limit(self.done_by(best), *limit)

    def step_reopen(self):
        if self.chance(0.5):
            lose_caches(self.path)
        self.study = load_study(storage=self.path)

    def step_replay(self):
        """Assert that the log alone gives the same next suggestion and the same recommendation."""
        context, copy = self.context(), self.rebuilt()
        assert_frame_equal(copy.to_frame(), self.study.to_frame())
        studies = (self.study, copy)
        best = [self.attempt(lambda study=study: study.recommendation(context=context)) for study in studies]
        assert best[0] == best[1]
        trials = [self.attempt(lambda study=study: study.ask(context=context)) for study in studies]
        assert trials[0] == trials[1]
        if trials[0] is not None:
            self.check_action(trials[0].do)

    def check_tables(self):
        """Assert that all rounds can be imported into a new study, which then has the same data."""
        data = self.study.data()
        assert self.study.to_frame().height == len(self.study.trials)
        if data.height:
            other = create_study("t", storage=self.folder / "t.db", **self.fields)
            added = self.attempt(lambda: other.add_data(data))
            if added is None:
                assert re.search("(is|are) missing, and", self.refusal), self.refusal
            else:
                assert_frame_equal(other.data(), data, rel_tol=1e-9, abs_tol=1e-9)


def same_setting(first, second):
    """Return whether two values are the same label, or the same number up to rounding."""
    return first == second if isinstance(first, str) else abs(first - second) <= EXACT * max(1.0, abs(second))
