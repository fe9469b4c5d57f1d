"""The planner as its users see it, and its semantics in numbers computed by hand."""

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.planning.graph.invariants import check_graph
from tests.oracles.random_graph import RandomGraph, TableValues
from tests.planning.small_worlds import count, entry, make_domain, make_search, plan, total


def draw(seed=5):
    rng = np.random.default_rng(seed)
    domain = RandomGraph.draw(rng)
    return domain, TableValues(rng.choice([0.0, 0.5, 1.0], size=(len(domain.target), 4)).astype(np.float32))


def fingerprint(episodes):
    return [(e.index, e.actions.tolist(), e.states.tobytes(), e.search_values.tolist(), e.solved) for e in episodes]


def play(seed, **kwargs):
    config = SearchConfig(passes=6, risk_coef=1.0, num_subsampled=2)
    return MCTS(*draw(), config, seed=seed, **{"batch": 3, "num_episodes": 7, **kwargs}).play()


# Playing.


def test_same_seed_same_episodes():
    assert fingerprint(play(1)) == fingerprint(play(1))
    assert fingerprint(play(1)) != fingerprint(play(2))


def test_exactly_num_episodes_are_played_in_any_batch():
    for batch in (1, 2, 7, 9):
        episodes = play(0, batch=batch)
        assert [episode.index for episode in episodes] == list(range(7))


def test_without_num_episodes_it_never_ends():
    search = MCTS(*draw(), SearchConfig(passes=2, max_steps=2), batch=2)
    finished = [episode for _ in range(9) for episode in search.step()]
    assert len(finished) >= 8
    assert search.active.all()
    with pytest.raises(BathysphereError, match="num_episodes"):
        search.play()


def test_starts_are_used_in_order_and_again():
    domain, values = draw()
    starts = domain.encode(np.flatnonzero(~domain.is_end)[:3])
    episodes = MCTS(domain, values, SearchConfig(passes=2), batch=2, starts=starts, num_episodes=7).play()
    assert [e.states[0].tobytes() for e in episodes] == [starts[k % 3].tobytes() for k in range(7)]


@pytest.mark.parametrize("options", [{}, {"merge_nodes": True, "patience": 0.5}], ids=["tree", "merged and patient"])
def test_it_resumes_in_mid_episode_bit_for_bit(options):
    domain, values = draw()
    config = SearchConfig(passes=6, risk_coef=1.0, num_subsampled=2, final_ties="random", **options)
    model = domain.misled(np.random.default_rng(0), 0.1)
    search = MCTS(domain, values, config, batch=3, seed=1, num_episodes=12, model=model)
    for _ in range(3):
        search.step()
    saved = {name: array.copy() for name, array in search.state_dict().items()}
    straight_on = search.play()
    other = MCTS(domain, values, config, batch=3, seed=999, num_episodes=12, model=model)
    other.load_state_dict(saved)
    assert fingerprint(other.play()) == fingerprint(straight_on)
    assert other.work.model_errors == search.work.model_errors
    assert (other.work.model_calls, other.work.network_calls) == (search.work.model_calls, search.work.network_calls)


class WrongShape:
    num_members = 3

    def evaluate(self, observations):
        return np.zeros((len(observations), 2), np.float32)


def test_bad_input_is_a_sentence():
    domain, values = draw()
    with pytest.raises(BathysphereError, match=r"values\.evaluate returned shape \(1, 2\).*\(1, 3\)"):
        MCTS(domain, WrongShape())
    with pytest.raises(BathysphereError, match=r"num_subsampled is 5.*only 4 members"):
        MCTS(domain, values, SearchConfig(num_subsampled=5))
    with pytest.raises(BathysphereError, match="batch is 0"):
        MCTS(domain, values, batch=0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"passes": 0}, "passes is 0"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"discount": 0.0}, "discount is 0.0"),
        ({"discount": 1.1}, "discount is 1.1"),
        ({"num_subsampled": 0}, "num_subsampled is 0"),
        ({"transpositions": False}, "Turn off both or neither"),
        ({"merge_nodes": True, "avoid_loops": False}, "merge_nodes needs search.avoid_loops"),
        ({"patience": 0.5}, "patience needs search.merge_nodes"),
        ({"merge_nodes": True, "patience": 1.0}, "patience is 1.0"),
        ({"merge_nodes": True, "patience": float("nan")}, "patience is nan"),
        ({"final_ties": "first"}, "final_ties is 'first'"),
        ({"memory_limit_mb": 0}, "memory_limit_mb is 0"),
        ({"risk_coef": float("nan")}, "risk_coef is nan"),
        ({"dead_end_value": float("-inf")}, "dead_end_value is -inf"),
    ],
)
def test_bad_settings_are_a_sentence(options, complaint):
    with pytest.raises(BathysphereError, match=complaint):
        SearchConfig(**options)


