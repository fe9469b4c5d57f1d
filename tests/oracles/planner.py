"""The planner as the paper writes it, for one episode: dicts, lists and floats, no arrays.

Function names follow the paper's algorithms. Where its pseudo-code and the authors' program differ, this
follows the program (docs/reference/deviations.md lists the differences).
"""

from __future__ import annotations

import math

_MASK = 2**64 - 1


class SplitMix:
    """The random stream of one episode."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def below(self, n: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
        return int((z >> 11) * 2.0**-53 * n)


class State:
    """A vertex of the state graph with its statistics."""

    def __init__(self, key):
        self.key = key
        self.sums = None
        self.priors = None  # the policy, by action; 0 at ends
        self.count = 0
        self.terminal = False
        self.solved = False
        self.unknown = False
        self.rewards = {}
        self.children = {}  # action -> State, filled by the first expansion
        self.nodes = None  # the children of the node expanded first
        self.families = []  # the children of every node expanded here
        self.root_visits = 0
        self.path_visits = 0

    def value(self, i):
        return self.sums[i] / self.count

    def update(self, values):
        self.count += 1
        for i, value in enumerate(values):
            self.sums[i] += value


class Node:
    """A node of the search tree; several may share a state."""

    def __init__(self, state):
        self.state = state
        self.children = None  # list of nodes, by action


def mean(xs):
    total = 0.0
    for x in xs:
        total += x
    return total / len(xs)


def variance_sum(xs):
    center = mean(xs)
    total = 0.0
    for x in xs:
        total += (x - center) * (x - center)
    return total


def exponential(xs, k):
    if k == 0:
        return mean(xs)
    peak = max(k * x for x in xs)
    total = 0.0
    for x in xs:
        total += math.exp(k * x - peak)
    return (peak + math.log(total / len(xs))) / k


SEPARABLE = {
    "mean_std": lambda xs, k: mean(xs) + k * math.sqrt(variance_sum(xs) / len(xs)),
    "mean_variance": lambda xs, k: mean(xs) + k * variance_sum(xs) / len(xs),
    "second_moment": lambda xs, k: mean([x + k * x * x for x in xs]),
    "exponential": exponential,
}


def votes(q, eligible, all_ties):
    """q: action -> member values. Returns action -> votes."""
    count = dict.fromkeys(eligible, 0.0)
    for i in range(len(next(iter(q.values())))):
        peak = max(q[a][i] for a in eligible)
        if all_ties:
            winners = [a for a in eligible if abs(q[a][i] - peak) <= 1e-8 + 1e-5 * abs(peak)]
            share = 1.0
        else:
            winners = [a for a in eligible if q[a][i] == peak]
            share = 1.0 / len(winners)
        for a in winners:
            count[a] += share
    return count


def bonus(kind, parent, child, std, num_members):
    if kind == "ucb1":
        return math.sqrt(2.0 * math.log(parent) / (child * num_members))
    if kind == "ucb_v":
        return std * math.sqrt((math.log(2.0) + 4.0 * math.log(parent)) / (child * num_members))
    if kind == "moss":
        return math.sqrt(max(0.0, math.log(parent / (4.0 * child))) / (2.0 * child))
    raise ValueError(kind)


class OracleEpisode:
    """Plays one episode.

    Args:
      successors: key -> list over actions of (key, reward, terminal, solved): what planning believes; with the members'
        values as a fifth, what it does not know.
      truth: the same, but what really happens.
      evaluate: key -> list of member values.
      priors: key -> list of the policy's probabilities of actions.
    """

    def __init__(self, start, seed, successors, evaluate, config, num_members, max_steps, truth=None, priors=None):
        self.successors, self.evaluate, self.config, self.priors = successors, evaluate, config, priors
        self.truth = truth
        self.max_steps = max_steps
        self.rng = SplitMix(seed)
        self.table = {}
        self.states = []  # in order of creation
        self.history = []  # (state, action, reward)
        self.errors = {"wrong_reward": 0, "false_end": 0, "missed_end": 0, "wrong_state": 0}
        self.model_calls = 0
        self.unknown_steps = 0
        self.num_waits = 0
        self.outcome = None  # "ended" or "cut off"
        first = self.create_state(start, terminal=False, solved=False)
        self.root = Node(first)
        drawn = config.num_subsampled or num_members
        self.members = []
        for i in range(num_members):
            if self.rng.below(num_members - i) < drawn - len(self.members):
                self.members.append(i)
        self.num_members = num_members

    def create_state(self, key, terminal, solved):
        state = State(key)
        state.terminal, state.solved = terminal, solved
        values = self.evaluate(key)
        state.sums = [0.0] * len(values) if terminal else [float(v) for v in values]
        state.count = 1
        if self.config.prior_coef:
            state.priors = [0.0 if terminal else float(p) for p in self.priors(key)]
        self.states.append(state)
        self.table[key] = state
        return state

    def find_or_create(self, key, terminal, solved):
        if self.config.transpositions and key in self.table:
            return self.table[key]
        return self.create_state(key, terminal, solved)

    def unknown(self, state, values):
        """An outcome that the model does not know: an end that is worth something, and that no lookup finds."""
        outcome = State(state.key)
        outcome.terminal, outcome.unknown, outcome.sums, outcome.count = True, True, list(values), 1
        if self.config.prior_coef:
            outcome.priors = [0.0] * len(state.priors)
        self.states.append(outcome)
        return outcome

    # The paper's Algorithm run_episode, split so that a test can look between passes.

    def begin_step(self):
        self.root.state.root_visits += 1

    def one_pass(self):
        path, leaf, dead_end = self.traversal()
        value = self.expand_leaf(leaf, dead_end)
        self.backpropagate(value, path)

    def end_step(self):
        action = self.choose_action()
        child = self.root.children[action]
        if self.truth is not None:
            child = self.correct(action, child)
        self.history.append((self.root.state, action, self.root.state.rewards[action]))
        self.root = child
        if child.state.terminal:
            self.outcome = "ended"
        elif len(self.history) == self.max_steps:
            self.outcome = "cut off"
        return action

    def traversal(self):
        node, path, dead_end = self.root, [], False
        while not node.state.terminal:
            if node.children is None and self.config.merge_nodes:
                node.children = node.state.nodes
            if node.children is None:
                break
            node.state.path_visits += 1
            eligible = []
            for a, child in enumerate(node.children):
                if not (self.config.avoid_loops and child.state.path_visits > 0):
                    eligible.append(a)
            if not eligible:
                dead_end = True
                break
            config = self.config
            coefs = config.risk_coef, config.bonus_coef, config.prior_coef
            scores = self.scores(node, eligible, config.risk, *coefs)
            action = self.best(scores, eligible, highest=False)
            path.append((node, action))
            node = node.children[action]
        return path, node, dead_end

    def expand_leaf(self, leaf, dead_end):
        state = leaf.state
        if state.terminal:
            return list(state.sums) if state.unknown else [0.0] * self.num_members
        if dead_end:
            state.path_visits -= 1
            if self.config.dead_end_value is None:
                return [state.value(i) for i in range(self.num_members)]
            value = [self.config.dead_end_value] * self.num_members
            state.update(value)
            return value
        if not state.children:
            self.model_calls += 1
            for a, (key, reward, terminal, solved, *unknown) in enumerate(self.successors(state.key)):
                state.children[a] = (
                    self.unknown(state, *unknown) if unknown else self.find_or_create(key, terminal, solved)
                )
                state.rewards[a] = reward
        leaf.children = state.nodes = [Node(state.children[a]) for a in sorted(state.children)]
        state.families.append(leaf.children)
        return [state.value(i) for i in range(self.num_members)]

    def backpropagate(self, value, path):
        for node, action in reversed(path):
            node.state.path_visits -= 1
            value = [node.state.rewards[action] + self.config.discount * v for v in value]
            node.state.update(value)

    def scores(self, node, eligible, risk, risk_coef, bonus_coef, prior_coef):
        """Returns action -> score."""
        state = node.state
        q, values, rewards, extras = {}, {}, {}, {}
        for a in eligible:
            child = node.children[a].state
            share = 1.0 / child.count  # one division for all members, as the kernels do it
            values[a] = [child.sums[i] * share for i in self.members]
            rewards[a] = state.rewards[a]
            extra = 0.0
            if self.config.bonus != "none" and bonus_coef != 0.0:
                std = math.sqrt(variance_sum(values[a]) / len(self.members))
                extra += bonus_coef * bonus(self.config.bonus, state.count, child.count, std, len(self.members))
            if prior_coef:
                trust = math.sqrt(state.count) / (1 + child.count)
                extra += prior_coef * state.priors[a] * trust
            extra -= self.config.episode_penalty * child.root_visits
            extra -= self.config.path_penalty * child.path_visits
            extras[a] = extra
            q[a] = [rewards[a] + self.config.discount * (v + extra) for v in values[a]]
        if risk in SEPARABLE:
            return {
                a: rewards[a] + self.config.discount * (SEPARABLE[risk](values[a], risk_coef) + extras[a])
                for a in eligible
            }
        return votes(q, eligible, all_ties=risk == "vote")

    def best(self, scores, eligible, highest):
        top = max(scores[a] for a in eligible)
        ties = [a for a in eligible if scores[a] == top]
        if highest:
            return ties[-1]
        return ties[self.rng.below(len(ties))] if len(ties) > 1 else ties[0]

    def choose_action(self):
        config, root = self.config, self.root
        eligible = [
            a for a, child in enumerate(root.children) if not (config.avoid_loops and child.state is root.state)
        ] or list(range(len(root.children)))
        risk = config.final_risk or config.risk
        coef = config.risk_coef if config.final_risk_coef is None else config.final_risk_coef
        # The policy says where to look, not what to do: its prior is left out.
        scores = self.scores(root, eligible, risk, coef, config.bonus_coef if config.final_bonus else 0.0, 0.0)
        action = self.best(scores, eligible, highest=config.final_ties == "highest")
        return self.put_off(action) if self.num_waits < int(config.patience * self.max_steps) else action

    def put_off(self, action):
        """Returns an action to wait with, or `action`."""
        root = self.root.state
        waits = [a for a, child in root.children.items() if child is root or root in child.children.values()]
        if action in waits or not waits or any(state.solved for state in self.states):
            return action
        self.num_waits += 1
        root.root_visits -= 1
        staying = [a for a in waits if root.children[a] is root]
        return staying[0] if staying else waits[-1]

    def correct(self, action, child):
        """Returns the node that is really reached; mends the edge the model had wrong."""
        root = self.root.state
        key, reward, terminal, solved = self.truth(root.key)[action]
        if child.state.unknown:
            self.unknown_steps += 1
            root.rewards[action] = reward
        else:
            if root.rewards[action] != reward:
                self.errors["wrong_reward"] += 1
                root.rewards[action] = reward
            if child.state.terminal and not terminal:
                self.errors["false_end"] += 1
            if terminal and not child.state.terminal:
                self.errors["missed_end"] += 1
            child.state.terminal, child.state.solved = terminal, solved
            if child.state.key == key:
                return child
            self.errors["wrong_state"] += 1
        state = self.find_or_create(key, terminal, solved)
        state.terminal, state.solved = terminal, solved
        root.children[action] = state
        for children in root.families:
            children[action] = Node(state)
        return self.root.children[action]
