# requires: optuna
# task: a study chooses what to intervene on
import optuna

import cbo_gym

objective = cbo_gym.optuna_objective("CBO/ToyGraph-v0")
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=40)
assert "set" in study.best_params
assert objective.env.action_space.contains(objective.recommend(study))
