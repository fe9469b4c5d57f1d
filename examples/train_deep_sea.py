"""Train on Deep-sea until it is solved, and let the trained agent play: about five seconds."""

import sys
from pathlib import Path

import bathysphere
from bathysphere.agents.evaluation import evaluate

run_dir = sys.argv[1] if len(sys.argv) > 1 else None  # None: the next free name under runs/
result = bathysphere.train("deep-sea", run_dir=run_dir, seed=1, domain={"size": 15}, stop={"on_solved": True})
print(f"solved at step {result['solved_step']:,}, after {result['episodes']} episodes; see {result['run_dir']}")

score = evaluate(Path(result["run_dir"]), episodes=50, risk_coef=0.0)
print(f"won {score.solved} of {score.count} episodes in {score.mean_length:.0f} steps each")
