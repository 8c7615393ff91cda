"""Past rounds, which a study imports from a table or from an earlier study.

Each of them becomes a record, a mapping in the form in which the log stores it: ``action``, encoded as numbers;
``values``, with None for a variable that was not measured; ``context``; and, if they are stated, ``std``, ``counts``,
``campaign`` and ``differs``.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.study.campaigns import LEARN_MECHANISMS, UnusedDataWarning, describe_unused, observes_only, round_for_agent
from cbo_gym.study.description import Description
from cbo_gym.study.log import MAX_PAYLOAD
from cbo_gym.study.suggesting import DO_WITHOUT, LEARN_PARTS, agents_for_mode
from cbo_gym.study.tables import CAMPAIGN, DIFFERS, Columns, TableRow, read_rows
from cbo_gym.study.trials import any_measured, missing_variables
from cbo_gym.study.units import Units

# Largest number of characters of the name of a campaign.
MAX_CAMPAIGN_NAME = 200


class RepeatedDataWarning(UserWarning):
    """Imported rounds equal rounds that the study had already.

    Attributes:
        count: number of such rounds.
    """

    count = 0


class PastRound(NamedTuple):
    """A past round: its label in messages, such as ``"line 7"``, and its record."""

    label: str
    record: dict[str, Any]


def read_rounds(
    units: Units,
    rounds: Any,
    *,
    do: Any = None,
    ignore: Iterable[str] | str = (),
    campaign: str | None = None,
    differs: Iterable[str] | str = (),
) -> list[PastRound]:
    """Read past rounds; arguments and errors are those of :meth:`cbo_gym.study.Study.add_data`."""
    description, interface = units.description, units.interface
    sets_intervals, ignored = interface.codec.intervals, description.ignored
    columns = Columns(interface.nodes, units.settable, description.units, sets_intervals, ignored, units.labels)
    if campaign is not None and not (isinstance(campaign, str) and 0 < len(campaign) <= MAX_CAMPAIGN_NAME):
        raise ArgumentError(
            f"campaign must be a name of 1 to {MAX_CAMPAIGN_NAME} characters; given {short_repr(campaign)}"
        )
    if not isinstance(differs, Iterable):
        raise ArgumentError(f"differs must be a list of names of variables; given {short_repr(differs)}")
    differing = _read_names([differs] if isinstance(differs, str) else differs, interface.nodes)
    rows = read_rows(rounds, columns, do=do, ignore=ignore)
    rows = [row if row.campaign else row._replace(campaign=campaign) for row in rows]
    if differing and not any(row.campaign for row in rows):
        raise ArgumentError(f"differs names {differing}, and no campaign; give its name: campaign='pilot'")
    return [PastRound(row.label, _record(units, row, differing)) for row in rows]


def _record(units: Units, row: TableRow, differing: Sequence[str]) -> dict[str, Any]:
    """Return the record of a row; the variables ``differing`` differ in the campaigns of all rows."""
    try:
        if not any_measured(row.values):
            raise ArgumentError("nothing was measured; fill in a value, or leave the row out")
        observed = {name: row.values[name] for name in units.description.contexts if name in row.values}
        context = observed if units.interface.observes_before else None
        # This refuses a missing context.
        units.context(context)
        action = units.past_action(row.done, row.values)
        measurement = units.read_measurement(row.values, row.std)
        units.require_set_labels(measurement.values, action)
        measurement = measurement._replace(values=units.fill_in(measurement.values, action, context))
        record = {"action": units.to_flat(action), **measurement.fields(), "context": context}
        row_differs = _read_names(re.split(r"[,;]", row.differs or ""), units.interface.nodes)
        if row.campaign is None:
            if row_differs:
                raise ArgumentError(
                    f"{', '.join(row_differs)} differs in an earlier campaign; give its name as {CAMPAIGN}"
                )
            return record
        record["campaign"] = row.campaign
        if row_differs or differing:
            record["differs"] = [name for name in units.interface.nodes if name in (*row_differs, *differing)]
        return record
    except ArgumentError as error:
        raise ArgumentError(f"{row.label}: {error}") from error


def _read_names(names: Iterable[Any], nodes: Sequence[str]) -> list[str]:
    stripped = [name.strip() if isinstance(name, str) else name for name in names]
    if unknown := [name for name in stripped if name and name not in nodes]:
        raise ArgumentError(
            f"{DIFFERS} names {short_repr(unknown[0])}{did_you_mean(unknown[0], nodes)}; the variables are "
            f"{list(nodes)}"
        )
    return [name for name in stripped if name]


def rounds_for(units: Units, frame: pl.DataFrame, earlier: Description) -> pl.DataFrame:
    """Return the rounds of an earlier study as a table for this one, without variables that this one lacks."""
    study_units, nodes = units.description.units, units.interface.nodes
    for name in sorted(set(study_units) & set(earlier.units)):
        if study_units[name] != earlier.units[name]:
            raise ArgumentError(
                f"the unit of {name} is {study_units[name]!r}, and in {earlier.name} it is {earlier.units[name]!r}; "
                "convert its rounds, data(), and add them by add_data"
            )
    columns = {*nodes, *(f"{noun}({name})" for name in nodes for noun in ("std", "count")), CAMPAIGN, DIFFERS}
    columns |= {f"do({name})" for name in units.settable}
    # A value that was set matters even if this study cannot set it.
    columns |= {column.name for column in frame if column.name.startswith("do(") and column.null_count() < len(frame)}
    return frame.select(name for name in frame.columns if name in columns)


def check_rounds(rounds: Sequence[PastRound], units: Units, begin: Callable[[], Any]) -> None:
    """Refuse rounds without a value that the agent needs, because imported data cannot be corrected later.

    Warn of rounds from which the agent learns nothing. The function ``begin`` returns the agent, after its reset.
    """
    doubtful = [row for row in rounds if missing_variables(row.record["values"]) or _is_new(row.record, units)]
    if not doubtful:
        return
    agent, description = begin(), units.description
    for label, record in doubtful:
        missing = missing_variables(record["values"])
        # Such as "the reward titre is".
        missing_outcome = units.subject(units.missing_outcome(units.from_flat(record["action"]), record["values"]))
        if missing_outcome and not getattr(agent, "takes_partial", False):
            pronoun = "them" if missing_outcome.endswith("are") else "it"
            raise ArgumentError(
                f"{label}: {missing_outcome} missing, and {description.agent} learns nothing without {pronoun}; fill "
                "in the cell, leave the row out, or choose an agent that models single variables: "
                f"{agents_for_mode(LEARN_PARTS, units)}"
            )
        if missing and not missing_outcome and not getattr(agent, "takes_missing", False):
            raise ArgumentError(
                f"{label}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, and "
                f"{description.agent} needs all variables; leave the row out, or choose an agent that can do without: "
                f"{agents_for_mode(DO_WITHOUT, units)}"
            )
    unused = [record for _, record in doubtful if round_for_agent(agent, units, record) is None]
    if unused:
        message = describe_unused(units, unused, len(rounds), agents_for_mode(LEARN_MECHANISMS, units))
        warnings.warn(message, UnusedDataWarning, stacklevel=3)


def warn_of_repeats(rounds: Sequence[PastRound], known_records: Iterable[Mapping[str, Any]]) -> None:
    """Warn of rounds that the study has already, as after a second import of the same file."""
    known_counts = Counter(map(_content, known_records))
    repeated = (Counter(_content(record) for _, record in rounds) & known_counts).total()
    # A single round that equals another was probably done again.
    if repeated > 1:
        warning = RepeatedDataWarning(
            f"{repeated} of {len(rounds)} rounds equal rounds that the study had already, and were added again; if "
            "they are the same rounds, add each of them once to another study, "
            "other.add_data(study.data().unique(maintain_order=True)), because data cannot be taken back"
        )
        warning.count = repeated
        warnings.warn(warning, stacklevel=3)


def _content(record: Mapping[str, Any]) -> str:
    # Converting an action to native units and back may change its last digits.
    action = [round(value, 9) for value in record["action"]]
    return json.dumps([action, record["values"], record["context"]], sort_keys=True)


def data_events(rounds: Sequence[PastRound], units: Units) -> list[tuple[str, dict[str, Any]]]:
    """Return the kind and the payload of events of limited length, which together hold all rounds.

    An event with a round that older versions of cbo-gym would misread has the kind ``past``, which they refuse.
    """
    chunks: list[list[Mapping[str, Any]]] = [[]]
    length = 0
    for _, record in rounds:
        # The 2 are for the separator; 100 characters are left for the rest of the event.
        added = len(json.dumps(record)) + 2
        length += added
        if chunks[-1] and length > MAX_PAYLOAD - 100:
            chunks.append([])
            length = added
        chunks[-1].append(record)
    return [
        ("past" if any(_is_new(record, units) for record in chunk) else "data", {"rounds": chunk}) for chunk in chunks
    ]


def _is_new(record: Mapping[str, Any], units: Units) -> bool:
    """Return whether versions that do not know campaigns would misread a round."""
    return "differs" in record or observes_only(units.from_flat(record["action"]))
