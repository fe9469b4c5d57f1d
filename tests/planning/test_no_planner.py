"""Acting without a planner: the choice against plain Python; only the steps made are asked of the world."""

import numpy as np
import pytest

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.errors import BathysphereError
from bathysphere.planning import MCTS, NoPlanner, NoPlannerConfig
from bathysphere.planning.graph.risk import register_risk
from bathysphere.planning.inspect import root_report, search_graph
from bathysphere.planning.planner import play_all
from bathysphere.values import OptimiserConfig, ValuesConfig
from bathysphere.values.action_ensemble import ActionEnsemble
from tests.oracles.planner import SEPARABLE, votes
from tests.oracles.random_graph import HashedValues, RandomGraph
from tests.planning.small_worlds import Recorder

SEA = DeepSea(DeepSeaConfig(size=6))


class QTable:
    """Members' values of actions in a random graph, float32 [states, A, E]."""

    def __init__(self, q):
        self.q, self.num_members = q, q.shape[2]

    def evaluate_actions(self, observations):
        return self.q[observations[:, 0].astype(np.int64)]

    def evaluate(self, observations):
        return self.evaluate_actions(observations).max(axis=1)


def draw(rng, num_members=5):
    world = RandomGraph.draw(rng)
    q = rng.normal(size=(*world.target.shape, num_members)).round(1 if rng.random() < 0.5 else 6)
    return world, QTable(q.astype(np.float32))


def make_values(seed=0, num_members=4):
    config = ValuesConfig(network="linear", num_members=num_members, bias=False)
    optimiser = OptimiserConfig(name="delta", learning_rate=0.5)
    return ActionEnsemble(config, optimiser, SEA.observation, seed, num_actions=2)


@pytest.mark.kernels
@pytest.mark.parametrize("risk", [*SEPARABLE, "vote", "vote_once"])
def test_the_choice_is_the_measures_best_among_the_drawn_members(risk):
    rng = np.random.default_rng(0)
    for _ in range(15):
        world, values = draw(rng)
        coef, num_drawn = float(rng.normal()), int(rng.integers(1, 6))
        config = NoPlannerConfig(risk=risk, risk_coef=coef, num_subsampled=num_drawn)
        planner = NoPlanner(world, values, config, batch=3, seed=int(rng.integers(99)))
        drawn = [sorted(set(members)) for members in planner._members.tolist()]
        assert {len(members) for members in drawn} == {num_drawn}
        for _ in range(6):
            before = planner.root_states.copy()
            planner.plan()
            for slot, members in enumerate(drawn):
                own = values.q[world.number(before[slot])].astype(float)
                rows = {a: [own[a][i] for i in members] for a in range(len(own))}
                if risk in SEPARABLE:
                    scores = {a: SEPARABLE[risk](row, coef) for a, row in rows.items()}
                else:
                    scores = votes(rows, list(rows), risk == "vote")
                assert scores[int(planner.actions[slot])] == pytest.approx(max(scores.values()), abs=1e-12)
            if planner.act():
                break


def test_a_measure_of_a_users_that_returns_nan_is_refused():
    register_risk("nothing_below", lambda values, risk_coef: values.mean() if values[0] > -1e6 else np.nan)
    world, values = draw(np.random.default_rng(0))
    values.q[:] = -1e7
    with pytest.raises(BathysphereError, match="'nothing_below' returned NaN"):
        NoPlanner(world, values, NoPlannerConfig(risk="nothing_below")).plan()


def test_only_the_steps_that_are_made_are_asked_of_the_world():
    rng = np.random.default_rng(1)
    for _ in range(10):
        world, values = draw(rng)
        recorder = Recorder.of(world)
        planner = NoPlanner(recorder, values, NoPlannerConfig(risk_coef=1.0), num_episodes=3)
        episodes = play_all(planner)
        visited = [number for e in episodes for number in world.number(e.states).tolist()]
        assert recorder.expanded == visited
        assert planner.work.steps == len(visited)
        assert planner.work.model_calls == 0


def test_episodes_follow_the_rules_to_their_end():
    rng = np.random.default_rng(2)
    for _ in range(20):
        world, values = draw(rng)
        for episode in play_all(NoPlanner(world, values, batch=2, num_episodes=4)):
            after = np.concatenate([episode.states[1:], episode.last_state[None]])
            numbers = world.number(episode.states)
            assert world.number(after).tolist() == world.target[numbers, episode.actions].tolist()
            assert episode.rewards.tolist() == world.reward[numbers, episode.actions].tolist()
            last = world.number(episode.last_state)
            assert episode.truncated == (not world.is_end[last])
            assert episode.solved == world.is_solved[last]
            assert len(episode) == world.max_steps or not episode.truncated


