"""Throughput of the planner against the batch size: the table in docs/lab/speed.md.

python benchmarks/planner.py        (about five minutes)

`bathysphere bench planner --json` measures the same works at one batch size, beside the plain-Python planner.
"""

import torch

from bathysphere.bench import planner

BATCHES = (1, 4, 16, 64, 256, 1024)


def main() -> None:
    torch.set_num_threads(1)
    planner.WINDOW = 0.3
    names = [make().name for make in planner.TASKS]
    print(f"| B | {' | '.join(names)} |")
    print("|---:|" + "---:|" * len(names))
    for batch in BATCHES:
        cells = [f"{planner.speed(make(batch), repeats=3)[0]:,.0f}" for make in planner.TASKS]
        print(f"| {batch:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
