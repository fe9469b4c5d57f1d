from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import bathysphere
import bathysphere.gym
from bathysphere.agents.evaluation import evaluate
from bathysphere.agents.loading import load_values
from bathysphere.domains.playing import play_episode
from bathysphere.errors import BathysphereError
from bathysphere.planning import BestFirstConfig
from bathysphere.runs.directory import RunDirectory
from tests.runs.small import small_config


@pytest.fixture(scope="module")
def solved_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("agent") / "run"
    result = bathysphere.train(small_config(), run_dir=path, pictures=False, stop={"on_solved": True}, steps=20_000)
    assert result["stopped_by"] == "solved"
    return path


def _play(agent, env):
    env.reset(seed=0)
    while True:
        _, _, terminated, truncated, info = env.step(agent.act(env))
        if terminated or truncated:
            return info["solved"]


def test_a_loaded_agent_acts_in_gymnasium(solved_run):
    env = gymnasium.make("bathysphere/DeepSea-v0", size=6)
    agent = bathysphere.load_agent(solved_run)
    assert sum(_play(agent, env) for _ in range(10)) > 5


def test_the_graph_is_kept_only_while_the_world_goes_as_expected(solved_run):
    agent = bathysphere.load_agent(solved_run)
    domain = agent.domain
    state = domain.initial(1, np.random.default_rng(0))[0]
    action = agent.act(state)
    first = agent._planner
    outcomes = domain.successors(state[None]).states[0]
    agent.act(outcomes[action])
    assert agent._planner is first
    agent.act(state)  # somewhere else
    assert agent._planner is not first


def _planning(run, **search):
    """Returns an agent that makes whole plans, and where it begins."""
    agent = bathysphere.load_agent(run, search=BestFirstConfig(**search))
    return agent, agent.domain.initial(1, np.random.default_rng(0))[0]


def test_a_whole_plan_is_followed_without_another_search(solved_run):
    agent, state = _planning(solved_run)
    plans = []

    def act(state):
        action = agent.act(state)
        plans.append(agent._plan)
        return action

    played = play_episode(agent.domain, state, act, agent.domain.max_steps)
    assert played.solved
    assert len(played.actions) == 5
    assert all(plan is plans[0] for plan in plans)
    assert not plans[0]


def test_a_plan_is_dropped_when_the_world_goes_another_way(solved_run):
    agent, state = _planning(solved_run)
    action = agent.act(state)
    first = agent._plan
    outcomes = agent.domain.successors(state[None]).states[0]
    elsewhere = next(outcome for outcome in outcomes if not np.array_equal(outcome, outcomes[action]))
    agent.act(elsewhere)
    second = agent._plan
    agent.act(outcomes[action])
    assert second is not first
    assert agent._plan is not second


def test_at_the_end_of_a_plan_that_solves_nothing_the_search_goes_on_from_there(solved_run):
    agent, state = _planning(solved_run, max_expansions=1)  # sees one step ahead
    for _ in range(3):
        before = agent._plan
        state = agent.domain.successors(state[None]).states[0, agent.act(state)]
        assert agent._plan is not before
        assert not agent._plan


def test_act_refuses_what_it_cannot_read(solved_run):
    agent = bathysphere.load_agent(solved_run)
    with pytest.raises(BathysphereError, match=r"expected uint8 \[4\], as deep-sea has it"):
        agent.act(np.zeros(3, np.uint8))
    with pytest.raises(BathysphereError, match="got str"):
        agent.act("north")
    env = gymnasium.make("bathysphere/ToyMontezuma-v0")
    env.reset(seed=0)
    with pytest.raises(BathysphereError, match="trained in another world"):
        agent.act(env)


def test_the_weights_are_those_of_the_checkpoint(solved_run):
    _, domain, values = load_values(solved_run)
    fresh = load_values(solved_run)[2]
    cells = np.arange(36, dtype=np.int32)[:, None]
    assert (values.evaluate(cells) == fresh.evaluate(cells)).all()
    assert values.evaluate(cells)[7].std() < values.evaluate(cells)[5].std()  # visited, never in reach
    assert domain.max_steps == 5


def test_evaluation_counts_and_repeats_itself(solved_run):
    one, two = (evaluate(solved_run, episodes=30, seed=4) for _ in range(2))
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0)
    assert (one.unit, one.count, one.max_steps) == ("episode", 30, 5)
    assert one.mean_length == 5
    assert one.states > 5
    lost = evaluate(solved_run, episodes=3, max_steps=2)
    assert (lost.solved, lost.mean_solution_length, lost.changed) == (0, None, {"max_steps": 2})


def test_evaluation_with_another_planner(solved_run):
    one, two = (evaluate(solved_run, episodes=10, planner="best-first", max_expansions=500) for _ in range(2))
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0)
    assert (one.planner, one.passes, one.solved, one.max_steps) == ("best-first", None, 10, 5)
    assert one.changed == {"max_expansions": 500}
    assert 0 < one.most_expansions <= 500
    assert one.solved_after == tuple(sorted(one.solved_after))
    assert len(one.solved_after) == 10
    with pytest.raises(BathysphereError, match="The planner best-first has no setting 'passes'"):
        evaluate(solved_run, planner="best-first", passes=3)
    with pytest.raises(BathysphereError, match="order phs is guided by a policy"):
        evaluate(solved_run, planner="phs")


def test_a_run_without_checkpoint_has_no_agent(tmp_path):
    RunDirectory.create(tmp_path / "run", small_config())
    with pytest.raises(BathysphereError, match="has no checkpoint yet"):
        bathysphere.load_agent(tmp_path / "run")


def test_train_names_unknown_fields(tmp_path):
    with pytest.raises(BathysphereError, match="Did you mean 'steps'"):
        bathysphere.train("deep-sea", run_dir=tmp_path, stepz=3)


def test_unknown_names_of_the_package():
    assert {"train", "load_agent"} <= set(dir(bathysphere))
    with pytest.raises(AttributeError, match="no attribute 'dive'"):
        _ = bathysphere.dive
