import csv
import itertools
import json
import os
import re
import subprocess
import sys
from io import StringIO

import pytest
import typer

import cbo_gym
from cbo_gym.agent_registry.cards import agent_card
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.cli import app
from cbo_gym.envs.registry import entries, find_entry
from cbo_gym.evaluation import evaluate, load_run
from cbo_gym.evaluation.comparison.parameter_choice import read_chosen
from cbo_gym.evaluation.report.markdown import BEGIN, END
from cbo_gym.evaluation.runs.results import name_of, save_run
from tests.support.cli import as_csv, as_json, invoke, run
from tests.support.runs import play_here, save_runs

CENTRE, NONSENSE = "tests.support.agents:Centre", "tests.support.agents:Nonsense"
MINE = """
from cbo_gym import Agent, Mode

class KeepBest(Agent):
    \"\"\"Jumps around the best action.

    Args:
        width: of the jumps,
            above 0.
    \"\"\"

    modes = frozenset({Mode.SOFT})

    def __init__(self, width=0.1):
        self.width = 1 / width

    def act(self, observation):
        return self.recommend()
"""


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A working folder with mine.py in it; modules of it are not imported afterwards."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for path in tmp_path.glob("*.py"):
        if path.stem not in sys.stdlib_module_names:
            sys.modules.pop(path.stem, None)


