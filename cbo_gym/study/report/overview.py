"""An overview of the study in a few facts: its aim, and how it stands."""

from __future__ import annotations

from collections import Counter
from html import escape

from cbo_gym.study.report.markup import number, section
from cbo_gym.study.report.mind import Mind
from cbo_gym.study.report.naming import action_words, with_unit
from cbo_gym.study.report.rounds import Seen, done_in, reward_of, seen_rounds
from cbo_gym.study.study import Study

STATES = {"told": "told", "pending": "running", "failed": "failed"}


def overview_section(study: Study, mind: Mind) -> str:
    """The facts."""
    about, rounds = study.about, seen_rounds(study)
    goal = "as little as possible of" if about.direction == "minimize" else "as much as possible of"
    facts = [
        ("Goal", f"{goal} {with_unit(study, about.reward)}"),
        ("Trials", _progress(study)),
        ("Imported", f"{sum(one.number is None for one in rounds)} rounds"),
        ("Agent", _agent(study, mind)),
        ("Mode", about.mode),
    ]
    if about.ignored:
        facts.append(("Ignored", ", ".join(about.ignored)))
    if rounds:
        facts.insert(2, ("Best seen", _best_seen(study, rounds)))
    inside = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in facts)
    return section("overview", "Overview", f'<dl class="facts">{inside}</dl>')


def _agent(study: Study, mind: Mind) -> str:
    chosen = getattr(mind.agent, "chosen", None)  # of Auto
    return study.about.agent if chosen is None else f"{study.about.agent}. {chosen.why}"


def _progress(study: Study) -> str:
    count = Counter[str](entry.status for entry in study.trials)
    parts = [f"{count[status]} {word}" for status, word in STATES.items() if count[status]]
    return f"{sum(count.values())} of {study.about.horizon} planned" + (f": {', '.join(parts)}" if parts else "")


def _best_seen(study: Study, rounds: list[Seen]) -> str:
    index = study._units.best([one.values for one in rounds])
    if index is None:
        return "no round meets the constraints yet"
    best = rounds[index]
    where = "imported data" if best.number is None else f"trial {best.number}"
    unit = study.about.units.get(study.about.reward, "")
    done = action_words(study, done_in(study, best.action))
    return f"{number(reward_of(study, best))} {unit}".rstrip() + f" in {where}, with {done}"
