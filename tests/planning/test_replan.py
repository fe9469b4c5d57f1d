"""Episodes of many plans: each plan against the plain-Python search, and what happens when it ends or fails."""

from dataclasses import replace

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirst, BestFirstConfig, Replan, ReplanConfig
from bathysphere.planning.best_first.invariants import check_store
from bathysphere.planning.planner import play_all
from tests.models.test_memory import memory_of
from tests.oracles.best_first import EXHAUSTED
from tests.oracles.random_graph import HashedValues, RandomGraph
from tests.planning.best_first_lockstep import all_starts, make_twin, rules_of, told
from tests.planning.small_worlds import Recorder, make_domain

CONFIGS = [
    ReplanConfig(order="value", weight=1.0, risk_coef=2.0, discount=0.9),
    ReplanConfig(weight=0.0, risk_coef=2.0, width=3),
    ReplanConfig(order="value", weight=1.0, risk_coef=-1.0, reopen=True),
    ReplanConfig(weight=1.0, risk_coef=1.0, max_expansions=4),
]


def make(world, config, model=None, **options):
    return Replan(world, HashedValues(3), config, model=model, **options)


def plan_of(planner, slot):
    """Returns the whole plan of an episode: actions and the states to which they should lead."""
    steps = slice(int(planner._plan_length[slot]))
    return planner._plan_actions[slot, steps].tolist(), [s.tobytes() for s in planner._plan_states[slot, steps]]


def check_plan(planner, slot, twin):
    """Asserts that a plan is what its twin, which has ended, leads to."""
    actions, keys = plan_of(planner, slot)
    if twin.ended_by == EXHAUSTED and twin.solution is None:  # to anywhere: there is such a way
        state = twin.start
        for action, key in zip(actions, keys, strict=True) if state.children else ():
            state = state.children[action]
            assert state.key == key
        return
    expected = twin.plan()
    if expected:
        assert actions == [action for _, action in expected]
        ends = [state.children[action] for state, action in expected]
        assert keys == [state.key for state in ends]
        assert planner._leads_on[slot] == (not ends[-1].is_unknown)
        assert planner._leads_to_end[slot] == (ends[-1].terminal and not ends[-1].is_unknown)
    else:
        assert len(actions) == 1


@pytest.mark.kernels
@pytest.mark.parametrize("config", CONFIGS)
def test_every_plan_is_the_one_of_a_search_in_plain_python(config):
    rng = np.random.default_rng(0)
    num_unknown = num_plans = 0
    for seed in range(8):
        world = replace(RandomGraph.draw(rng), max_steps=9)
        memory = memory_of(world, rng.random(world.target.shape) < rng.choice([0.0, 0.5, 0.9]))
        planner = make(world, config, memory, batch=2, seed=seed, num_episodes=5, starts=all_starts(world))
        rules, tried, episodes = rules_of(world), memory.num_known, []
        while planner.active.any():
            has_plan = planner._plan_length > 0
            twins = {
                slot: make_twin(planner, slot, int(planner._played.length[slot]))
                for slot in np.flatnonzero(planner.active & ~has_plan)
            }
            planner.plan()
            check_store(planner.store)
            for slot, twin in twins.items():
                while not twin.ended_by:
                    twin.round()
                check_plan(planner, slot, twin)
                num_plans += 1
            before, active = planner.root_states.copy(), planner.active.copy()
            lengths = planner._played.length + 1
            finished = planner.act()
            episodes += finished
            memory.learn(*planner.made)
            over = iter(finished)  # in slot order
            for slot in np.flatnonzero(active):
                key, _, terminal, solved = rules(before[slot].tobytes())[planner.actions[slot]]
                if terminal or lengths[slot] == world.max_steps:
                    episode = next(over)
                    assert (episode.solved, episode.truncated) == (solved, not terminal)
                    assert (episode.last_state.tobytes(), len(episode)) == (key, lengths[slot])
                else:
                    assert planner.root_states[slot].tobytes() == key
        assert not any(planner.work.model_errors.values())  # not to know is no error
        assert planner.work.steps == sum(map(len, episodes))
        assert planner.work.unknown_steps >= memory.num_known - tried
        assert sorted(e.index for e in episodes) == list(range(5))
        num_unknown += planner.work.unknown_steps
    assert num_plans > 40
    assert num_unknown > 20


