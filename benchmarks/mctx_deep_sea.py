"""Compares our planner with mctx, a batched planner in JAX, on Deep-sea N = 40, per second and core.

mctx and JAX are not dependencies of this package. Install them beside it and run on one core:

    pip install mctx jax
    taskset -c 0 python benchmarks/mctx_deep_sea.py

If they live in another environment, `--mctx-python` names its interpreter, and mctx is measured there in the
same run, alternating with ours. A simulation of mctx is a pass of ours. Theirs: one value, no transpositions,
PUCT. Ours: 20 members of which 10 rank, a transposition table, mean + 50 std, and the steps in between.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BATCH, SIMULATIONS, SIZE = 256, 10, 40
REPEATS, WINDOW = 5, 0.5


def measure_mctx() -> float:
    """Returns mctx's simulations per second: the median of several windows."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    import jax.numpy as jnp
    import mctx
    import numpy as np

    mask = jnp.asarray(np.random.RandomState(0).rand(SIZE, SIZE) > 0.5)
    table = jnp.asarray(np.random.default_rng(0).normal(scale=0.06, size=SIZE * SIZE), jnp.float32)

    def step(_params, _key, action, cell):
        y, x = cell // SIZE, cell % SIZE
        right = (action + mask[y, x]) == 1
        last = y + 1 >= SIZE - 1
        next_y = jnp.minimum(y + 1, SIZE - 1)
        next_x = jnp.where(right, jnp.minimum(x + 1, SIZE - 1), jnp.maximum(x - 1, 0))
        reward = jnp.where(right, -0.01 / (SIZE - 1), 0.0) + jnp.where(last & (next_x == SIZE - 1), 1.0, 0.0)
        child = next_y * SIZE + next_x
        output = mctx.RecurrentFnOutput(
            reward=reward.astype(jnp.float32),
            discount=jnp.where(last, 0.0, 0.99).astype(jnp.float32),
            prior_logits=jnp.zeros((BATCH, 2), jnp.float32),
            value=table[child],
        )
        return output, child

    @jax.jit
    def search(key, cells):
        root = mctx.RootFnOutput(prior_logits=jnp.zeros((BATCH, 2), jnp.float32), value=table[cells], embedding=cells)
        policy = mctx.muzero_policy((), key, root, step, SIMULATIONS)
        return policy.action

    key, cells = jax.random.PRNGKey(0), jnp.zeros(BATCH, jnp.int32)
    search(key, cells).block_until_ready()  # compiles
    return statistics.median(_rate(lambda: search(key, cells).block_until_ready()) for _ in range(REPEATS))


def _rate(call) -> float:
    calls, began = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < WINDOW:
        call()
        calls += 1
    return calls * BATCH * SIMULATIONS / elapsed


def measure_ours(batch: int) -> float:
    """Returns our passes per second, steps included."""
    from bathysphere.bench import planner

    ((steps, _),) = planner.speeds(planner.deep_sea(batch), repeats=REPEATS)
    return steps * SIMULATIONS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mctx-python", default=sys.executable, help="interpreter that has mctx and jax")
    parser.add_argument("--only-mctx", action="store_true", help="print mctx's number and stop")
    parser.add_argument("--rounds", type=int, default=3, help="how often to measure both in turn")
    options = parser.parse_args()
    if options.only_mctx:
        print(measure_mctx())
        return
    theirs, ours, widest = [], [], []
    for _ in range(options.rounds):
        command = [options.mctx_python, __file__, "--only-mctx"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"mctx did not run; install it with 'pip install mctx jax'.\n{run.stderr[-500:]}")
        theirs.append(float(run.stdout.split()[-1]))
        ours.append(measure_ours(BATCH))
        widest.append(measure_ours(2048))
    result = {
        "mctx_simulations_per_second": statistics.median(theirs),
        "passes_per_second": statistics.median(ours),
        "passes_per_second_batch_2048": statistics.median(widest),
    }
    print(json.dumps({**result, "ratio": result["passes_per_second"] / result["mctx_simulations_per_second"]}))


if __name__ == "__main__":
    main()
