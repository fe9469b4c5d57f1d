"""Three environments of Gymnasium, without a line of glue: FrozenLake, Taxi and CliffWalking.

python examples/gymnasium_worlds.py      (about a minute; --short: FrozenLake and CliffWalking in a few seconds)

The same from the command line:

bathysphere train gymnasium:FrozenLake-v1 --domain.arguments map_name=8x8 is_slippery=false --stop.on-solved
bathysphere train gymnasium:Taxi-v4 --stop.on-solved

The planner looks ahead in copies of the environment, so that has to be deterministic: FrozenLake does not slip. The
file prints how many steps and episodes of training each took, what the latest episodes earned, and how many the agent
then solves when it only wants to win. CliffWalking pays -1 for every step and nothing for arriving, so no episode
counts as solved; there the return tells: -13 is the shortest way.
"""

import sys

import bathysphere

WORLDS = {
    "FrozenLake-v1": {"map_name": "8x8", "is_slippery": False},
    "Taxi-v4": {},
    "CliffWalking-v1": {},
}


def main(names: list[str]) -> None:
    """Trains in each world and evaluates the agent."""
    for name in names:
        run = bathysphere.train(
            f"gymnasium:{name}",
            domain={"arguments": WORLDS[name]},
            steps=4_000,
            search={"passes": 10},  # otherwise chosen by how fast the environment is here
            stop={"on_solved": True},
            pictures=False,
        )
        score = run.evaluate(50, risk_coef=0.0)
        training = f"{run['env_steps']:,} steps, {run['episodes']} episodes, {run['wall_seconds']:.1f} s"
        playing = f"{score.solved} of {score.count} solved in {score.mean_length:.1f} steps"
        print(f"{name}: {training}, latest return {run['return_mean_50']:.1f}; then {playing}", flush=True)


if __name__ == "__main__":
    main([name for name in WORLDS if "--short" not in sys.argv or name != "Taxi-v4"])
