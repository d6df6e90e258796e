"""Searches learning rate and n with Optuna over `rubato run --json`: optuna_loop.py SCENARIO [TRIALS [RUBATO]]."""

import sys

import rubato_analysis


def objective(trial, scenario: str, rubato: str | None = None) -> float:
    """Validation error of one run; a run that diverged is as bad as can be."""
    summary = rubato_analysis.run(scenario, rubato=rubato, set={
        "optimizer.learning_rate": trial.suggest_float("learning_rate", 1e-3, 1.0, log=True),
        "protocol": {"name": "n-softsync", "n": trial.suggest_int("n", 1, 4)}})
    return 1.0 if summary["status"] == "diverged" else summary["valid_error"]


if __name__ == "__main__":
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    study.optimize(lambda trial: objective(trial, *sys.argv[1:2], *sys.argv[3:]), int((sys.argv[2:] or ["20"])[0]))
    print(study.best_value, study.best_params)
