"""Labels and line styles of agents are distinct in every figure and format."""

from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.evaluation.report.palette import COLOURS, file_names, for_figure, line_styles, shorten


def test_the_look_of_an_agent_does_not_depend_on_others():
    all_styles = line_styles([*zoo(), "Mine", "GP-UCB(beta=2)"])
    assert len(set(all_styles.values())) == len(zoo()) + 2
    for name in zoo():
        assert line_styles([name, "Mine"])[name] == all_styles[name]
    variant, agent = all_styles["GP-UCB(beta=2)"], all_styles["GP-UCB"]
    assert variant.colour == agent.colour
    assert variant.dash != agent.dash
    assert variant.marker != agent.marker


def test_other_agents_take_the_colours_that_are_left():
    own = [f"my_package.module:Agent{number}" for number in range(len(COLOURS) + 1)]
    styles = line_styles(own)
    assert [styles[name].colour for name in own] == [*COLOURS, COLOURS[0]]
    assert len(set(styles.values())) == len(own)
    assert line_styles(["CBO", "Mine"])["Mine"].colour != line_styles(["CBO"])["CBO"].colour


def test_labels_are_shown_literally_and_long_ones_shortened_and_stay_different():
    labels = ["A", "x" * 200, "x" * 99 + "y" + "x" * 100, "line\nbreak"]
    short = shorten(labels, 24)
    assert len(set(short.values())) == 4
    assert max(map(len, short.values())) <= 24
    assert (short["A"], short["line\nbreak"]) == ("A", r"line\nbreak")
    assert for_figure("a$b$\x00") == r"a\$b\$\x00"
    assert for_figure("_a").strip() == "_a"
    assert not for_figure("_a").startswith("_")  # which legends leave out


def test_file_names_are_plain_and_differ():
    labels = ["CBO/A-v0(b=1), T=50", "CBO/A-v0(b=-1), T=50", "CBO/B-v0, T=50", "CBO/b-v0, T=50", "x" * 300, "$"]
    names = file_names(labels)
    assert names["CBO/A-v0(b=1), T=50"].startswith("CBO-A-v0-b-1-T50-")
    assert len({name.lower() for name in names.values()}) == len(labels)
    assert all(0 < len(name) <= 100 and name.replace("-", "").isalnum() for name in names.values())
    assert file_names(labels[:1]) == {labels[0]: "CBO-A-v0-b-1-T50"}
