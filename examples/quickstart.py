"""Play an environment by hand and look at the results."""

import argparse

import gymnasium as gym

import cbo_gym  # noqa: F401  (registers the environments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three rounds instead of twenty")
    rounds = 3 if parser.parse_args().quick else 20

    env = gym.make("CBO/PSAGraph-v0", render_mode="ansi")
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(rounds):
        _, reward, *_, info = env.step(env.action_space.sample())
        doses = ", ".join(f"{drug} = {dose:.2f}" for drug, dose in info["intervention"].items())
        print(f"round {info['round']}: do({doses}) gave PSA {-reward:.2f}")
    print(env.render())


if __name__ == "__main__":
    main()
