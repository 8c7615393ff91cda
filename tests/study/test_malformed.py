"""A thousand calls that are wrong in some way: each is an error that can be mended, and the log stays as it was."""

import math
import random

import pytest

from cbo_gym.errors import CBOGymError
from cbo_gym.study import create_study
from tests.support.studies import FERMENTER, events_of, fermenter, grown
from tests.support.study_visitor import HTML, SQL, WRONG

CALLS = 1000
TEXTS = ["", "7 g", SQL, HTML, "nan", "titre", "\0", "x" * 5000, "日本語"]
THINGS = [None, math.nan, math.inf, -math.inf, [], {}, [1.0], True, b"1", object(), *TEXTS]
#: THINGS that a table may not hold either: some mean that nothing was measured there, and True is 1
IN_TABLES = [thing for thing in THINGS if thing is None or (thing == thing and thing not in ("", "nan", True))]


def wrong_values(draw, things=THINGS):
    """Values of a trial that are wrong in one place."""
    good = grown({})
    return draw.choice(
        [
            {**good, draw.choice([*TEXTS[1:4], "Titre", "feed "]): 1.0},
            {**good, draw.choice(sorted(good)): draw.choice([thing for thing in things if thing is not None])},
            {key: value for key, value in good.items() if key != "titre"},
            {**good, "titre": draw.choice(things)},
            draw.choice(things),
        ]
    )


def test_wrong_calls_change_nothing(tmp_path):
    draw = random.Random(0)
    study = fermenter(tmp_path / "f.db", agent="Random")
    recorded, pending = (trial.number for trial in study.ask(2))
    study.tell(recorded, grown({}))
    dids = [{"titre": 1.0}, {"pH": 1.0}, {"ph": "6"}, {"ph": math.nan}, SQL, 3]
    calls = [
        lambda: study.tell(pending, wrong_values(draw)),
        lambda: study.tell(draw.choice([recorded, 99, -1, 0, 1.5, "1", None]), grown({})),
        lambda: study.tell(pending, grown({}), did=draw.choice(dids)),
        lambda: study.correct(draw.choice([pending, 99]), grown({})),
        lambda: study.fail(draw.choice([recorded, 99, "2"]), draw.choice(["", SQL])),
        lambda: study.add_data([grown({}), wrong_values(draw, IN_TABLES)]),
        lambda: study.ask(draw.choice([0, -1, 1.5, "2", math.nan])),
    ]
    before = events_of(tmp_path / "f.db")
    for _ in range(CALLS):
        with pytest.raises(CBOGymError):
            draw.choice(calls)()
    assert events_of(tmp_path / "f.db") == before


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_field_makes_no_study(tmp_path, field):
    for thing in WRONG[field]:
        about = {**FERMENTER, "agent": "Random", field: thing}
        with pytest.raises(CBOGymError):
            create_study("study", storage=tmp_path / "f.db", **about)
    assert not (tmp_path / "f.db").exists()
