"""Throughput of the planner against the batch size: the table in docs/planner.md.

python benchmarks/planner.py        (about half a minute)

`bathysphere bench planner --json` measures the same works at one batch size, beside the plain-Python planner.
"""

import torch

from bathysphere.cli import bench_planner

BATCHES = (1, 4, 16, 64, 256, 1024)


def main() -> None:
    torch.set_num_threads(1)
    bench_planner.WINDOW = 0.3
    print(f"| B | {' | '.join(make().name for make in bench_planner.WORKS)} |")
    print("|---:|" + "---:|" * len(bench_planner.WORKS))
    for batch in BATCHES:
        speeds = [bench_planner.speed(make(batch), repeats=3)[0] for make in bench_planner.WORKS]
        print(f"| {batch:,} | {' | '.join(f'{speed:,.0f}' for speed in speeds)} |", flush=True)


if __name__ == "__main__":
    main()
