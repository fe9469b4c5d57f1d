"""Random walks that compare a domain with its oracle, all successors at every step."""

import numpy as np


def compare_walks(domain, oracle, walks, steps, rng):
    """Walks `walks` episodes in lock step; a finished walk goes on in its terminal state for the rest.

    Every step compares states (byte for byte), rewards, terminal and solved for every action.
    Returns how many of the walks ended and how many were solved.
    """
    states = domain.initial(walks, rng)
    assert all(row.tobytes() == oracle.start() for row in states)
    memory = {}
    ended = solved = np.zeros(walks, bool)
    for _ in range(steps):
        out = domain.successors(states)
        answers = zip(states, out.states, out.rewards, out.terminal, out.solved, strict=True)
        for state, *answer in answers:
            key = state.tobytes()
            if key not in memory:
                rows, rewards, terminal, is_solved = zip(
                    *(oracle.step(key, action) for action in range(oracle.num_actions)), strict=True
                )
                expected = (np.array(rewards, np.float64), np.array(terminal), np.array(is_solved))
                memory[key] = [b"".join(rows), *(array.tobytes() for array in expected)]
            assert [array.tobytes() for array in answer] == memory[key], key
        actions = rng.integers(oracle.num_actions, size=walks)
        every = np.arange(walks)
        states = out.states[every, actions]
        ended, solved = out.terminal[every, actions], out.solved[every, actions]
    return int(ended.sum()), int(solved.sum())