# How episodes end.


def test_an_end_is_not_a_truncation_and_not_a_success():
    domain = make_domain({0: [1], 1: [2]}, ends=[2])
    (episode,) = make_search(domain, [0, 0, 0], num_episodes=1).play()
    assert (len(episode), episode.truncated, episode.solved) == (2, False, False)
    domain = make_domain({0: [1], 1: [2]}, ends=[2], solved=[2])
    (episode,) = make_search(domain, [0, 0, 0], num_episodes=1).play()
    assert (len(episode), episode.truncated, episode.solved) == (2, False, True)


def test_the_step_limit_truncates_and_changes_no_value():
    domain = make_domain({0: [1], 1: [2], 2: [3]}, ends=[3])
    (episode,) = make_search(domain, [0, 8, 8, 0], max_steps=2, passes=2, discount=1.0, num_episodes=1).play()
    assert (len(episode), episode.truncated, episode.solved) == (2, True, False)
    # Backed up to 0: 8. Backed up to 1: 8 from state 2, then 0 from the end behind it.
    assert episode.search_values.ravel().tolist() == [(0 + 8) / 2, (8 + 8 + 0) / 3]
    (episode,) = make_search(domain, [0, 8, 8, 0], max_steps=3, num_episodes=1).play()
    assert (len(episode), episode.truncated) == (3, False)  # the end comes first


# The semantics, in numbers. Worlds with one action leave nothing to choose.

CHAIN = make_domain({0: [(1, 1.0)], **{i: [i + 1] for i in range(1, 40)}})


def test_the_network_value_is_the_first_visit_and_a_leaf_is_not_updated():
    values = [8, 4, 2, *[0] * 38]
    for passes, root, child in [
        (1, (8, 1), (4, 1)),
        (2, (8 + 3, 2), (4, 1)),
        (3, (8 + 3 + 1.5, 3), (4 + 1, 2)),
    ]:
        search = make_search(CHAIN, values, passes=passes, discount=0.5)
        plan(search)
        assert (total(search, CHAIN, 0), count(search, CHAIN, 0)) == ([root[0]], root[1])
        assert (total(search, CHAIN, 1), count(search, CHAIN, 1)) == ([child[0]], child[1])


def test_ten_passes_give_the_first_root_ten_values_and_the_kept_subtree_ten_more():
    search = make_search(CHAIN, [0] * 41, passes=10)
    plan(search)
    assert count(search, CHAIN, 0) == 10  # the network's, and nine passes after the one that expanded it
    assert count(search, CHAIN, 1) == 9
    search.act()
    plan(search)
    assert count(search, CHAIN, 1) == 9 + 10
    assert count(search, CHAIN, 0) == 10
    search = make_search(CHAIN, [0] * 41, passes=1)
    search.step()
    plan(search)
    assert count(search, CHAIN, 1) == 1  # the second root had not been expanded yet


def test_equal_states_share_statistics_but_are_expanded_apart():
    cliff = (5, -100.0)
    domain = make_domain({0: [1, 2], 1: [3, cliff], 2: [3, cliff], 3: [4, cliff], 4: [4, cliff]}, ends=[5])
    values = [0, 10, 9, -4, -4, 0]
    options = {"discount": 1.0, "avoid_loops": False}
    # Leaves: 0; 1; 3 below 1; 2; 3 below 2 (again a leaf, though known); 4 below 3 below 1.
    search = make_search(domain, values, passes=5, **options)
    plan(search)
    assert (count(search, domain, 3), count(search, domain, 2), search.work.model_calls) == (1, 2, 4)
    assert (total(search, domain, 2), total(search, domain, 0)) == ([9 - 4], [0 + 10 - 4 + 9 - 4])
    search = make_search(domain, values, passes=6, **options)
    plan(search)
    assert (count(search, domain, 3), search.work.model_calls) == (2, 5)


