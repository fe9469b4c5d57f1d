"""What `make demo` shows: train on Deep-sea, draw what the ensemble did not know, and play."""

import shutil
import sys
from pathlib import Path

import bathysphere
from bathysphere.agents.evaluation import evaluate
from bathysphere.cli import main

SIZE = 20
folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
run_dir = folder / "deep-sea-run"
shutil.rmtree(run_dir, ignore_errors=True)

DIVES = 2 ** (SIZE - 1)
print(f"Deep-sea, {SIZE} x {SIZE} cells: one of {DIVES:,} dives finds the treasure; nothing points the way.\n")
result = bathysphere.train(
    "deep-sea", run_dir=run_dir, show=True, log_every=50, domain={"size": SIZE}, stop={"on_solved": True}
)
if result["solved_step"] is None:
    sys.exit(f"Not solved ({result['stopped_by']}). Continue with: bathysphere train --resume {run_dir}")
for name in ("uncertainty.png", "learning.png"):
    shutil.copy(run_dir / "pictures" / name, folder / name)
score = evaluate(run_dir, episodes=100, risk_coef=0.0)
main(["watch", str(run_dir), "--gif", str(folder / "dive.gif"), "--risk-coef", "0"])

print(f"""
What happened
  first treasure     at step {result["first_solved_step"]:,}; blind luck needs about {DIVES:,} dives
  solved             at step {result["solved_step"]:,}, after {result["episodes"]:,} dives
  time               {result["wall_seconds"]:.1f} s
  then, only to win  {score.solved} of {score.count} dives find the treasure

In {folder}/
  uncertainty.png    where the ensemble disagreed, before, during and after: blue is "I do not know"
  learning.png       win rate, disagreement and loss over time
  dive.gif           one dive

What to try next
  bathysphere train deep-sea --domain.size 50 --stop.on-solved    a larger sea
  bathysphere train deep-sea --search.risk-coef 0 --steps 50000   without curiosity: no treasure
  bathysphere train paper/deep-sea --stop.on-solved               the paper's own settings
  bathysphere watch {run_dir}
  bathysphere train --list""")