COMMANDS = sorted(typer.main.get_command(app).commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example_and_breaks_lines_only_where_the_terminal_does(command):
    prose = run(command, "--help", COLUMNS="50").output.partition("╭")[0].splitlines()
    assert all(len(line.rstrip()) < 50 for line in prose)
    for line, following in itertools.pairwise(prose):
        if line.strip() and following.strip():
            assert len(line.rstrip()) + 1 + len(following.split()[0]) > 49, (line, following)
    prose, *panels = run(command, "--help", COLUMNS="1000").output.split("╭")
    assert f"Example: cbo-gym {command}" in prose or command in ("check", "study")
    assert not any(line.strip() and following.strip() for line, following in itertools.pairwise(prose.splitlines()))
    rows = [row for panel in panels for row in panel.splitlines()[1:] if row.startswith("│")]
    assert rows
    assert all(re.match(r"│[* ]{1,7}\S", row) for row in rows), "a line goes on below its option's name"


def test_help_names_every_mode_and_explains_patterns():
    for command in ("list", "agents", "leaderboard"):
        (said,) = re.findall(r"Only this feedback mode: ([^.]*)\.", words := invoke(command, "--help"))
        assert re.split(", | or ", said) == [mode.value for mode in cbo_gym.Mode]
        assert ("'*' stands for any text, '?' stands for one character." in words) == (command != "list")


def test_patterns_match_as_help_says():
    assert [card["name"] for card in as_json("agents", "GP-??")] == ["GP-MW"]
    assert {"GP-MW", "GP-UCB", "GP-UCB-Restarted"} == {card["name"] for card in as_json("agents", "GP-*")}
    assert "nothing fits 'GP-U?'" in invoke("agents", "GP-U?", code=2)


def test_list_filters():
    everything = invoke("list")
    assert all(entry.id in everything for entry in entries())
    hard = invoke("list", "--mode", "hard")
    assert "CBO/ToyGraph-v0" in hard
    assert "CBO/Alpine2-v0" not in hard
    assert "CBO/PSAGraph-v0" in invoke("list", "--tag", "healthcare")
    assert "CBO/CompleteGraph-v0" in invoke("list", "--paper", "aglietti")
    both = invoke("list", "--mode", "soft", "--tag", "noisy", "--paper", "SUSSEX")
    assert "CBO/Dropwave-Noisy-v0" in both
    assert "CBO/Dropwave-v0" not in both
    nothing = invoke("list", "--tag", "none", code=2)
    for part in ("the modes are adversarial,", "the tags are", "noisy", "the papers are Aglietti"):
        assert part in nothing


def test_every_line_of_a_table_is_whole_in_a_pipe():
    lines = run("list", COLUMNS="40").stdout.splitlines()
    assert len(lines) == 1 + len(entries())
    assert all(", ".join(entry.tags) in line for entry, line in zip(entries(), lines[1:], strict=True))


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_on_a_terminal_words_are_whole_and_without_colours_if_so_wished():
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"NO_COLOR": "1", "TERM": "xterm-256color"}
    words = [sys.executable, "-m", "cbo_gym", "list"]
    with subprocess.Popen(words, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    assert process.returncode == 0
    colours = re.compile(r"\x1b\[([0-9;]*)m")
    string = seen.decode()
    assert set(colours.findall(string)) <= {"0", "1", "2"}  # bold and dim are none
    lines = colours.sub("", string).split("\r\n")
    assert max(map(len, lines)) <= 80
    shown = set(" ".join(lines).replace(",", " ").split())
    assert {word for entry in entries() for word in (entry.id, *entry.tags)} <= shown
    assert any(line.startswith("Hidden to fit the width: horizon") for line in lines)


def _read(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's way to say that it has ended
        return b""


def test_show_and_list_for_programs_and_people():
    rows, lines = as_json("list", "--mode", "hard"), as_csv("list", "--mode", "hard")
    assert [row["id"] for row in rows] == [line["id"] for line in lines]
    entry = find_entry("CBO/PSAGraph-v0")
    row, line = ({one["id"]: one for one in found}[entry.id] for found in (rows, lines))
    assert (row["mode"], row["horizon"], row["tags"]) == ("hard", entry.horizon, entry.tags)
    assert row["optimum"] == float(line["optimum"]) == entry.optimum.value
    assert (line["tags"], list(line)) == (", ".join(entry.tags), list(row))
    shown = as_json("show", "CBO/CompleteGraph-v0")
    assert shown["settable"][0] == {"name": "B", "low": -5.0, "high": 4.0}
    (last,) = (node for node in shown["graph"] if node["reward"])
    assert (last["node"], last["causes"], last["confounded_with"]) == ("Y", ["D", "E"], ["A", "B"])
    fields = {line["field"]: line["value"] for line in as_csv("show", "CBO/CompleteGraph-v0")}
    assert (float(fields["optimum.value"]), fields["graph.6.causes"]) == (shown["optimum"]["value"], "D, E")
    printed = invoke("show", "CBO/CompleteGraph-v0")
    for part in ("hard, 100 rounds", "Discrete(7)", "do(B) -5 to 4", "3.483", "Y <- D, E confounded with A, B reward"):
        assert part in printed


def test_the_version():
    assert run("--version").stdout == f"cbo-gym {cbo_gym.__version__}\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("show CBO/Alpine2-No", "CBO/Alpine2-Noisy-v0"),
        ("run GP-UCB CBO/Toy", "CBO/ToyGraph-v0"),
        ("sweep runs -a MC", "MCBO"),
        ("agents --mode ha", "hard"),
        ("list --tag health", "healthcare"),
    ],
)
def test_completion(typed, completed):
    words = f"cbo-gym {typed}"
    environment = {"_CBO_GYM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert completed in run(**environment).stdout.split()


def test_every_parameter_of_an_agent_has_a_meaning():
    for name in zoo():
        card = agent_card(name)
        assert card.modes, name
        assert card.source.endswith("."), name
        assert [one.name for one in card.parameters if not one.meaning] == [], name


def test_agents_are_listed_with_their_parameters():
    listed = invoke("agents")
    assert all(name in listed for name in zoo())
    assert "beta=2.0, device='cpu'" in listed
    hard = as_json("agents", "--mode", "hard")
    assert {"CBO", "GP-UCB", "Random"} <= {one["name"] for one in hard} < set(zoo())
    details = invoke("agents", "GP-UCB")
    for part in ("soft, hard, contextual", "beta=2.0 distance of the bound", "black_box.gp_ucb:GPUCB", "2010"):
        assert part in details
    assert "did you mean 'GP-UCB'" in invoke("agents", "GP-UBC", code=2)


def test_an_agent_in_a_file_of_the_working_directory(beside):
    (mine,) = as_json("agents", "mine:KeepBest")
    width = {"name": "width", "default": "0.1", "meaning": "of the jumps, above 0."}
    assert (mine["modes"], mine["parameters"]) == (["soft"], [width])
    save_runs(beside / "runs", play_here(["mine:KeepBest"], ["CBO/Dropwave-v0"], 1, horizon=2))
    words = ["sweep", "runs", "-a", "mine:KeepBest", "-a", "Random", "-e", "CBO/Dropwave-v0", "-e", "CBO/ToyGraph-v0"]
    planned = invoke(*words, "--horizon", "2", "--jobs", "1", "--seeds", "2", "--dry-run")
    assert "mine:KeepBest CBO/Dropwave-v0, T=2 2 1 1" in planned
    assert (
        "Runs to play: 5; stored already: 1. Runs that would only be listed as skipped, because modes do not fit: 2"
        in planned
    )
    # Published runs of Random are in the package.
    assert "The agents' own time: " in planned
    assert "without a finished run" not in planned
    assert len(list((beside / "runs").iterdir())) == 1


@pytest.mark.parametrize(
    ("file", "string", "agent", "message"),
    [
        ("fails.py", "import json\nx = 1\njson.loads('')", "fails:X", "JSONDecodeError: .* .line 3 of .*/fails.py"),
        ("syntax.py", "x = 1\ny = (", "syntax:X", "line 2 of .*/syntax.py"),
        ("calls.py", "import fails2", "calls:X", "No module named 'fails2' .line 1 of .*/calls.py"),
        ("wave.py", "class X: pass", "wave:X", "the imported module is .*wave.py, not your .*/wave.py: rename yours"),
        ("other.py", "", "other.py:X", "name the module, without .py: other"),
        ("other.py", "", "mine:KeepBest(width=0)", "ZeroDivisionError: .* .line 15 of .*/mine.py"),
    ],
)
def test_errors_in_a_file_name_its_line(beside, file, string, agent, message):
    (beside / file).write_text(string)
    assert re.search(message, invoke("run", agent, "CBO/Dropwave-v0", code=2))


HOSTILE = ["x" * 200, "a$b<i>[red]c[/red]", "new\nline\x1b[31m", "=HYPERLINK(1)", "-2+3"]


def test_labels_cannot_break_what_is_printed(tmp_path):
    for label in HOSTILE:
        played = evaluate("Random", "CBO/Dropwave-v0", 0, horizon=2, label=label)
        save_run(tmp_path / name_of(played), played)
    folder = str(tmp_path)
    assert {row["agent"] for row in as_json("leaderboard", folder)["overall"]} == set(HOSTILE)
    safe = {*HOSTILE[:2], r"new\nline\x1b[31m", "'=HYPERLINK(1)", "'-2+3"}
    assert {row["agent"] for row in as_csv("leaderboard", folder, "--table", "runs")} == safe
    shown = run("compare", folder, *HOSTILE[1:3]).stdout
    assert "a$b<i>[red]c[/red] minus new\\nline\\x1b[31m" in shown
    assert as_json("compare", folder, *HOSTILE[:2])["agent"] == HOSTILE[0]
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "CBO/Nothing-v0"], "Nothing"),
        (["run", "Random", "CBO/Dropwave-v0(noise=1)"], "noise_std"),
        (["run", "tests.support.agents:Nonsense", "CBO/Dropwave-v0", "--horizon", "4"], "round 3"),
        (["sweep", "out", "-a", "Random", "-e", "CBO/ToyGraph-v0", "--backend", "dask"], "give the address"),
        (["sweep", "out", "-a", "Nobod?", "-e", "CBO/ToyGraph-v0"], "nothing fits 'Nobod?'; did you mean"),
        (["leaderboard", "nowhere"], "there is no folder nowhere"),
        (["optimum", "CBO/X-v0"], "not registered: CBO/X-v0"),
        (["list", "--json", "--csv"], "give one of --json and --csv"),
        (["leaderboard", "docs"], "there are no runs in docs; cbo-gym sweep docs plays some"),
        (["compare", "docs", "A", "B"], "there are no runs in docs"),
        (["leaderboard", "docs", "--table", "runs"], "--table says which table --csv prints"),
        (["list", "--tag", "noizy"], "did you mean 'noisy'?"),
        (["run", "Random", "CBO/ToyGraph-v0", "--recommend", "evry"], "given 'evry'; did you mean 'every'?"),
        (["run", "Random", "CBO/ToyGraph-v0", "--seed", str(2**63)], "seed must be a whole number from 0 to"),
        (["run", "MCBOO", "CBO/ToyGraph-v0"], "did you mean 'MCBO'"),
        (["run", "Random", "CBO/ToyGrap-v0"], "did you mean 'CBO/ToyGraph-v0'"),
        (["run", "Random", "CBO/ToyGraph-v0", "--out", "docs"], "is a folder; give a file in it, such as new.parquet"),
        (["run", "Random", "CBO/ToyGraph-v0", "--out", "r.csv"], "such as r.parquet"),
    ],
)
def test_errors_are_one_line_and_exit_2(words, message):
    output = invoke(*words, code=2)
    assert "Error:" in output
    assert message in output
    assert "Traceback" not in output