@pytest.mark.parametrize("kind", [BestFirst, Replan])
@pytest.mark.parametrize(("model_risk", "action"), [(20.0, 1), (-20.0, 0)])
def test_the_sign_of_model_risk_decides_about_the_unknown(kind, model_risk, action):
    """Of two actions one is known to lead to a state that is worth something, and the other was never tried."""
    world = make_domain({0: [1, 2], 1: [1, 1]}, ends=(2,))
    memory = memory_of(world, np.array([[True, False], [True, True], [False, False]]), num_members=8)
    config = ReplanConfig(model_risk=model_risk, max_expansions=2)
    if kind is BestFirst:
        config = BestFirstConfig(order="value", model_risk=model_risk, max_expansions=2)
    planner = kind(world, HashedValues(8), config, model=memory, num_episodes=1)
    [episode] = play_all(planner)
    assert episode.actions[0] == action


@pytest.mark.parametrize("order", ["steps", "value"])
def test_with_the_rules_it_follows_the_plans_that_best_first_search_makes(order):
    rng = np.random.default_rng(1)
    num_solved = 0
    for seed in range(12):
        world = RandomGraph.draw(rng)
        options = {"starts": all_starts(world), "num_episodes": 6, "seed": seed}
        values = HashedValues(3)
        alike = {"order": order, "weight": 2.0, "width": 1}
        plans = play_all(BestFirst(world, values, BestFirstConfig(**alike), **options))
        episodes = play_all(Replan(world, values, ReplanConfig(**alike), **options))
        for plan, episode in zip(plans, episodes, strict=True):
            if plan.solved:
                assert told([episode])[0][:3] == told([plan])[0][:3]  # states, actions, rewards
                assert episode.solved
                num_solved += 1
    assert num_solved > 10


def test_only_the_steps_that_are_made_are_asked_of_the_world():
    rng = np.random.default_rng(2)
    world = Recorder.of(RandomGraph.draw(rng))
    memory = memory_of(world, rng.random(world.target.shape) < 0.5)
    episodes = play_all(make(world, CONFIGS[0], memory, num_episodes=3))
    assert world.expanded == [number for e in episodes for number in world.number(e.states).tolist()]


def test_a_plan_that_fails_is_made_anew_and_the_errors_are_counted():
    """The model takes state 2 for 1, from where it knows the way on to success; from 2 there is another."""
    world = make_domain({0: [2, 0], 1: [3, 1], 2: [2, 3]}, ends=(3,), solved=(3,))
    model = make_domain({0: [1, 0], 1: [3, 1], 2: [2, 3]}, ends=(3,), solved=(3,))
    planner = make(world, ReplanConfig(), model, num_episodes=1)
    (episode,) = play_all(planner)
    assert episode.solved
    assert episode.actions.tolist() == [0, 1]
    assert planner.work.model_errors == {"wrong_reward": 0, "false_end": 0, "missed_end": 0, "wrong_state": 1}
    lying = make_domain({0: [1, 1], 2: [2, 2]}, ends=(1,))
    honest = make_domain({0: [2, 2], 2: [(1, 4.0)] * 2}, ends=(1,), max_steps=2)
    planner = make(honest, ReplanConfig(), lying, num_episodes=1)
    play_all(planner)
    assert planner.work.model_errors == {"wrong_reward": 1, "false_end": 1, "missed_end": 1, "wrong_state": 2}


def test_what_an_episode_has_seen_is_known_better_than_any_model_knows_it():
    """The model takes the wall at 0 for a way to success, and a memory that learns later has nothing to say of it."""
    world = make_domain({0: [0, 1], 1: [1, 2]}, ends=(2,), solved=(2,), max_steps=6)
    lying = make_domain({0: [2, 1], 1: [1, 2]}, ends=(2,), solved=(2,))
    planner = make(world, ReplanConfig(), lying, num_episodes=2)
    episodes = play_all(planner)
    assert [episode.actions.tolist() for episode in episodes] == [[0, 1, 1]] * 2  # an episode knows its own steps only
    assert planner.work.model_errors["wrong_state"] == planner.work.model_errors["false_end"] == 2
    memory = memory_of(world, np.zeros((3, 2), bool), num_members=3)
    planner = make(world, ReplanConfig(risk_coef=5.0), memory, num_episodes=8, batch=2)
    episodes = play_all(planner)
    assert all(episode.solved for episode in episodes)  # of six steps, no more than four lead into the unknown
    assert planner.work.unknown_steps == sum(len({*zip(e.states[:, 0], e.actions, strict=True)}) for e in episodes)


