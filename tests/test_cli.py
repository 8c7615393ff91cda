from pathlib import Path

import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.evaluation.markdown import BEGIN, END
from cbo_gym.registry import entries

AGENT = "tests.helpers:Centre"


def invoke(*words, code=0):
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(words))
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


@pytest.mark.parametrize("command", ["list", "show", "run", "sweep", "leaderboard", "choose", "optimum"])
def test_help_teaches_by_example(command):
    assert f"Example: cbo-gym {command}" in invoke(command, "--help")


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
    for part in ("the modes are aggregated,", "the tags are", "noisy", "the papers are Aglietti"):
        assert part in nothing


def test_show_tells_all():
    shown = invoke("show", "CBO/CompleteGraph-v0")
    for part in ("hard, 100 rounds", "Discrete(7)", "do(B) -5 to 4", "3.483", "Y <- D, E confounded with A, B reward"):
        assert part in shown
    assert "Aglietti" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "CBO/Nothing-v0"], "Nothing"),
        (["run", "Nobody", "CBO/Dropwave-v0"], "no agent is called 'Nobody'; installed are"),
        (["run", "Random", "CBO/Dropwave-v0(noise=1)"], "noise_std"),
        (["run", "tests.helpers:Nonsense", "CBO/Dropwave-v0", "--horizon", "4"], "round 3"),
        (["sweep", "out", "-a", "Random", "-e", "CBO/X-v0"], "CBO/X-v0"),
        (["sweep", "out", "-a", "Random", "-e", "CBO/ToyGraph-v0", "--backend", "dask"], "give the address"),
        (["sweep", "out", "-a", "Nobod?", "-e", "CBO/ToyGraph-v0"], "nothing fits 'Nobod?'; there are"),
        (["leaderboard", "nowhere"], "there is no folder nowhere"),
        (["choose", "nowhere", "-a", "MCBO", "--parameter", "beta"], "there is no folder nowhere"),
        (["optimum", "CBO/X-v0"], "not registered: CBO/X-v0"),
    ],
)
def test_errors_are_one_line_and_exit_2(words, message):
    output = invoke(*words, code=2)
    assert "Error:" in output
    assert message in output
    assert "Traceback" not in output


def test_run_prints_and_writes(tmp_path):
    from cbo_gym.evaluation import load_run

    printed = invoke("run", AGENT, "CBO/Rosenbrock-v0", "--horizon", "5", "--out", str(tmp_path / "r.parquet"))
    assert "optimum 0" in printed
    assert "simple regret" in printed
    assert load_run(tmp_path / "r.parquet").table.height == 5


def test_sweep_then_leaderboard(tmp_path):
    folder = str(tmp_path / "runs")
    words = ["sweep", folder, "-a", AGENT, "-a", "Random", "-e", "CBO/Dropwave-v0", "-e", "CBO/ToyGraph-v0"]
    words += ["--seeds", "2", "--horizon", "3", "--jobs", "1"]
    assert "8 finished, 0 failed, 0 skipped; 0 of them were there already" in invoke(*words)
    assert "8 of them were there already" in invoke(*words)
    printed = invoke("leaderboard", folder)
    assert "CBO/ToyGraph-v0, T=3" in printed
    assert "All modes, over environments" in printed
    assert (tmp_path / "runs" / "report" / "report.html").exists()

    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    words = ["leaderboard", folder, "--mode", "hard", "--out", str(tmp_path / "hard"), "--markdown", str(readme)]
    printed = invoke(*words, "-a", "tests*")
    assert "CBO/ToyGraph-v0, T=3" in printed
    assert "CBO/Dropwave-v0" not in printed
    assert "Random" not in printed
    assert "| hard | interquartile mean | score of play | ToyGraph-v0, T=3 | seconds a round |" in readme.read_text()
    assert (tmp_path / "hard" / "report.html").exists()
    assert "there are the modes hard, soft" in invoke("leaderboard", folder, "-a", "Nobody", code=2)


def test_a_failed_run_is_shown_and_sets_the_exit_status(tmp_path):
    folder = str(tmp_path / "runs")
    words = ["sweep", folder, "-a", "tests.helpers:Nonsense", "-a", AGENT, "-e", "CBO/Dropwave-v0"]
    words += ["--seeds", "1", "--horizon", "4", "--jobs", "1"]
    printed = invoke(*words, code=1)
    assert "1 finished, 1 failed" in printed
    assert "must lie in [0, 1]; given nan" in printed
    assert "failed: tests.helpers:Nonsense on CBO/Dropwave-v0, seed 0" in invoke("leaderboard", folder)


def test_sweep_then_choose(tmp_path):
    from cbo_gym.evaluation.selection import read_chosen

    folder, file = str(tmp_path / "runs"), str(tmp_path / "chosen.yaml")
    words = ["sweep", folder, "--seeds", "2", "--horizon", "2", "--jobs", "1"]
    words += ["-e", "CBO/Dropwave-v0", "-e", "CBO/Ackley-v0"]
    for bad_round in (7, 8):  # never reached: both play the same
        words += ["-a", f"tests.helpers:Nonsense(bad_round={bad_round})"]
    invoke(*words)
    words = ["choose", folder, "--agent", "tests.helpers:Nonsense", "--parameter", "bad_round", "--metric", "best"]
    printed = invoke(*words, "--horizon", "2", "--write", file)
    assert "best on the other environments (seeds: 2)" in printed
    assert "env bad_round=7 bad_round=8 chosen" in printed
    assert "CBO/Ackley-v0 1.000 1.000 7" in printed
    chosen = read_chosen(Path(file), "tests.helpers:Nonsense", "bad_round", "best")
    assert chosen == {"CBO/Ackley-v0": 7, "CBO/Dropwave-v0": 7}
    assert f"{' '.join(words)} --horizon 2 --write {file}" in " ".join(Path(file).read_text().split())
    assert "found 0" in invoke(*words, "--horizon", "3", code=2)
    assert "(seeds: 1)" in invoke(*words, "--seeds", "1")
    assert "choose from average_score, best" in invoke(*words, "--metric", "worst", code=2)


def test_optimum_prints_what_is_recorded():
    assert "1 (standard error 0) at a0 = 0, a1 = 0, which is the action [0.5, 0.5]; random action 0.134136" in invoke(
        "optimum", "CBO/Dropwave-v0"
    )


def test_a_folder_is_no_file_for_a_run(tmp_path):
    done = CliRunner().invoke(app, ["run", "Random", "CBO/Dropwave-v0", "--horizon", "2", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "is a folder; give a file for the run" in done.output