def test_merged_nodes_are_expanded_once_and_walked_through():
    cliff = (6, -100.0)
    domain = make_domain({0: [1, 2], 1: [3, cliff], 2: [3, cliff], 3: [4, cliff], 4: [5, cliff]}, ends=[6])
    values = [0, 10, 9, -4, -4, -4, 0]
    # Leaves: 0; 1; 3 below 1; 2; 4 below 3 below 2, for 3 is known; from then on 1 and 2 have the same below them.
    search = make_search(domain, values, passes=5, discount=1.0, merge_nodes=True)
    plan(search)
    assert search.work.model_calls == 5
    assert (count(search, domain, 1), count(search, domain, 2), count(search, domain, 3)) == (2, 2, 2)
    assert total(search, domain, 0) == [0 + 10 - 4 + 9 - 4]
    check_graph(search.arena)


# 0 stays (0), walks to 1 and back (1), falls into 2 (2), or sets out for the end of 3, 4, 5 (3).
CROSSROADS = {0: [0, 1, 2, 3], 1: [1, 0, 1, 1], 3: [4, 4, 4, 4], 4: [(5, 10.0)] * 4}
HOPES = [0, -3, 5, 1, 1, 0]  # of the trap too much


def test_patience_thinks_before_a_step_that_cannot_be_taken_back():
    options = {"passes": 2, "num_episodes": 1, "dead_end_value": -2.0}
    domain = make_domain(CROSSROADS, ends=[5], solved=[5], max_steps=12)
    (hasty,) = make_search(domain, HOPES, merge_nodes=True, **options).play()
    assert (hasty.actions[0], hasty.solved, hasty.num_waits) == (2, False, 0)
    (patient,) = make_search(domain, HOPES, merge_nodes=True, patience=0.5, **options).play()
    assert patient.solved
    waits = patient.num_waits
    assert len(patient) == waits + 3
    assert patient.actions[:waits].tolist() == [0] * waits  # staying is the best way to wait
    assert 1 <= waits <= 6


def test_patience_walks_to_and_fro_where_it_cannot_stay():
    domain = make_domain({**CROSSROADS, 0: [1, 1, 2, 3]}, ends=[5], solved=[5], max_steps=20)
    hopes = [0, 6, *HOPES[2:]]  # the way back is known once 1 has been looked at
    options = {"passes": 3, "num_episodes": 1, "dead_end_value": -2.0, "merge_nodes": True, "episode_penalty": 9.0}
    (hasty,) = make_search(domain, hopes, **options).play()
    assert not hasty.solved
    (patient,) = make_search(domain, hopes, **options, patience=0.5).play()
    assert patient.solved
    assert len(patient) - 3 >= 2
    assert len(np.unique(patient.states[:-3], axis=0)) == 2


def test_patience_has_an_end_and_penalties_do_not_count_it():
    domain = make_domain({0: [0, 1], 1: [1, 1]}, max_steps=10)
    search = make_search(domain, [0, 0], passes=2, merge_nodes=True, patience=0.45, episode_penalty=1.0, num_episodes=1)
    visits = []
    for _ in range(5):
        search.step()
        visits.append(int(search.arena.stats["root_visits"][0, 0]))
        check_graph(search.arena)
    assert search.arena.history["action"][0, :5].tolist() == [0, 0, 0, 0, 1]
    assert visits == [0, 0, 0, 0, 1]


BACK_AND_FORTH = make_domain({0: [0, 1], 1: [0, 1]})


