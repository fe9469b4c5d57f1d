"""How many workers a run in blocks can use: a small simulation, fed with times that were measured.

python benchmarks/scale_model.py --play 2.6 --learn 0.5 --send 0.02 --spread 0.3

The learner takes blocks in order and learns from each for `learn` seconds. Block b can begin once block b - distance
was learnt from, and takes a worker `play` seconds (log-normal, with a standard deviation of `spread` times that).
`send` seconds pass until the learner has it. Printed is, for each number of workers and each distance, how many times
as fast the run is as one process that plays and learns in turn, and which share of the workers' time is play.
"""

from __future__ import annotations

import argparse
import heapq

import numpy as np

BLOCKS = 3000


def simulate(
    workers: int, distance: int, play: float, learn: float, send: float, spread: float, seed: int = 0
) -> float:
    """Returns the seconds in which `BLOCKS` blocks are played and learnt from."""
    rng = np.random.default_rng(0)
    variance = np.log1p(spread**2)
    times = rng.lognormal(0.0, np.sqrt(variance), BLOCKS)
    times *= play / times.mean()
    free = [0.0] * workers  # when each worker is
    learnt = np.zeros(BLOCKS)  # when the learner is done with each block
    now = 0.0  # of the learner
    arrived = np.zeros(BLOCKS)
    for block in range(BLOCKS):
        ready = learnt[block - distance] + send if block >= distance else 0.0
        begin = max(heapq.heappop(free), ready)
        heapq.heappush(free, begin + times[block])
        arrived[block] = begin + times[block] + send
        now = max(now, arrived[block]) + learn
        learnt[block] = now
    return now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--play", type=float, required=True, help="seconds in which a worker plays a block")
    parser.add_argument("--learn", type=float, required=True, help="seconds in which the learner learns from it")
    parser.add_argument("--send", type=float, default=0.02, help="seconds from a worker to the learner")
    parser.add_argument("--spread", type=float, default=0.3, help="standard deviation of play, relative")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 10, 100, 1000])
    options = parser.parse_args()
    times = options.play, options.learn, options.send, options.spread
    alone = BLOCKS * (options.play + options.learn)
    print(f"The learner alone allows {(options.play + options.learn) / options.learn:.1f} times one process.")
    print("| workers | distance | times one process | workers busy |\n|---|---|---|---|")
    for workers in options.workers:
        for distance in sorted({4, workers + 1, 2 * workers}):
            if distance < workers and distance != 4:
                continue
            seconds = simulate(workers, distance, *times)
            busy = BLOCKS * options.play / (seconds * workers)
            print(f"| {workers} | {distance} | {alone / seconds:.1f} | {busy:.0%} |")


if __name__ == "__main__":
    main()
