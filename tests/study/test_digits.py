"""Suggestions and recommendations that are rounded to significant digits."""

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import Integer, Range, create_study, load_study
from tests.support.studies import lose_caches

DIAGRAM = "dag { a -> growth; b -> growth; dose -> growth -> titre; n -> titre }"
SETTABLE = {
    "a": Range(0, 4, digits=1),
    "b": Range(0.5, 4, digits=2),
    "dose": Range(1e-3, 1, scale="log", digits=2),
    "n": Integer(1, 8),
}
SLOW = [("Random", "hard", 6), ("Random", "soft", 6), ("Optuna", "hard", 3), ("MCBO", "hard", 2)]
LIMITS = ["a + b <= 5", "a + 40 * dose <= 3.5 + b"]


def rounding_study(path, agent="Random", mode="hard", **others):
    parameters = {f"p_{name}": {"node": "growth", "bounds": domain} for name, domain in SETTABLE.items()}
    described = {"settable": SETTABLE} if mode == "hard" else {"mode": "soft", "parameters": parameters}
    return create_study("s", storage=path, diagram=DIAGRAM, reward="titre", agent=agent, **(described | others))


def require_digits(done):
    for name, value in done.items():
        domain = SETTABLE[name.removeprefix("p_")]
        assert domain.low <= value <= domain.high
        if isinstance(domain, Range):
            assert value == float(f"{value:.{domain.digits - 1}e}")


def outcome(done, rng):
    values = {name: float(rng.random()) for name in ("a", "b", "dose", "n", "growth", "titre")}
    return values | {name: value for name, value in done.items() if name in values}


@pytest.mark.parametrize(
    ("agent", "mode", "rounds"),
    [
        ("Random", "hard", 1),
        ("GP-UCB", "soft", 1),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW),
    ],
)
def test_what_is_suggested_and_recommended_has_the_digits_within_the_limits(tmp_path, agent, mode, rounds):
    rng = np.random.default_rng(100)
    prefix = "p_" if mode == "soft" else ""
    limits = [limit.replace("a ", f"{prefix}a ").replace("b", f"{prefix}b").replace("dose", f"{prefix}dose")
              for limit in LIMITS]  # fmt: skip
    study = rounding_study(tmp_path / "s.db", agent, mode, limits=limits)
    for _ in range(rounds):
        for trial in study.ask(2, shared=[f"{prefix}b"]):
            require_digits(trial.do)
            a, b, dose = (
                trial.do.get(f"{prefix}{name}", low) for name, low in [("a", 0.0), ("b", 0.5), ("dose", 1e-3)]
            )
            assert a + b <= 5 + 1e-9
            # What a trial does not set counts with its most favourable value.
            assert a + 40 * dose <= 3.5 + b + 1e-9
            study.tell(trial, outcome(trial.do, rng))
    require_digits(study.recommendation())
    following, recommended = study.ask().do, study.recommendation()
    lose_caches(tmp_path / "s.db")
    again = load_study(storage=tmp_path / "s.db")
    assert (again.recommendation(), again.trials[-1].action) == (recommended, study.trials[-1].action)
    require_digits(following)


def test_agents_learn_the_rounded_value_and_data_keep_their_digits(tmp_path):
    study = rounding_study(tmp_path / "s.db", "HCBO", settable={"a": Range(0, 4, digits=1)}, targets=[["a"]])
    trial = study.ask()
    require_digits(trial.do)
    study.tell(trial, outcome({}, np.random.default_rng(100)) | trial.do)
    _, agent, _ = study.agent_snapshot()
    assert 4 * agent.history[-1].action["values"][0] == pytest.approx(trial.do["a"], abs=1e-12)
    second = study.register({"a": 1.2345})
    study.tell(second, outcome({"a": 1.2345}, np.random.default_rng(100)))
    assert study.data()["do(a)"].to_list() == [trial.do["a"], 1.2345]
    assert study.what_if({"a": 1.2345}) is not None


def test_fixed_values_keep_their_digits(tmp_path):
    study = rounding_study(tmp_path / "s.db", "GP-UCB", "soft", limits=["p_a + p_b <= 5"])
    trial = study.ask(fixed={"p_a": 1.2345})
    assert trial.do.pop("p_a") == 1.2345
    require_digits(trial.do)


def test_digits_that_do_not_fit_are_refused(tmp_path):
    for limits, message in [
        (["a + b == 3"], "a has digits, and rounded values cannot keep 'a [+] b == 3'"),
        (["3.331 <= a + b", "a + b <= 3.334"], "allow more digits"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            rounding_study(tmp_path / "s.db", limits=limits)
    parameters = {"p": {"node": "growth", "bounds": Range(0, 1, digits=1), "null": 0.25}}
    with pytest.raises(ArgumentError, match=r"p must have at most 1 digits; given 0\.25: write 0\.2"):
        rounding_study(tmp_path / "s.db", mode="soft", parameters=parameters)
    assert rounding_study(tmp_path / "s.db", limits=["n == 4"]).ask().number == 1