def test_a_misspelt_choice_names_the_one_that_was_meant():
    said = invoke("list", "--mode", "sof", code=2)
    assert re.search(r"'sof' is not one of .*; did you mean 'soft'\?", said)


def test_run_prints_and_writes(tmp_path):
    printed = invoke("run", CENTRE, "CBO/Rosenbrock-v0", "--rounds", "5", "--out", tmp_path / "r.parquet")
    assert "optimum 0" in printed
    assert "simple regret" in printed
    assert load_run(tmp_path / "r.parquet").table.height == 5


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The folder of a sweep with a failed run, and what the command printed."""
    folder = tmp_path_factory.mktemp("swept") / "runs"
    save_runs(folder, play_here([CENTRE, "Random"], ["CBO/Dropwave-v0", "CBO/ToyGraph-v0"], 2, horizon=2))
    words = ["sweep", folder, "-a", "Random", "-a", f"{NONSENSE}(bad_round=2)", "-e", "CBO/Dropwave-v0"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cbo_gym._util.progress.QUIET_SECONDS", 0.0)
        return folder, run(*words, "--seeds", "1", "--horizon", "2", "--jobs", "1", code=1)


def test_a_sweep_says_how_far_it_is_what_failed_and_what_was_there(swept):
    assert {"1.5", "2"} <= set(re.findall(r"runs: ([\d.]+) of 2 ", swept[1].stderr))
    printed = " ".join(swept[1].output.split())
    assert "1 finished, 1 failed, 0 skipped; 1 of them were there already" in printed
    assert "must lie in [0, 1]; given nan" in printed


def test_a_leaderboard_is_printed_and_written(swept, tmp_path):
    folder, readme = swept[0], tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    chosen = ["leaderboard", folder, "--mode", "hard", "-a", "Rand*"]
    printed = invoke(*chosen, "--figures", "svg", "--markdown", readme)
    assert "CBO/ToyGraph-v0, T=2" in printed
    assert "CBO/Dropwave-v0" not in printed
    assert CENTRE not in printed
    assert "| hard | interquartile mean | score of play | ToyGraph-v0, T=2 | seconds a round |" in readme.read_text()
    report = folder / "report"
    assert (report / "report.html").is_file()
    assert {path.suffix for path in (report / "figures").iterdir()} == {".svg"}
    document = as_json(*chosen)
    for table in ("overall", "per_env"):
        written = (report / f"{table}.csv").read_text()
        assert run(*chosen, "--csv", "--table", table).stdout == written
        assert [row["agent"] for row in document[table]] == [row["agent"] for row in csv.DictReader(StringIO(written))]


def test_all_modes_failures_and_the_path_of_the_report_are_printed(swept, monkeypatch, tmp_path):
    monkeypatch.setattr("cbo_gym.evaluation.report.page.write_report", lambda board, folder, **more: folder / "x.html")
    printed = invoke("leaderboard", swept[0], "--out", tmp_path)
    assert "All modes, over environments" in printed
    assert f"failed: {NONSENSE}(bad_round=2) on CBO/Dropwave-v0, seed 0" in printed
    assert f"Report: {tmp_path}" in printed
    assert "there are the modes hard, soft" in invoke("leaderboard", swept[0], "-a", "Nobody", code=2)


def test_two_agents_are_compared(swept):
    words = ["compare", swept[0], "Random", CENTRE]
    compared, lines, string = as_json(*words), as_csv(*words), invoke(*words)
    assert [row["seeds"] for row in compared["per_env"]] == [2] * 4
    assert [line["env"] for line in lines].count("") == len(compared["overall"]) == 6
    assert f"Score of play: Random minus {CENTRE}" in string
    assert "paired permutation test; with the fewest pairs here it cannot be below 0.5" in string


def test_a_parameter_is_chosen(tmp_path):
    folder, file = tmp_path / "runs", tmp_path / "chosen.yaml"
    # depths that are never reached, so that both play the same
    agents, envs = [f"StoOO(max_depth={depth})" for depth in (40, 50)], ["CBO/GPBandit1-v0", "CBO/GPBandit2-v0"]
    save_runs(folder, play_here(agents, envs, 2, horizon=2))
    words = ["choose", str(folder), "--agent", "StoOO", "--parameter", "max_depth", "--metric", "best"]
    printed = invoke(*words, "--horizon", "2", "--write", file)
    assert "best on the other environments (seeds: 2)" in printed
    assert "env max_depth=40 max_depth=50 chosen" in printed
    assert "CBO/GPBandit1-v0 0.026 0.026 40" in printed
    chosen = read_chosen(file, "StoOO", "max_depth", "best")
    assert chosen == {"CBO/GPBandit1-v0": 40, "CBO/GPBandit2-v0": 40}
    assert f"{' '.join(words)} --horizon 2 --write {file}" in " ".join(file.read_text().split())
    assert "found 0" in invoke(*words, "--horizon", "3", code=2)
    assert "(seeds: 1)" in invoke(*words, "--seeds", "1")
    assert "metric must be one of ['average_score', 'best']" in invoke(*words, "--metric", "worst", code=2)


def test_optimum_prints_what_is_recorded():
    printed = run("optimum", "CBO/Dropwave-v0").stdout
    assert "1 (standard error 0) at a0 = 0, a1 = 0, which is the action [0.5, 0.5]; random action 0.134136" in printed
    (found,), (line,) = as_json("optimum", "CBO/Dropwave-v0"), as_csv("optimum", "CBO/Dropwave-v0")
    assert (found["value"], found["action"]) == (1.0, json.loads(line["action"])) == (1.0, [0.5, 0.5])
    assert list(found) == list(line)


@pytest.mark.slow
def test_agents_play_where_warnings_are_errors():
    command = [sys.executable, "-W", "error", "-m", "cbo_gym", "run", "GP-UCB", "CBO/ToyGraph-v0", "--horizon", "2"]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
