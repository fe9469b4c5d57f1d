"""A useful problem: which job goes next on which machine, so that everything is done as early as possible.

python examples/job_shop.py [ft06|la01] [steps] [deadline]      (FT06: about a minute; LA01: several)

Jobs are chains of operations; each has its machine and its time, and a machine does one thing at a time. An action
starts the next operation of a job as early as it can. The agent learns to meet a deadline: the only reward is 1, for a
schedule that is done in time, and an episode is over as soon as the work that is left takes too long. The deadline
begins one below what simple rules reach, or as given, and is then set one below every schedule found. `steps` is the
budget for each deadline.

The file prints what the rules that people use reach (SPT: the shortest operation first; MWKR: the job with the most
work remaining), the best of random schedules, ours, and the proven optimum, and draws our schedule to job_shop.png.

The instances are FT06 (Fisher and Thompson, 1963) and LA01 (Lawrence, 1984): machine and time of every operation.
"""

import sys
from collections.abc import Callable
from operator import getitem

import numpy as np
from matplotlib.figure import Figure

import bathysphere

INSTANCES = {
    "ft06": (
        "2 1 0 3 1 6 3 7 5 3 4 6 | 1 8 2 5 4 10 5 10 0 10 3 4 | 2 5 3 4 5 8 0 9 1 1 4 7 | 1 5 0 5 2 5 3 3 4 8 5 9 | "
        "2 9 1 3 4 5 5 4 0 3 3 1 | 1 3 3 3 5 9 0 10 4 4 2 1"
    ),
    "la01": (
        "1 21 0 53 4 95 3 55 2 34 | 0 21 3 52 4 16 2 26 1 71 | 3 39 4 98 1 42 2 31 0 12 | 1 77 0 55 4 79 2 66 3 77 | "
        "0 83 3 34 2 64 1 19 4 37 | 1 54 2 43 4 79 0 92 3 62 | 3 69 4 77 1 87 2 87 0 93 | 2 38 0 60 1 41 3 24 4 83 | "
        "3 17 1 49 4 25 0 44 2 98 | 4 77 3 79 2 43 1 75 0 96"
    ),
}
OPTIMUM = {"ft06": 55, "la01": 666}
NO_DEADLINE = 10**6


class JobShop:
    """A state: how many operations of each job are done, when each job is ready, and when each machine is free."""

    def __init__(self, instance: str = "ft06", deadline: int = NO_DEADLINE):
        self.instance, self.deadline = instance, deadline
        rows = [list(map(int, row.split())) for row in INSTANCES[instance].split("|")]
        self.jobs = [list(zip(row[::2], row[1::2], strict=True)) for row in rows]  # machine and time
        self.actions, self.machines = len(rows), len(rows[0]) // 2
        self.max_steps = self.actions * self.machines
        counts = range(self.machines + 1)  # of operations that are done
        self.left = [[sum(time for _, time in job[done:]) for done in counts] for job in self.jobs]
        self.load = [  # what is left for each machine, by job and operations done
            [[sum(time for of, time in job[done:] if of == machine) for done in counts] for job in self.jobs]
            for machine in range(self.machines)
        ]
        self.scale = max(map(max, self.left))

    def start(self, rng):
        """Returns the state in which nothing is done."""
        return (0,) * self.actions, (0,) * self.actions, (0,) * self.machines

    def legal(self, state):
        """Returns the jobs worth considering; one of their schedules is always the best (Giffler and Thompson, 1960).

        They want the machine on which an operation can end first, and could begin before it ends.
        """
        done, ready, free = state
        waiting = [(job, *self.jobs[job][done[job]]) for job in range(self.actions) if done[job] < self.machines]
        ends = [(max(ready[job], free[machine]) + time, machine) for job, machine, time in waiting]
        end, wanted = min(ends)
        return [job for job, machine, _ in waiting if machine == wanted and max(ready[job], free[machine]) < end]

    def step(self, state, job):
        """Does the next operation of a job."""
        done, ready, free = map(list, state)
        machine, time = self.jobs[job][done[job]]
        ready[job] = free[machine] = max(ready[job], free[machine]) + time
        done[job] += 1
        after = tuple(done), tuple(ready), tuple(free)
        end_of_job = ready[job] + self.left[job][done[job]]
        end_of_machine = free[machine] + sum(map(getitem, self.load[machine], done))
        if max(end_of_job, end_of_machine) > self.deadline:
            return after, 0.0, True  # too late, whatever is done next
        is_over = sum(done) == self.max_steps
        return after, float(is_over), is_over

    def observe(self, state):
        """Returns shares of operations done, work left, and how long jobs and machines have been waiting."""
        done, ready, free = map(np.array, state)
        left = np.array(list(map(getitem, self.left, done)))
        late = ready.max()
        return np.concatenate(
            [done / self.machines, *((part / self.scale) for part in (left, late - ready, late - free))]
        )


def schedule(shop: JobShop, choose: Callable[..., int]) -> tuple[int, list[int]]:
    """Returns when everything is done, and the jobs in the order in which `choose(state)` started them."""
    state, order = shop.start(None), list[int]()
    while len(order) < shop.max_steps:
        order.append(int(choose(state)))
        state = shop.step(state, order[-1])[0]
    return max(state[1]), order


def by_rules(shop: JobShop) -> dict[str, tuple[int, list[int]]]:
    """Returns what two rules of thumb and the best of 500 random schedules reach."""
    rng = np.random.default_rng(0)

    def shortest(state):
        return min(shop.legal(state), key=lambda job: (shop.jobs[job][state[0][job]][1], job))

    def most_work(state):
        return max(shop.legal(state), key=lambda job: (shop.left[job][state[0][job]], job))

    return {
        "SPT": schedule(shop, shortest),
        "MWKR": schedule(shop, most_work),
        "best of 500 at random": min(schedule(shop, lambda state: rng.choice(shop.legal(state))) for _ in range(500)),
    }


def draw(shop: JobShop, order: list[int], path: str) -> None:
    """Draws who is on which machine when."""
    state = shop.start(None)
    figure = Figure(figsize=(9, 3), layout="constrained")
    axes = figure.subplots()
    for job in order:
        machine, time = shop.jobs[job][state[0][job]]
        state = shop.step(state, job)[0]
        axes.barh(machine, time, left=state[1][job] - time, color=f"C{job}", edgecolor="white")
        axes.text(state[1][job] - time / 2, machine, str(job), ha="center", va="center", color="white", fontsize=8)
    axes.set(xlabel="time", ylabel="machine", title=f"{shop.instance.upper()}: all jobs done at {max(state[1])}")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main(instance: str = "ft06", steps: str = "15000", deadline: str | None = None) -> None:
    """Improves on the rules, one deadline after the other."""
    shop = JobShop(instance)
    found = by_rules(shop)
    for name, (end, _) in found.items():
        print(f"{name}: {end}")
    best, order = min(found.values())
    wanted, won = int(deadline or best - 1), list[list[int]]()
    while True:
        run = bathysphere.train(
            JobShop(instance, wanted),
            seed=1,
            steps=int(steps),
            search={"passes": 20},
            stop={"on_first_win": True},
            pictures=False,
            on_episode=lambda episode, progress: won.append(episode.actions.tolist()) if episode.solved else None,
        )
        if not run["wins"]:
            break
        best, order = schedule(shop, lambda state: won[-1][sum(state[0])])
        print(f"ours: {best}, after {run['env_steps']:,} steps", flush=True)
        wanted = best - 1
    print(f"for {wanted} none was found in {run['env_steps']:,} steps; the proven optimum is {OPTIMUM[instance]}")
    draw(shop, order, "job_shop.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
