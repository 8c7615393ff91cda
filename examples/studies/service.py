"""An online service: which of 30 variants of a page, some of which differ in what cannot matter.

Four switches and what users bring make an order likelier. The diagram says which sets of switches can be optimal:
POMIS-TS tries the arms of these alone. Run with --quick for a few visitors.
"""

import argparse
import tempfile
from itertools import combinations, product
from pathlib import Path

import numpy as np

from cbo_gym.study import create_study

SWITCHES = {"banner": (0.0, 1.0), "price": (0.0, 0.5, 1.0), "offer": (0.0, 1.0)}
SETS = [chosen for size in range(4) for chosen in combinations(SWITCHES, size) if chosen != ("banner", "price")]
ARMS = [
    dict(zip(names, values, strict=True)) for names in SETS for values in product(*[SWITCHES[name] for name in names])
]
STUDY = {
    "mode": "discrete",
    "diagram": "dag { banner -> click; price -> click; click -> offer -> order; price <-> order }",
    "reward": "order",
    "reward_range": [0.0, 1.0],
    "arms": ARMS,
    "agent": "POMIS-TS",
}


class Service:
    """What nobody knows."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def visit(self, done):
        thrift = self.rng.random() < 0.5
        banner = done.get("banner", float(self.rng.random() < 0.5))
        price = done.get("price", float(thrift))
        click = float(self.rng.random() < 0.2 + 0.3 * banner + 0.3 * price)
        offer = done.get("offer", float(self.rng.random() < 0.3 + 0.5 * click))
        order = float(self.rng.random() < 0.1 + 0.5 * offer * (1 - 0.4 * thrift))
        return {"banner": banner, "price": price, "click": click, "offer": offer, "order": order}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="twenty visitors instead of 400")
    visitors = 20 if parser.parse_args().quick else 400
    service = Service(seed=100)
    with tempfile.TemporaryDirectory() as folder:
        study = create_study("service", storage=Path(folder, "service.db"), horizon=visitors, **STUDY)
        for _ in range(visitors):
            trial = study.ask()
            study.tell(trial, service.visit(trial.do))
        tried = {str(study.feedback.codec.to_record(int(entry.flat[0]))) for entry in study.trials}
        print(f"{len(ARMS)} arms, {len(tried)} of them were tried")
        print("to deploy:", study.recommendation())
        orders = study.to_frame()["order"].to_numpy()
        print(f"orders a visit, the later half: {orders[visitors // 2 :].mean():.2f}")


if __name__ == "__main__":
    main()
