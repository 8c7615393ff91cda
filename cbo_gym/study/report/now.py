"""What is to be done now: trials that run, what is recommended, and what the agent expects of it."""

from __future__ import annotations

from cbo_gym.study.report.markup import number, section, table
from cbo_gym.study.report.naming import action_words, with_unit
from cbo_gym.study.study import Study


def now_section(study: Study) -> str:
    """The trials that run, with the reasons for them, and the recommendation."""
    pending = [entry for entry in study.trials if entry.status == "pending"]
    rows = [
        [str(entry.number), action_words(study, study._done(study._units.read(entry.flat))), entry.why]
        for entry in pending
    ]
    running = table("Trials that run", ["Trial", "Set", "Why"], rows) if rows else ""
    return section("now", "Now", running, _recommended(study))


def _recommended(study: Study) -> str:
    if not any(entry.status == "told" for entry in study.trials):
        return ""
    done = study.recommendation()
    rows = [["set", action_words(study, done)]]
    try:
        rows += [[f"expected {with_unit(study, name)}", number(value)] for name, value in study.what_if(done).items()]
    except Exception as error:  # an agent of somebody else's may have no beliefs
        rows.append(["expected", f"the agent does not say ({type(error).__name__})"])
    return table("Recommended now", ["", ""], rows)
