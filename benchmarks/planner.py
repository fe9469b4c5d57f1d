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
    print(f"| B | {' | '.join(names + [f'{name}, 2 cores' for name in names])} |")
    print("|---:|" + "---:|" * 2 * len(names))
    for batch in BATCHES:
        all_cores = (1, 2) if batch > 1 else (1,)
        works = [planner.speeds(make(batch), all_cores, repeats=3) for make in planner.TASKS]
        cells = [f"{work[n][0]:,.0f}" if n < len(all_cores) else "" for n in (0, 1) for work in works]
        print(f"| {batch:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