@pytest.mark.parametrize(("dead_end", "root", "child"), [(-1.0, 4 + 2 - 0.5, (3, 2)), (None, 4 + 2 + 2, (4, 1))])
def test_a_dead_end_belongs_to_the_path(dead_end, root, child):
    """Pass 3 goes 0, 1 and finds both children of 1 on its path."""
    search = make_search(BACK_AND_FORTH, [4, 4], passes=3, discount=0.5, dead_end_value=dead_end)
    plan(search)
    assert (total(search, BACK_AND_FORTH, 0), count(search, BACK_AND_FORTH, 0)) == ([root], 3)
    assert (total(search, BACK_AND_FORTH, 1), count(search, BACK_AND_FORTH, 1)) == ([child[0]], child[1])


def test_only_staying_is_forbidden_for_steps():
    search = make_search(BACK_AND_FORTH, [0, 0], passes=3, num_episodes=1, max_steps=5)
    (episode,) = search.play()
    assert episode.actions.tolist() == [1, 0, 1, 0, 1]
    (episode,) = make_search(BACK_AND_FORTH, [5, 0], avoid_loops=False, num_episodes=1, max_steps=3).play()
    assert episode.actions.tolist() == [0, 0, 0]


def test_where_nothing_is_allowed_everything_is():
    (episode,) = make_search(make_domain({0: [0, 0]}), [0], num_episodes=1, max_steps=2).play()
    assert len(episode) == 2


def test_penalties_accumulate_and_never_enter_sums():
    domain = make_domain({0: [1, 2], 1: [0, 0], 2: [2, 2]})
    options = {
        "passes": 4,
        "episode_penalty": 0.2,
        "path_penalty": 0.3,
        "discount": 1.0,
        "avoid_loops": False,
    }
    search = make_search(domain, [1, 1, 0.5], **options)
    actions = []
    for _ in range(6):
        search.step()
        actions.append(int(search.actions[0]))
    # Without penalties, 0 and 1 in turn would be best for ever; each visit makes 1 worth 0.2 less.
    assert actions == [0, 1, 0, 1, 1, 1]
    visits = [int(search.arena.stats["root_visits"][0, entry(search, domain, s)]) for s in (0, 1, 2)]
    assert visits == [3, 2, 1]
    assert (search.arena.stats["path_visits"][0] == 0).all()
    plain = make_search(CHAIN, [3] * 41, passes=5)
    heavy = make_search(CHAIN, [3] * 41, passes=5, episode_penalty=7.0, path_penalty=5.0)
    for _ in range(3):
        plain.step()
        heavy.step()
    used = int(plain.arena.episodes["num_states"][0])
    assert np.array_equal(plain.arena.sums[0, :used], heavy.arena.sums[0, :used])


def test_nothing_outlives_the_episode():
    search = make_search(CHAIN, [1] * 41, passes=5, max_steps=2, episode_penalty=1.0)
    search.step()
    assert len(search.step()) == 1
    assert (count(search, CHAIN, 0), total(search, CHAIN, 0)) == (1, [1.0])
    assert search.arena.stats["root_visits"][0, 0] == 0
    assert search.arena.episodes["num_states"][0] == 1


STAR = make_domain({0: [1, 2, 3], 1: [1] * 3, 2: [2] * 3, 3: [3] * 3})


def test_ties_between_steps_go_to_the_highest_action():
    firsts = set()
    for seed in range(20):
        search = make_search(STAR, [0, 1, 1, 1], seed=seed, passes=1)
        search.step()
        assert search.actions[0] == 2
        search = make_search(STAR, [0, 1, 1, 1], seed=seed, passes=1, final_ties="random")
        search.step()
        firsts.add(int(search.actions[0]))
    assert firsts == {0, 1, 2}


def test_ties_in_traversal_are_random():
    second_leaves = set()
    for seed in range(20):
        search = make_search(STAR, [0, 1, 1, 1], seed=seed, passes=2)
        plan(search)
        expanded = search.arena.edges["child"][0, :4, 0] >= 0
        second_leaves.add(int(np.flatnonzero(expanded)[1]))
    assert second_leaves == {1, 2, 3}


def test_a_member_with_ties_casts_several_votes():
    """Member 0 likes actions 0 and 1 alike, member 1 likes 1 and 2 alike: 1, 2 and 1 votes."""
    search = make_search(STAR, [[0, 0], [1, 0], [1, 1], [0, 1]], risk="vote", passes=1)
    search.step()
    assert search.actions[0] == 1


