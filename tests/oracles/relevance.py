"""A memory that generalises, in plain Python: a dict of steps, gone through from its beginning for every answer."""

from collections import Counter


class Relevance:
    """Twin of `RelevanceModel`. States are tuples of bytes; what a step did is (changes, reward, terminal, solved)."""

    def __init__(self, enough, tolerance):
        self.enough, self.tolerance = enough, tolerance
        self.steps = {}  # (state, action) -> what it did
        self.relevant = []
        self.values = {}  # of each byte, in states that steps began with
        self.num_chosen_from = 0

    def learn(self, steps):
        """Remembers `steps`, a list of (state, action, what it did) that were made at once."""
        varied = sum(len(values) > 1 for values in self.values.values())
        for state, action, did in steps:
            self.steps.setdefault((state, action), did)
            for number, value in enumerate(state):
                self.values.setdefault(number, set()).add(value)
        varies = sum(len(values) > 1 for values in self.values.values())
        if varies > varied or len(self.steps) >= self.num_chosen_from + max(32, self.num_chosen_from // 20):
            self.num_chosen_from = len(self.steps)
            self.relevant = relevant_bytes(self.steps, self.enough, self.tolerance)

    def told(self, state, action):
        """Returns what `action` does in `state`, or None if that is unknown."""
        if (state, action) in self.steps:
            return self.steps[state, action]
        if any(value not in self.values.get(number, ()) for number, value in enumerate(state)):
            return None
        place = {s: did for (s, a), did in self.steps.items() if a == action and self.alike(s, state)}
        if len(set(place.values())) != 1:
            return None
        did = next(iter(place.values()))
        changes, reward, terminal, _ = did
        if any(changes) or reward or terminal:
            return did
        was_tested = all(any(s[b] == value for s in place) for b, value in enumerate(state))
        return did if was_tested else None

    def alike(self, one, other):
        """Returns whether two states have the same relevant bytes."""
        return all(one[b] == other[b] for b in self.relevant)


def relevant_bytes(steps, enough, tolerance):
    """Twin of the function of this name, for a dict of steps as above."""
    size = len(next(iter(steps))[0])
    varies = [b for b in range(size) if len({state[b] for state, _ in steps}) > 1]

    def places(chosen):
        found = {}
        for (state, action), did in steps.items():
            found.setdefault((action, *(state[b] for b in chosen)), []).append((state, did))
        return list(found.values())

    def evidence(chosen, byte):
        within = [place for place in places(chosen) if len({state[byte] for state, _ in place}) > 1]
        return len(within), sum(len({did for _, did in place}) > 1 for place in within)

    def matters(chosen, byte):
        seen, against = evidence(chosen, byte)
        return against * tolerance > seen

    def disagreement(chosen):
        return sum(len(place) - max(Counter(did for _, did in place).values()) for place in places(chosen))

    def suffices(chosen):
        return not any(matters(chosen, b) for b in varies if b not in chosen)

    chosen = []
    while others := [b for b in varies if b not in chosen and matters(chosen, b)]:
        chosen.append(min(others, key=lambda b: (disagreement([*chosen, b]), b)))
    while spare := [b for b in chosen if suffices([c for c in chosen if c != b])]:
        chosen.remove(min(spare, key=lambda b: (len(places([c for c in chosen if c != b])), -b)))
    unsure = [b for b in varies if b not in chosen and evidence(chosen, b)[0] < enough]
    return sorted(chosen + unsure)
