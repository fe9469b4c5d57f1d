"""The compiled inner loops of best-first search. Each works on all searches of a `Store` (see store.py) in turn.

Nothing here allocates. The slow twin is tests/oracles/best_first.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bathysphere.planning.best_first.open_list import move_up, pop, push
from bathysphere.planning.best_first.orders import order_at
from bathysphere.planning.compiled_rules import DONE, NO_ROOM, NO_SUCH_CATEGORY, NOT_FINITE, category_at, successors_at
from bathysphere.planning.graph.compiled import inlined, kernel
from bathysphere.planning.graph.risk import separable_at
from bathysphere.planning.graph.steps import lookup_slot

# As in store.py, which imports this module.
_RUNNING, _SOLVED, _EXHAUSTED, _EXPANSIONS, _STATES, _UNKNOWN = 0, 1, 2, 3, 4, 7


class SearchRules(NamedTuple):
    """The numbers of a BestFirstConfig that kernels need."""

    numbers: NDArray[np.float64]  # what orders are passed
    scratch: NDArray[np.float64]  # [E], members' values of one state
    order: int  # address
    measure: int  # address
    risk_coef: float
    discount: float
    max_steps: int
    max_expansions: int
    max_states: int
    width: int
    reopen: bool


@kernel
def free_records(store, slots):
    """Frees all records of the searches in `slots` [k]. Mutates: records, searches, pool."""
    records, searches, pool = store.records, store.searches, store.pool
    for k in range(slots.shape[0]):
        search = searches[slots[k]]
        record = search["chain"]
        while record >= 0:
            following = records[record]["chain"]
            records[record]["slot"] = -1
            records[record]["chain"] = pool[0]["free"]
            pool[0]["free"] = record
            pool[0]["num_free"] += 1
            record = following
        search["chain"] = -1
        search["top"] = -1
        search["num_states"] = 0


@kernel
def rebuild_lookup(store):
    """Enters every record in use but the unknown into the lookup, and nothing else. Mutates: lookup, pool."""
    records, words, lookup, pool = store.records, store.words, store.lookup, store.pool
    size = lookup.shape[0]
    for entry in range(size):
        lookup[entry] = -1
    pool[0]["num_entries"] = 0
    for record in range(pool[0]["num_used"]):
        if records[record]["slot"] >= 0 and not is_unknown(records[record]):
            entry = first_entry(words[record], records[record]["slot"], size)
            while lookup[entry] >= 0:
                entry = (entry + 1) & (size - 1)
            lookup[entry] = record
            pool[0]["num_entries"] += 1


@inlined
def is_unknown(record):
    """Tells whether a record stands for an outcome that the model does not know: an end, and yet with a value."""
    return record["terminal"] and record["is_evaluated"]


@inlined
def first_entry(row, slot, size):
    """Returns where to begin to look for a state of a search: searches spread equal states over the table."""
    return (lookup_slot(row, size) + slot * 40503) & (size - 1)


@kernel
def find_or_create(store, b, row):
    """Returns (record, is_new) for a row of words in search b.

    An entry of the lookup may lead to a record that was freed, or taken by something else since: it is passed over.
    Invariant: there is room for a record and an entry. Mutates: on creation everything but values, flags and the way.
    """
    records, words, lookup, pool = store.records, store.words, store.lookup, store.pool
    mask = lookup.shape[0] - 1
    entry = first_entry(row, b, mask + 1)
    while lookup[entry] >= 0:
        record = np.int64(lookup[entry])
        if records[record]["slot"] == b:
            same = True
            for w in range(row.shape[0]):
                if words[record, w] != row[w]:
                    same = False
                    break
            if same and not is_unknown(records[record]):
                return record, False
        entry = (entry + 1) & mask
    record = make_record(store, b, row)
    lookup[entry] = record
    pool[0]["num_entries"] += 1
    return record, True


@kernel
def make_record(store, b, row):
    """Returns a new record of search b that is not in the lookup. Mutates: all of it but values, flags and the way."""
    records, words, pool = store.records, store.words, store.pool
    if pool[0]["free"] >= 0:
        record = np.int64(pool[0]["free"])
        pool[0]["free"] = records[record]["chain"]
        pool[0]["num_free"] -= 1
    else:
        record = np.int64(pool[0]["num_used"])
        pool[0]["num_used"] += 1
    for w in range(row.shape[0]):
        words[record, w] = row[w]
    for a in range(store.child.shape[1]):
        store.child[record, a] = -1
        store.reward[record, a] = 0.0
    for i in range(store.members.shape[1]):
        store.members[record, i] = 0.0
    made, search = records[record], store.searches[b]
    made["priority"] = 0.0
    made["value"] = 0.0
    made["slot"] = b
    made["birth"] = search["num_states"]
    made["chain"] = search["chain"]
    made["is_open"] = False
    made["is_expanded"] = False
    made["is_evaluated"] = False
    made["terminal"] = False
    made["solved"] = False
    search["chain"] = record
    search["num_states"] += 1
    return record


@inlined
def set_way(records, record, parent, action, depth, returned, power, log_probability):
    """Notes how a record is reached. Mutates: the record."""
    entry = records[record]
    entry["parent"] = parent
    entry["action"] = action
    entry["depth"] = depth
    entry["returned"] = returned
    entry["power"] = power
    entry["log_probability"] = log_probability


@kernel
def begin(store, rules, slots, rows, depths):
    """Begins a search in each of `slots` [k] at state `rows` [k, W]; `evaluated` brings the start's value.

    Ways count `depths` [k] steps that were made before. Mutates: store; the start is made with a value still missing.
    """
    for k in range(slots.shape[0]):
        search = store.searches[slots[k]]
        search["status"] = _RUNNING
        search["top"] = search["chain"] = search["best"] = search["solution"] = -1
        search["num_states"] = search["num_expansions"] = search["num_model_calls"] = 0
        start, _ = find_or_create(store, slots[k], rows[k])
        power = 1.0
        for _ in range(depths[k]):
            power *= rules.discount
        set_way(store.records, start, -1, -1, depths[k], 0.0, power, 0.0)
        search["start"] = start


@inlined
def evaluated(store, rules, measure, order, record):
    """Puts a record whose members' values are known into its search's open list.

    Not if no step is left there, or it is unknown and worth less than nothing. Mutates: record, open list, best.

    Returns:
      Whether its value and its priority are finite.
    """
    records, searches, scratch = store.records, store.searches, rules.scratch
    entry = records[record]
    b = entry["slot"]
    for i in range(scratch.shape[0]):
        scratch[i] = store.members[record, i]
    value = measure(scratch, rules.risk_coef)
    entry["value"] = value
    entry["is_evaluated"] = True
    depth, logarithm = np.int64(entry["depth"]), entry["log_probability"]
    entry["priority"] = order(depth, entry["returned"], value, logarithm, rules.numbers)
    if entry["terminal"] and value < 0.0:
        return math.isfinite(value)
    if entry["depth"] < rules.max_steps or entry["terminal"]:
        push(records, searches, b, record)
    best = searches[b]["best"]
    if entry["parent"] >= 0 and (best < 0 or value > records[best]["value"]):
        searches[b]["best"] = record
    return math.isfinite(value) and math.isfinite(entry["priority"])


@kernel
def store_values(store, rules, new_records, members, log_policy):
    """Gives new records their members' values [k, E] and log probabilities of actions [k, A or 0], and opens them.

    Returns:
      Whether everything is finite. Mutates: see `evaluated`.
    """
    measure, order = separable_at(rules.measure), order_at(rules.order)
    is_finite = True
    for k in range(new_records.shape[0]):
        record = new_records[k]
        for i in range(members.shape[1]):
            store.members[record, i] = members[k, i]
        for a in range(log_policy.shape[1]):
            store.log_policy[record, a] = log_policy[k, a]
        is_finite &= evaluated(store, rules, measure, order, record)
    return is_finite


@inlined
def reach(store, rules, order, parent, action, child, is_new):
    """Enters the best way to a child through `parent`, if it is better than the one known.

    A way to a state that is not evaluated yet, or no more to be evaluated, is compared as if its value were 0. Longer
    ways, which some orders may prefer, are refused where they would do harm: to a state that was expanded, since others
    are reached through it, which might come to lie beyond max_steps, and since it may be on the longer way itself,
    round a circle that pays; to any other, if it could not be expanded any more.
    Mutates: the child, open list.

    Returns:
      Whether the child's way was changed.
    """
    records = store.records
    before, entry = records[parent], records[child]
    depth = np.int64(before["depth"]) + 1
    returned = before["returned"] + before["power"] * store.reward[parent, action]
    logarithm = before["log_probability"]
    if store.log_policy.shape[1] > 0:
        logarithm += store.log_policy[parent, action]
    if is_new:
        set_way(records, child, parent, action, depth, returned, before["power"] * rules.discount, logarithm)
        return True
    if entry["parent"] < 0 or (entry["is_expanded"] and not rules.reopen):
        return False
    known_depth, value = np.int64(entry["depth"]), entry["value"]
    if depth > known_depth and (entry["is_expanded"] or depth >= rules.max_steps):
        return False
    priority = order(depth, returned, value, logarithm, rules.numbers)
    known_priority = order(known_depth, entry["returned"], value, entry["log_probability"], rules.numbers)
    if not priority < known_priority:  # nor if it is no number
        return False
    set_way(records, child, parent, action, depth, returned, before["power"] * rules.discount, logarithm)
    if entry["is_evaluated"]:
        entry["priority"] = priority
        if entry["is_open"]:
            move_up(records, store.searches, entry["slot"], child)
        elif depth < rules.max_steps and not entry["terminal"]:
            push(records, store.searches, entry["slot"], child)
    return True


@inlined
def insert_child(store, rules, order, b, parent, action, row, reward, terminal, solved):
    """Enters into search b where an action leads from a record: a row of words, its reward and end flags.

    Mutates: the edge; the child; the search's solution.

    Returns:
      The child, and whether it needs a value.
    """
    child, is_new = find_or_create(store, b, row)
    store.child[parent, action] = child
    store.reward[parent, action] = reward
    reach(store, rules, order, parent, action, child, is_new)
    if is_new:
        store.records[child]["terminal"] = terminal
        store.records[child]["solved"] = solved
        if solved and store.searches[b]["solution"] < 0:
            store.searches[b]["solution"] = child
    return child, is_new and not terminal


@inlined
def insert_unknown(store, rules, measure, order, b, parent, action, members):
    """Enters into search b an outcome that is unknown and worth `members` [E]: an open end, with the parent's state.

    Mutates: the edge; the new record; see `evaluated`.

    Returns:
      Whether its value and its priority are finite.
    """
    record = make_record(store, b, store.words[parent])
    store.child[parent, action] = record
    reach(store, rules, order, parent, action, record, True)
    store.records[record]["terminal"] = True
    for i in range(members.shape[0]):
        store.members[record, i] = members[i]
    return evaluated(store, rules, measure, order, record)


@kernel
def next_unexpanded(store, rules, b):
    """Takes the first record of search b's open list that was never expanded; -1 if there is none, or no budget.

    Nor if the unknown comes first: the plan leads there. One that was expanded before, and has a better way now, hands
    it on to its children from the known edges. Mutates: open list, ways, num_expansions, solution.
    """
    records, search, order = store.records, store.searches[b], order_at(rules.order)
    while search["top"] >= 0 and search["num_expansions"] < rules.max_expansions:
        record = pop(records, store.searches, b)
        if records[record]["terminal"]:
            search["solution"] = record
            break
        search["num_expansions"] += 1
        if not records[record]["is_expanded"]:
            return np.int64(record)
        for a in range(store.child.shape[1]):
            child = np.int64(store.child[record, a])
            if child >= 0:  # one taken earlier in this round has no edges yet; they will begin with its new way
                reach(store, rules, order, record, a, child, False)
    return np.int64(-1)


@inlined
def take_from(store, rules, b, pending, num_pending):
    """Takes up to `width` records to be expanded out of search b's open list into `pending`, from `num_pending` on.

    Mutates: see `next_unexpanded`; is_expanded, num_model_calls; pending.

    Returns:
      How many records are pending now.
    """
    for _ in range(rules.width):
        record = next_unexpanded(store, rules, b)
        if record < 0:
            break
        store.records[record]["is_expanded"] = True
        store.searches[b]["num_model_calls"] += 1
        pending[num_pending] = record
        num_pending += 1
    return num_pending


@kernel
def take(store, rules, active, pending, pending_rows):
    """Takes up to `width` records to be expanded out of the open list of every active search.

    They are named in `pending` [B * width], their states in `pending_rows` [B * width, W].
    Mutates: see `take_from`; the outputs.

    Returns:
      How many records are pending.
    """
    num_pending = 0
    for b in range(active.shape[0]):
        if active[b]:
            num_pending = take_from(store, rules, b, pending, num_pending)
    for k in range(num_pending):
        for w in range(pending_rows.shape[1]):
            pending_rows[k, w] = store.words[pending[k], w]
    return num_pending


@kernel
def insert(store, rules, pending, rows, rewards, terminal, solved, known, worth, new_records, new_rows):
    """Enters the model's answer for the pending records [k]: rows [k, A, W]; rewards, terminal, solved [k, A].

    The answer is not known where `known` [k, A] is false, and worth [k, A, E]; both are empty if all is known.
    Mutates: see `insert_child` and `insert_unknown`; and names records that need a value in the two outputs [k * A].

    Returns:
      How many records need a value; -1 if what is unknown is worth something that is not finite.
    """
    measure, order = separable_at(rules.measure), order_at(rules.order)
    num_new = 0
    for k in range(pending.shape[0]):
        parent = pending[k]
        b = store.records[parent]["slot"]
        for a in range(rows.shape[1]):
            if known.shape[0] > 0 and not known[k, a]:
                if not insert_unknown(store, rules, measure, order, b, parent, a, worth[k, a]):
                    return -1
                continue
            row = rows[k, a]
            child, needs_value = insert_child(
                store, rules, order, b, parent, a, row, rewards[k, a], terminal[k, a], solved[k, a]
            )
            if needs_value:
                new_records[num_new] = child
                for w in range(rows.shape[2]):
                    new_rows[num_new, w] = row[w]
                num_new += 1
    return num_new


@inlined
def judge(store, rules, b):
    """Sets the status of search b by its solution and its budgets. Mutates: status."""
    search = store.searches[b]
    if search["solution"] >= 0:
        search["status"] = _SOLVED if store.records[search["solution"]]["solved"] else _UNKNOWN
    elif search["status"] == _RUNNING and search["top"] < 0:
        search["status"] = _EXHAUSTED
    elif search["status"] == _RUNNING and search["num_expansions"] >= rules.max_expansions:
        search["status"] = _EXPANSIONS
    elif search["status"] == _RUNNING and search["num_states"] >= rules.max_states:
        search["status"] = _STATES


@kernel
def judge_all(store, rules, active):
    """Sets the status of every active search. Mutates: status."""
    for b in range(active.shape[0]):
        if active[b]:
            judge(store, rules, b)


@kernel
def run_compiled(store, rules, compiled, table, active, pending, new_records, max_rounds):
    """Lets every active search run by itself, by compiled rules and a table of values, for `max_rounds` rounds.

    Mutates: store; compiled; `pending` [at least width] and `new_records` [at least width * A], which are room to work.

    Returns:
      DONE, or why not; after NO_ROOM it can be called again with a larger store.
    """
    measure, order = separable_at(rules.measure), order_at(rules.order)
    successors, category = successors_at(compiled.successors), category_at(compiled.category)
    num_actions = store.child.shape[1]
    need = rules.width * num_actions
    for b in range(active.shape[0]):
        search = store.searches[b]
        rounds = 0
        while active[b] and search["status"] == _RUNNING and rounds < max_rounds:
            room = store.records.shape[0] - store.pool[0]["num_used"] + store.pool[0]["num_free"]
            if room < need or store.pool[0]["num_entries"] + need > store.lookup.shape[0] // 2:
                return NO_ROOM
            num_pending = take_from(store, rules, b, pending, 0)
            num_new = 0
            for k in range(num_pending):
                parent = pending[k]
                ask(store, compiled, parent, successors)
                for a in range(num_actions):
                    row, reward = compiled.child_words[a], compiled.rewards[a]
                    ends, succeeds = compiled.terminal[a], compiled.solved[a]
                    child, needs_value = insert_child(store, rules, order, b, parent, a, row, reward, ends, succeeds)
                    if needs_value:
                        new_records[num_new] = child
                        num_new += 1
            for k in range(num_new):
                status = look_up(store, compiled, table, new_records[k], category)
                if status == DONE and not evaluated(store, rules, measure, order, new_records[k]):
                    status = NOT_FINITE
                if status != DONE:
                    return status
            judge(store, rules, b)
            rounds += 1
    return DONE


@inlined
def ask(store, compiled, record, successors):
    """Computes the children of a record's state by the rules. Mutates: compiled."""
    for w in range(store.words.shape[1]):
        compiled.state_words[w] = store.words[record, w]
    answer = compiled.children, compiled.rewards, compiled.terminal, compiled.solved
    successors(compiled.numbers, compiled.cells, compiled.state, *answer)
    compiled.counts[0] += 1


@inlined
def look_up(store, compiled, table, record, category):
    """Gives a new record its row of the table. Mutates: members; compiled.

    Returns:
      DONE, or what is wrong with the row.
    """
    for w in range(store.words.shape[1]):
        compiled.state_words[w] = store.words[record, w]
    row = category(compiled.numbers, compiled.cells, compiled.state)
    if row < 0 or row >= table.shape[0]:
        status = NO_SUCH_CATEGORY
    else:
        compiled.counts[1] += 1
        is_finite = True
        for i in range(table.shape[1]):
            store.members[record, i] = table[row, i]
            is_finite &= np.isfinite(table[row, i])
        status = DONE if is_finite else NOT_FINITE
    return status
