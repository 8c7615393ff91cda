"""An online service: 30 variants of a page. The diagram implies that 24 of them cannot be best.

First by hand, with past visits from a CSV file; then by a robot that serves simulated visitors. Run with --seeds 100
109 to compare with a bandit that tries all arms on ten seeds, with --quick for a few visitors.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import yaml
from terminal import last_asked, pairs, shell

from cbo_gym.study import create_study

HERE = Path(__file__).parent
STUDY = yaml.safe_load((HERE / "service.yaml").read_text(encoding="utf-8"))


class Service:
    """Simulator of visitors: those who hesitate open the chat, and buy only with a discount."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def visit(self, chat=None, layout=None, discount=None):
        """Return the record of one visit; unset variables follow from the visitor and the shop's own rule."""
        draws = self.rng.random(4)
        hesitant = draws[0] < 0.5
        chat = float(draws[1] < (0.95 if hesitant else 0.05)) if chat is None else chat
        layout = float(self.rng.random() < 0.5) if layout is None else layout
        asks = float(draws[2] < chance_of_asking(chat, layout))
        discount = 15.0 * asks if discount is None else discount
        margin = chance_of_order(hesitant, discount) > draws[3]
        return {
            "chat": chat,
            "layout": layout,
            "asks": asks,
            "discount": discount,
            "margin": float(margin) * (1 - 2 * discount / 100),
        }


def chance_of_asking(chat, layout):
    """Return the probability that a visitor asks for a better price; the new layout shows prices in the chat."""
    return (0.95 if chat else 0.05) if layout else (0.5 if chat else 0.4)


def chance_of_order(hesitant, discount):
    """Return the probability of an order: a discount persuades hesitant visitors, and the others buy anyway."""
    return 0.1 + 0.05 * discount if hesitant else 0.7


def expected_margin(do):
    """Return the exact expected margin over all visitors."""
    total = 0.0
    for hesitant in (False, True):
        for layout in (0.0, 1.0) if "layout" not in do else (do["layout"],):
            for opens in (0.0, 1.0) if "chat" not in do else (do["chat"],):
                likely = 1.0 if "chat" in do else (0.95 if bool(opens) == hesitant else 0.05)
                likely *= 0.5 * (1.0 if "layout" in do else 0.5)
                asking = chance_of_asking(opens, layout)
                for asks, share in ((0.0, 1 - asking), (1.0, asking)):
                    discount = do.get("discount", 15.0 * asks)
                    total += likely * share * chance_of_order(hesitant, discount) * (1 - 2 * discount / 100)
    return total


def by_hand(folder):
    """Serve a visit in Python and one from a shell."""
    database, service = folder / "service.db", Service(seed=100)
    print("By hand, in Python")
    study = create_study(storage=database, **STUDY)
    print(f"{study.add_data(pl.read_csv(HERE / 'service.csv'))} past visits")
    trial = study.ask()
    print(f"visit {trial.number}: set {pairs(trial.do)}")
    study.tell(trial, service.visit(**trial.do))

    print("\nThe same from a shell")
    shell(f"cbo-gym study ask {database}")
    number, do = last_asked(study)
    shell(f"cbo-gym study tell {database} {number} {pairs(service.visit(**do))}")


def by_a_robot(folder, agent, visitors, seed):
    """Serve visitors; return the study and the expected margin of each visit."""
    service = Service(seed)
    settings = STUDY | {"agent": agent, "horizon": visitors, "seed": seed}
    study = create_study(storage=folder / f"{agent}-{seed}.db", **settings)
    earned = []
    for _ in range(visitors):
        trial = study.ask()
        study.tell(trial, service.visit(**trial.do))
        earned.append(expected_margin(trial.do))
    return study, np.array(earned)


def compare(folder, seeds, visitors):
    """Compare all arms with those that can be best, by the expected margin of a visit."""
    print(f"\nexpected margin of a visit, mean of {visitors}, {len(seeds)} seeds")
    for agent in ("TS", "POMIS-TS"):
        campaigns = [by_a_robot(folder, agent, visitors, seed) for seed in seeds]
        means = np.array([earned.mean() for _, earned in campaigns])
        tried = np.mean([len({entry.flat[0] for entry in study.trials}) for study, _ in campaigns])
        deployed = np.mean([expected_margin(study.recommendation()) for study, _ in campaigns])
        spread = 2.26 * means.std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else float("nan")
        print(f"  {agent:9} {means.mean():.3f} +- {spread:.3f}, {tried:.0f} arms tried, deployed {deployed:.3f}")
    best = max(STUDY["arms"], key=expected_margin)
    everything = max((arm for arm in STUDY["arms"] if len(arm) == 3), key=expected_margin)
    print(f"  best arm: {pairs(best)}, {expected_margin(best):.3f}")
    print(f"  best that sets everything: {pairs(everything)}, {expected_margin(everything):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="twenty visitors instead of 600")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FIRST", "LAST"), default=(100, 100))
    arguments = parser.parse_args()
    first, last = arguments.seeds
    with tempfile.TemporaryDirectory() as folder:
        by_hand(Path(folder))
        compare(Path(folder), range(first, last + 1), 20 if arguments.quick else 600)


if __name__ == "__main__":
    main()
