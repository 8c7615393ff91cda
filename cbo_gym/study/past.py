"""Past rounds, from tables and earlier studies, in the form in which the log stores them."""

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
from cbo_gym.study.suggesting import DO_WITHOUT, LEARN_PARTS, SEVERAL_LEARN_PARTS, agents_for_mode
from cbo_gym.study.tables import CAMPAIGN, DIFFERS, Columns, TableRow, read_rows
from cbo_gym.study.trials import any_measured, missing_variables
from cbo_gym.study.units import Units

# Characters of the name of a campaign.
MAX_NAME = 200


class RepeatedDataWarning(UserWarning):
    """Imported rounds equal rounds that the study had already.

    Attributes:
        count: number of such rounds.
    """

    count = 0


class PastRound(NamedTuple):
    """A past round: its label in messages, and its fields in the log."""

    label: str
    fields: dict[str, Any]


def read_past(
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
    categories = interface.codec.labels | {name: domain.categories for name, domain in units.categories.items()}
    names = Columns(
        interface.nodes,
        units.settable,
        description.units,
        interface.codec.intervals,
        description.ignored,
        categories,
    )
    if campaign is not None and not (isinstance(campaign, str) and 0 < len(campaign) <= MAX_NAME):
        raise ArgumentError(f"campaign must be a name of 1 to {MAX_NAME} characters; given {short_repr(campaign)}")
    if not isinstance(differs, Iterable):
        raise ArgumentError(f"differs must be a list of names of variables; given {short_repr(differs)}")
    everywhere = _read_names([differs] if isinstance(differs, str) else differs, interface.nodes)
    rows = read_rows(rounds, names, do=do, ignore=ignore)
    rows = [row if row.campaign else row._replace(campaign=campaign) for row in rows]
    if everywhere and not any(row.campaign for row in rows):
        raise ArgumentError(f"differs names {everywhere}, and no campaign; give its name: campaign='pilot'")
    return [PastRound(row.label, _round(units, row, everywhere)) for row in rows]


def _round(units: Units, row: TableRow, everywhere: Sequence[str]) -> dict[str, Any]:
    try:
        if not any_measured(row.values):
            raise ArgumentError("nothing was measured; fill in a value, or leave the row out")
        observed = {name: row.values[name] for name in units.description.contexts if name in row.values}
        context = observed if units.interface.observes_before else None
        # This refuses a missing context.
        units.context(context)
        action = units.past_action(row.done, row.values)
        measured = units.read_measurement(row.values, row.std)
        filled = units.fill_in(measured.values, action, context)
        fields = {"action": units.flat(action), **measured._replace(values=filled).fields(), "context": context}
        row_differs = _read_names(re.split(r"[,;]", row.differs or ""), units.interface.nodes)
        if row.campaign is None:
            if row_differs:
                raise ArgumentError(
                    f"{', '.join(row_differs)} differs in an earlier campaign; give its name as {CAMPAIGN}"
                )
            return fields
        differing = [name for name in units.interface.nodes if name in (*row_differs, *everywhere)]
        return fields | {"campaign": row.campaign} | ({"differs": differing} if differing else {})
    except ArgumentError as error:
        raise ArgumentError(f"{row.label}: {error}") from error


def _read_names(names: Iterable[Any], nodes: Sequence[str]) -> list[str]:
    read = [name.strip() if isinstance(name, str) else name for name in names]
    if unknown := [name for name in read if name and name not in nodes]:
        raise ArgumentError(
            f"{DIFFERS} names {short_repr(unknown[0])}{did_you_mean(unknown[0], nodes)}; the variables are "
            f"{list(nodes)}"
        )
    return [name for name in read if name]


def rounds_for(units: Units, frame: pl.DataFrame, earlier: Description) -> pl.DataFrame:
    """Return the rounds of an earlier study as a table for this one, without variables that this one lacks.

    Raises:
        ArgumentError: if a variable has another unit.
    """
    study_units, nodes = units.description.units, units.interface.nodes
    for name in sorted(set(study_units) & set(earlier.units)):
        if study_units[name] != earlier.units[name]:
            raise ArgumentError(
                f"the unit of {name} is {study_units[name]!r}, and in {earlier.name} it is {earlier.units[name]!r}; "
                "convert its rounds, data(), and add them by add_data"
            )
    known = {*nodes, *(f"{noun}({name})" for name in nodes for noun in ("std", "count")), CAMPAIGN, DIFFERS}
    known |= {f"do({name})" for name in units.settable}
    # A value that was set matters even if this study cannot set it.
    return frame.select(
        column.name
        for column in frame
        if column.name in known or (column.name.startswith("do(") and column.null_count() < len(frame))
    )


def check_past(past: Sequence[PastRound], units: Units, begin: Callable[[], Any]) -> None:
    """Refuse missing values that the agent does not take, because data cannot be corrected; warn of useless rounds.

    Args:
        past: the rounds.
        units: the units of the study.
        begin: returns the agent, after its reset.

    Warns:
        UnusedDataWarning: if the agent learns nothing from some rounds.
    """
    incomplete = [row for row in past if missing_variables(row.fields["values"]) or _is_new(row.fields, units)]
    if not incomplete:
        return
    agent, description = begin(), units.description
    for label, fields in incomplete:
        missing = missing_variables(fields["values"])
        unknown = units.subject(units.missing_outcome(units.read(fields["action"]), fields["values"]))
        if unknown and not getattr(agent, "takes_partial", False):
            learners = LEARN_PARTS if len(units.objectives) == 1 else SEVERAL_LEARN_PARTS
            raise ArgumentError(
                f"{label}: {unknown} missing, and {description.agent} learns nothing without "
                f"{'them' if unknown.endswith('are') else 'it'}; fill in the cell, leave the row out, or choose an "
                f"agent that models single variables: {agents_for_mode(learners, units)}"
            )
        if missing and not unknown and not getattr(agent, "takes_missing", False):
            raise ArgumentError(
                f"{label}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing, and "
                f"{description.agent} needs all variables; leave the row out, or choose an agent that can do without: "
                f"{agents_for_mode(DO_WITHOUT, units)}"
            )
    unused = [fields for _, fields in incomplete if round_for_agent(agent, units, fields) is None]
    if unused:
        is_one = len(units.objectives) == 1
        learners = agents_for_mode(LEARN_MECHANISMS, units) if is_one else "none with several objectives"
        message = describe_unused(units, unused, len(past), learners)
        warnings.warn(message, UnusedDataWarning, stacklevel=3)


def warn_of_repeats(past: Sequence[PastRound], known: Iterable[Mapping[str, Any]]) -> None:
    """Warn of rounds that equal known ones, as they do if a file is imported twice."""
    counts = Counter(map(_content, known))
    repeated = (Counter(_content(fields) for _, fields in past) & counts).total()
    # A single round that equals another was probably done again.
    if repeated > 1:
        warning = RepeatedDataWarning(
            f"{repeated} of {len(past)} rounds equal rounds that the study had already, and were added again; if they "
            "are the same rounds, add each of them once to another study, "
            "other.add_data(study.data().unique(maintain_order=True)), because data cannot be taken back"
        )
        warning.count = repeated
        warnings.warn(warning, stacklevel=3)


def _content(fields: Mapping[str, Any]) -> str:
    # Converting an action to native units and back may change its last digits.
    action = [round(value, 9) for value in fields["action"]]
    return json.dumps([action, fields["values"], fields["context"]], sort_keys=True)


def data_events(past: Sequence[PastRound], units: Units) -> list[tuple[str, dict[str, Any]]]:
    """Divide past rounds into events of limited length.

    An event with a round that older versions of cbo-gym would misread has the kind ``past``, which they refuse.
    """
    chunks: list[list[Mapping[str, Any]]] = [[]]
    length = 0
    for _, fields in past:
        # The 2 are for the separator; 100 characters are left for the rest of the event.
        added = len(json.dumps(fields)) + 2
        length += added
        if chunks[-1] and length > MAX_PAYLOAD - 100:
            chunks.append([])
            length = added
        chunks[-1].append(fields)
    return [
        ("past" if any(_is_new(fields, units) for fields in chunk) else "data", {"rounds": chunk}) for chunk in chunks
    ]


def _is_new(fields: Mapping[str, Any], units: Units) -> bool:
    """Return whether versions that do not know campaigns would misread a round."""
    return "differs" in fields or observes_only(units.read(fields["action"]))
