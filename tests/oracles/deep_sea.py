"""Deep-sea as a person would explain it: one diver, one action, plain integers."""

import numpy as np


class DeepSeaOracle:
    num_actions = 2

    def __init__(self, size, mask_seed=0, horizon="code"):
        self.mask = (np.random.RandomState(mask_seed).rand(size, size) > 0.5).tolist()
        self.steps = {"code": size - 1, "paper": size}[horizon]
        self.horizon = horizon

    def start(self):
        return bytes(4)

    def step(self, row, action):
        """Returns the next row, the reward, terminal and solved."""
        y = int.from_bytes(row[0:2], "little")
        x = int.from_bytes(row[2:4], "little")
        if y == self.steps:
            return row, 0.0, True, x == self.steps
        reward = 0.0
        if action + self.mask[y][x] == 1:
            x = x + 1
            reward = -0.01 / self.steps
        else:
            x = max(0, x - 1)
        y = y + 1
        done = y == self.steps
        solved = done and x == self.steps
        if solved:
            reward = 1.0 if self.horizon == "code" else 1.0 - 0.01 / self.steps
        return y.to_bytes(2, "little") + x.to_bytes(2, "little"), reward, done, solved


def successor_calls(domain, states):
    """Returns calls for `bathysphere bench`, each of which computes one successor of one of `states`."""
    twin = DeepSeaOracle(domain.config.size)
    rows = [state.tobytes() for state in states]
    return [lambda row=row, a=a: twin.step(row, a) for row in rows for a in range(twin.num_actions)]
