import numpy as np

from bathysphere.domains.base import Successors
from bathysphere.models.config import DataConfig
from bathysphere.models.evaluation import Tally, WatchedModel, in_search, on_random_episodes, on_states
from bathysphere.models.trainer import make_domain
from bathysphere.planning import MCTS, SearchConfig
from tests.models.small import Erring, small_domain
from tests.oracles.random_graph import HashedValues

SEARCH = SearchConfig(passes=4, episode_penalty=0.5, dead_end_value=-2.0)


def test_a_tally_by_hand():
    """One board in a row: wall, player, floor, box, target, wall; two steps from it."""
    before = np.array([[0, 5, 1, 4, 2, 0]], np.uint8)
    right = [0, 1, 5, 4, 2, 0]
    solved = [0, 1, 1, 5, 3, 0]
    truth = Successors(
        np.array([[right, solved]], np.uint8),
        np.array([[0.0, 10.0]]),
        np.array([[False, True]]),
        np.array([[False, True]]),
    )
    tally = Tally()
    tally.add(before, truth, truth)
    assert (tally.frames_right, tally.changed_cells_right) == (1.0, 1.0)
    assert (tally.transitions, tally.changed_cells, tally.solved) == (2, 2 + 3, 1)

    two_players = [0, 5, 5, 4, 2, 0]
    other_board = [0, 1, 5, 4, 2, 0]
    guess = Successors(np.array([[two_players, other_board]], np.uint8), truth.rewards, ~truth.terminal, ~truth.solved)
    tally.add(before, guess, truth)
    assert (tally.transitions, tally.wrong_frames, tally.impossible_frames) == (4, 2, 1)
    assert tally.wrong_changed_cells == 1 + 2  # the other board has the player's old cell right
    assert (tally.solved, tally.missed_rewards, tally.false_rewards) == (2, 1, 1)
    assert tally.report()["frames_right"] == 0.5
    assert tally.report()["changed_cells_right"] == 1 - 3 / 10


def test_the_rules_make_no_mistakes():
    domain = small_domain()
    report = in_search(domain, domain, HashedValues(2), SEARCH, episodes=6, batch=4, seed=0)
    for tally in (report.steps, report.trees):
        assert tally.transitions > 10
        assert (tally.wrong_frames, tally.false_rewards, tally.missed_rewards) == (0, 0, 0)
    data = DataConfig(height=7, width=7, max_boxes=1, held_out=5, episodes=2)
    domain = make_domain(data)
    assert on_random_episodes(domain, domain, data).wrong_frames == 0


def test_mistakes_of_steps_are_those_the_planner_counts():
    domain, values = small_domain(), HashedValues(2)
    for kind in Erring.KINDS:
        model = Erring(domain, kind)
        report = in_search(model, domain, values, SEARCH, episodes=10, batch=4, seed=1)
        search = MCTS(domain, values, SEARCH, model=model, batch=4, num_episodes=10, seed=1)
        episodes = search.play()
        assert report.steps.transitions == sum(map(len, episodes))
        assert report.wins == sum(episode.solved for episode in episodes)
        assert report.trees.transitions == 4 * search.work.model_calls
        if kind in ("wrong_frame", "impossible_board"):
            # The planner's graph is mended by the first, so it is wrong about a step once in an episode.
            assert report.steps.wrong_frames >= search.work.model_errors["wrong_state"] > 0
            assert 0.1 < report.trees.wrong_frames / report.trees.transitions < 0.6
        if kind == "false_end":
            assert report.trees.false_rewards > 0
        if kind == "missed_end":
            assert report.steps.missed_rewards == search.work.model_errors["missed_end"] > 0
        assert (report.trees.impossible_frames > 0) == (kind == "impossible_board")


def test_watching_changes_nothing():
    domain = small_domain()
    model, tally, some = Erring(domain, "wrong_frame"), Tally(), domain.initial(5, np.random.default_rng(0))
    watched = WatchedModel(model, domain, tally).successors(some)
    assert all((a == b).all() for a, b in zip(watched, model.successors(some), strict=True))
    assert tally == on_states(model, domain, some)
