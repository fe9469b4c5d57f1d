"""Throughput of the planner against the batch size: the table in docs/planner.md.

python benchmarks/planner.py        (about five minutes)

`bathysphere bench planner --json` measures the same works at one batch size, beside the plain-Python planner.
"""

import torch

from bathysphere.cli import bench_planner

BATCHES = (1, 4, 16, 64, 256, 1024)


def main() -> None:
    torch.set_num_threads(1)
    bench_planner.WINDOW = 0.3
    names = [make().name for make in bench_planner.WORKS]
    print(f"| B | {' | '.join(names + [f'{name}, 2 cores' for name in names])} |")
    print("|---:|" + "---:|" * 2 * len(names))
    for batch in BATCHES:
        speeds = [
            f"{bench_planner.speed(make(batch), cores, repeats=3)[0]:,.0f}" if batch >= cores else ""
            for cores in (1, 2)
            for make in bench_planner.WORKS
        ]
        print(f"| {batch:,} | {' | '.join(speeds)} |", flush=True)


if __name__ == "__main__":
    main()
