import pytest

from cbo_gym import leaderboard
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.report.markdown import BEGIN, END, write_results
from cbo_gym.evaluation.report.tables import SCORE_NOTE, SECONDS_NOTE
from tests.support.runs import made_up_run


def test_results_replace_what_is_between_the_markers(tmp_path):
    runs = [made_up_run("A", seed, [0.5], machine="2 cores, X", date="2026-01-31") for seed in range(2)]
    runs += [made_up_run("A|B", 0, [0.9]), made_up_run("A|B", 0, [0.9], "CBO/ToyGraph-v0", "hard")]
    runs.append(Run("A|B", "CBO/Dropwave-v0", 1, 1, "soft", "failed", "boom"))
    runs.append(Run("C", "CBO/Dropwave-v0", 0, 1, "soft", "failed", "boom"))
    path = tmp_path / "README.md"
    path.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\nmore\n", encoding="utf-8")
    write_results(path, leaderboard(runs))
    assert path.read_text(encoding="utf-8").splitlines() == [
        "# Title",
        "",
        BEGIN,
        "| hard | interquartile mean | score of play | ToyGraph-v0, T=1 | seconds a round |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| A\\|B | 0.900 | 0.900 | 0.9 (1 of 2 seeds) | 0.875 |",
        "",
        "| soft | interquartile mean | score of play | Dropwave-v0, T=1 | seconds a round |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| A | 0.500 | 0.500 | 0.5 | 0.875 |",
        "| A\\|B | 0.450 | 0.450 | 0.45 (1 of 2 seeds, 1 failed) | 0.875 |",
        "| C | - | - | - (1 failed) | - |",
        "",
        f"{SCORE_NOTE} {SECONDS_NOTE}",
        "",
        f"4 finished runs; seeds 0 to 1; cbo-gym {runs[0].version}; 2026-01-31; 2 cores, X. "
        "Mixed machine: - (2 runs), 2 cores, X (2 runs).",
        END,
        "more",
    ]
    once = path.read_text(encoding="utf-8")
    write_results(path, leaderboard(runs))
    assert path.read_text(encoding="utf-8") == once


@pytest.mark.parametrize("string", [None, "", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{END}{END}", f"{BEGIN}{BEGIN}{END}"])
def test_a_file_without_the_markers_is_left_alone(tmp_path, string):
    path = tmp_path / "README.md"
    if string is not None:
        path.write_text(string)
    with pytest.raises(ValueError, match="once each, in this order"):
        write_results(path, leaderboard([made_up_run("A", 0, [0.5])]))
    assert (path.read_text() if path.exists() else None) == string