def test_one_drawn_member_decides_a_whole_episode():
    """Thompson sampling: every step is that member's own favourite, and all members come to decide."""
    values = make_values(num_members=4)
    q = values.evaluate_actions(np.arange(36)[:, None])
    deciders = set()
    for episode in play_all(NoPlanner(SEA, values, NoPlannerConfig(num_subsampled=1), num_episodes=40)):
        cells = SEA.observe(episode.states)[:, 0]
        agreeing = [e for e in range(4) if (q[cells, :, e].argmax(axis=1) == episode.actions).all()]
        assert agreeing
        deciders.update(agreeing)
    assert deciders == set(range(4))


def test_without_weight_on_disagreement_the_order_of_members_changes_nothing():
    rng = np.random.default_rng(3)
    world, values = draw(rng)
    permuted = QTable(values.q[:, :, rng.permutation(values.num_members)])
    for coef in (0.0, 2.0):
        one, other = (
            [e.actions.tolist() for e in play_all(NoPlanner(world, v, NoPlannerConfig(risk_coef=coef), num_episodes=5))]
            for v in (values, permuted)
        )
        assert one == other


def test_a_saved_planner_goes_on_bit_for_bit():
    def make():
        return NoPlanner(SEA, make_values(), NoPlannerConfig(risk_coef=1.0, num_subsampled=2), batch=3, seed=4)

    whole, parted = make(), make()
    whole.step(13)
    parted.step(13)
    resumed = make()
    resumed.load_state_dict(parted.state_dict())
    one, other = whole.step(20), resumed.step(20)
    assert [e.index for e in one] == [e.index for e in other]
    for a, b in zip(one, other, strict=True):
        assert (a.states == b.states).all()
        assert (a.actions == b.actions).all()
        assert (a.rewards == b.rewards).all()
        assert (a.last_state == b.last_state).all()
    assert resumed.work.network_calls == whole.work.network_calls


def test_the_report_tells_the_step_that_is_made():
    planner = NoPlanner(SEA, make_values(), NoPlannerConfig(risk_coef=2.0), batch=2, seed=1)
    for _ in range(4):
        report = root_report(planner, 1)
        assert report.q.shape == (2, 4)
        assert report.score[report.chosen] == report.score.max()
        assert report.votes.sum() >= 4
        assert len(search_graph(planner, 1).states) == 1
        planner.step()
        assert planner.actions[1] == report.chosen


def test_the_planner_mcts_can_use_values_of_actions():
    values = make_values()
    observations = np.arange(36)[:, None]
    assert (values.evaluate(observations) == values.evaluate_actions(observations).max(axis=1)).all()
    assert len(play_all(MCTS(SEA, values, num_episodes=2))) == 2


def test_what_does_not_go_without_a_planner_is_refused():
    with pytest.raises(BathysphereError, match="needs values of actions"):
        NoPlanner(SEA, HashedValues(3))
    with pytest.raises(BathysphereError, match="looks at no model"):
        NoPlanner(SEA, make_values(), model=DeepSea(DeepSeaConfig(size=6)))
    for option in ({"steady": True}, {"graph_states": 0}):
        with pytest.raises(BathysphereError, match="no search graph"):
            NoPlanner(SEA, make_values(), **option)
    with pytest.raises(BathysphereError, match="num_subsampled is 9"):
        NoPlanner(SEA, make_values(), NoPlannerConfig(num_subsampled=9))
    with pytest.raises(BathysphereError, match="batch is 0"):
        NoPlanner(SEA, make_values(), batch=0)
    with pytest.raises(BathysphereError, match="risk_coef is nan"):
        NoPlannerConfig(risk_coef=float("nan"))
    world, values = draw(np.random.default_rng(0))
    with pytest.raises(BathysphereError, match="not finite"):
        NoPlanner(world, QTable(np.full_like(values.q, np.nan))).plan()
    with pytest.raises(BathysphereError, match="returned shape"):
        NoPlanner(world, QTable(values.q[:, :1].repeat(7, axis=1))).plan()