def test_with_what_it_has_seen_a_saved_planner_goes_on_bit_for_bit():
    world = make_domain({n: [n, n + 1, max(n - 1, 0)] for n in range(20)}, ends=(20,), max_steps=60)
    memory = memory_of(world, np.zeros((21, 3), bool))
    whole, parted, resumed = (make(world, ReplanConfig(risk_coef=5.0), memory, batch=2, seed=1) for _ in range(3))
    whole.step(20)
    parted.step(20)
    resumed.load_state_dict(parted.state_dict())
    assert told(whole.step(80)) == told(resumed.step(80))


def test_curiosity_goes_into_the_unknown_and_caution_keeps_away():
    """Action 0 leads to a state that is known to lead nowhere, 1 was never tried."""
    world = make_domain({0: [1, 2], 1: [1, 1]}, ends=(2,))
    tried = np.array([[True, False], [True, True], [False, False]])
    for coef, action in ((5.0, 1), (-5.0, 0)):
        memory = memory_of(world, tried, num_members=8)
        config = ReplanConfig(risk_coef=coef)
        planner = Replan(world, HashedValues(8), config, model=memory)
        planner.plan()
        assert planner._plan_actions[0, 0] == action
        graph = planner.search_graph(0)
        assert graph.child[0, action] == 1
        assert len(graph.states) == 2


def test_a_plan_fits_into_what_is_left_of_the_episode():
    """Success is three steps away, and there are two."""
    world = make_domain({0: [1, 1], 1: [2, 2], 2: [3, 3]}, ends=(3,), solved=(3,), max_steps=3)
    (episode,) = play_all(make(world, ReplanConfig(), num_episodes=1))
    assert episode.solved
    (episode,) = play_all(make(world, ReplanConfig(max_steps=2), num_episodes=1))
    assert (len(episode), episode.solved, episode.truncated) == (2, False, True)


def test_where_all_is_known_and_nothing_to_be_found_it_goes_anywhere():
    world = make_domain({0: [1, 2], 1: [1, 1], 2: [2, 2]}, max_steps=4)
    firsts = {play_all(make(world, ReplanConfig(), seed=seed, num_episodes=1))[0].actions[0] for seed in range(20)}
    assert firsts == {0, 1}


def corridor():
    """Returns what begins a planner in a world of 30 states in a row, of which the first 20 are known."""
    world = make_domain({n: [n + 1, n] for n in range(30)}, ends=(30,), max_steps=25)
    memory = memory_of(world, np.broadcast_to(np.arange(31)[:, None] < 20, (31, 2)))
    return lambda: make(world, CONFIGS[0], memory, batch=3, seed=1)


def test_a_saved_planner_goes_on_bit_for_bit():
    begin = corridor()
    whole, parted, resumed = begin(), begin(), begin()
    whole.step(7)
    parted.step(7)
    assert (parted._plan_length > parted._plan_step + 1).all()
    resumed.load_state_dict(parted.state_dict())
    one, other = told(whole.step(25)), told(resumed.step(25))
    assert one == other
    saved, again = whole.state_dict(), resumed.state_dict()
    assert saved.keys() == again.keys()
    assert all((saved[name] == again[name]).all() for name in saved if not name.startswith("store."))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("plan_length", lambda saved: saved + 1000),
        ("plan_length", lambda saved: saved - 1000),
        ("plan_step", lambda saved: saved + 1000),
        ("plan_step", lambda saved: saved - 1000),
        ("plan_step", lambda saved: saved[:-1]),
        ("plan_actions", lambda saved: saved + 1000),
        ("plan_actions", lambda saved: saved[:, :-1]),
        ("past_actions", lambda saved: saved + 1000),
        ("length", lambda saved: saved + 1000),
        ("root_states", lambda saved: saved[:-1]),
    ],
)
def test_a_state_that_nobody_saved_is_refused(name, change):
    begin = corridor()
    planner = begin()
    planner.step(7)
    saved = planner.state_dict()
    with pytest.raises(BathysphereError):
        begin().load_state_dict({**saved, name: change(saved[name])})


def test_what_it_does_not_go_with_is_refused():
    world = make_domain({0: [1, 1]}, ends=(1,))
    with pytest.raises(BathysphereError, match="keeps no graph"):
        make(world, ReplanConfig(), graph_states=5)
    with pytest.raises(BathysphereError, match="steady_values"):
        make(world, ReplanConfig(), steady=True)