def test_drawn_members_rank_but_all_members_learn():
    seen = set()
    for seed in range(20):
        search = make_search(
            STAR,
            [[2, 6], [1, 0], [0, 1], [0, 0]],
            num_subsampled=1,
            passes=2,
            seed=seed,
            max_steps=1,
            discount=0.5,
        )
        (episode,) = search.step()
        (action,) = episode.actions.tolist()
        seen.add(action)
        # The chosen child's values, halved, join (2, 6) for both members, whichever was drawn.
        assert episode.search_values.mean() == (2 + 6 + 0.5) / 2 / 2
        assert episode.search_values.shape == (1, 2)
    assert seen == {0, 1}


def test_targets_are_read_when_the_episode_ends():
    domain = make_domain({0: [1], 1: [0]})
    search = make_search(domain, [1, 0], passes=2, max_steps=3, discount=0.5, avoid_loops=False)
    plan(search)
    then = total(search, domain, 0)[0] / count(search, domain, 0)
    search.act()
    search.step()
    plan(search)
    now = total(search, domain, 0)[0] / count(search, domain, 0)
    (episode,) = search.act()
    assert domain.number(episode.states).tolist() == [0, 1, 0]
    assert episode.search_values[0, 0] == episode.search_values[2, 0] == now != then


def test_an_end_has_value_zero_without_spread_so_death_may_look_best():
    domain = make_domain({0: [1, 2], 2: [2, 2]}, ends=[1])
    search = make_search(domain, [[0, 0], [100, 900], [-1.0, -1.1]], risk_coef=3.0, passes=1, num_episodes=1)
    (episode,) = search.step()
    assert (episode.actions.tolist(), episode.solved) == ([0], False)
    (episode,) = make_search(
        domain, [[0, 0], [100, 900], [-1.0, -1.1]], risk_coef=50.0, passes=1, max_steps=1, num_episodes=1
    ).play()  # a spread of 0.05 weighs more than the mean of -1.05
    assert episode.actions.tolist() == [1]


# An erring model.


def test_a_wrong_model_is_corrected_on_the_step_and_counted():
    domain = make_domain({0: [(1, 0.0)], 1: [2], 2: [3]}, ends=[3])
    model = make_domain({0: [(2, 5.0)], 1: [2], 2: [3], 3: [3]})
    search = make_search(domain, [0, 7, 0, 0], model=model, passes=3, num_episodes=1)
    search.step()
    assert domain.number(search.root_states).tolist() == [1]
    assert (count(search, domain, 1), total(search, domain, 1)) == (
        1,
        [7.0],
    )  # begun anew with the network's value
    assert search.work.model_errors == {"wrong_reward": 1, "wrong_state": 1, "false_end": 0, "missed_end": 0}
    (episode,) = search.play()
    assert (episode.rewards.tolist(), episode.truncated) == ([0.0, 0.0, 0.0], False)
    assert search.work.model_errors["missed_end"] == 1


@pytest.mark.parametrize("transpositions", [True, False])
def test_an_episode_counts_its_expansions_and_what_it_asked_of_the_model(transpositions):
    domain, values = draw()
    config = SearchConfig(passes=6, transpositions=transpositions, avoid_loops=transpositions)
    model = domain.misled(np.random.default_rng(0), 0.1)
    search = MCTS(domain, values, config, model=model, batch=3, num_episodes=7)
    episodes = search.play()
    assert sum(episode.num_model_calls for episode in episodes) == search.work.model_calls
    # Every pass expands at most one node; without shared states the model is asked for each of them.
    assert all(e.num_model_calls <= e.num_expansions <= 6 * len(e) for e in episodes)
    assert transpositions == any(e.num_model_calls < e.num_expansions for e in episodes)


def test_merged_nodes_have_no_other_expansions_than_those_the_model_is_asked_for():
    domain, values = draw()
    episodes = MCTS(domain, values, SearchConfig(passes=6, merge_nodes=True), batch=3, num_episodes=7).play()
    assert all(0 < e.num_model_calls == e.num_expansions for e in episodes)
