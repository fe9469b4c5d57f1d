"""The whole method in one file: plan, play, make targets, remember, update, until Deep-sea is solved.

python examples/minimal.py [size] [seed]      (about three seconds)

Deep-sea is a square of N x N cells. The diver starts at the top left and sinks one row with every step, to the left or
to the right. Steps to the right cost a little, and the only reward lies in the lower right corner. One of 2^(N-1) dives
finds it, and nothing on the way says how close it is, so chance is no help: exploration has to be directed.

`bathysphere.train` runs the same loop with checkpoints, metrics and pictures, for every world; it is in
src/bathysphere/learning/trainer.py. "The paper" is "Uncertainty-sensitive Learning and Planning with Ensembles" (Miłoś,
Kuciński, Czechowski, Kozakowski, Klimek).
"""

import sys
from collections import deque
from math import ceil

import numpy as np

from bathysphere.domains import DeepSea, DeepSeaConfig
from bathysphere.learning import MaskConfig, Replay, ReplayConfig, draw_mask, targets
from bathysphere.planning import MCTS, SearchConfig
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig

EPISODES_AT_ONCE = 4  # played in lock step
STEPS_PER_UPDATE = 0.5  # two updates for every step
BATCH_SIZE = 32  # states in an update
RECENT = 50  # Deep-sea counts as solved when more than half of this many latest episodes found the treasure


def main(size: int = 20, seed: int = 0) -> None:
    """Trains on a sea of `size` x `size` cells. The same seed gives the same episodes."""
    values_seed, play_seed, learn_seed = np.random.SeedSequence(seed).spawn(3)
    rng = np.random.default_rng(learn_seed)

    # The world. A state is a row of bytes, and `domain.successors` returns where every action leads, for many states at
    # once. It is also the planner's model, as in the paper's Deep-sea: predictions are right, but a pass looks only
    # a few steps ahead, and the reward is seen when one reaches it.
    domain = DeepSea(DeepSeaConfig(size=size))

    # The ensemble: K = 20 value functions that begin with different random weights. Learning brings them together, so
    # they differ where little has been learnt: their standard deviation measures what the agent does not know. In
    # Deep-sea a member is one number per cell, and an update moves that a tenth of the way to its target.
    values = Ensemble(
        ValuesConfig(network="linear", num_members=20, bias=False, init_scale=4.0),
        OptimiserConfig(name="delta", learning_rate=0.1),
        domain.observation,
        seed=values_seed,
    )

    # The planner. Before each step it makes 10 passes over a graph of states. A pass walks from the current state down
    # to a leaf, always by the action of the highest score; asks the model for the leaf's children and the ensemble for
    # their values; and adds the leaf's value to every state on the way back up. The score is a risk measure of the
    # members' values, here mean + kappa * std. With kappa (`risk_coef`) above 0 it is optimistic about what is unknown,
    # and the search goes there. Each episode scores with l = 10 members drawn for it, so that episodes differ.
    search = SearchConfig(passes=10, risk_coef=10.0, num_subsampled=10, avoid_loops=False, final_ties="random")
    planner = MCTS(domain, values, search, batch=EPISODES_AT_ONCE, seed=play_seed)

    # The replay: the latest 10 solved and the latest 10 unsolved episodes. Half of every batch comes from each, so that
    # rare successes count.
    replay = Replay(
        ReplayConfig(capacity=10, solved_share=0.5),
        state_size=domain.state_size,
        num_members=values.num_members,
        max_length=domain.max_steps,
        num_targets=values.num_members,
    )

    # Masks say which members learn from which episode. The paper's Deep-sea gives each episode to one random member
    # ("one_hot") to keep the members different. Here their targets keep them different, and all learn from everything.
    mask_config = MaskConfig(kind="none")

    recent: deque[bool] = deque(maxlen=RECENT)
    num_episodes = num_found = num_steps = num_updates = 0
    while sum(recent) <= RECENT // 2:
        # Play: one step in every episode. Those that finished are returned, and new ones begin in their place.
        for episode in planner.step():
            num_episodes += 1
            num_found += episode.solved
            num_steps += len(episode)
            recent.append(episode.solved)

            # Targets: the value of each state in the search graph when the episode ended. Planning has looked ahead,
            # and the ensemble learns what it saw. The paper averages over members ("bootstrap"). With
            # "bootstrap_members" each learns its own, and so uncertainty about states far ahead becomes uncertainty
            # here, where the choice is made.
            wanted = targets(episode, "bootstrap_members", search.discount)  # [T, E]
            mask = draw_mask(mask_config, len(episode), values.num_members, rng)  # [T, E]
            replay.add(episode.states, wanted, mask, episode.solved)

            # Update the ensemble as often as is due, each time with another batch from the replay.
            due = ceil(num_steps / STEPS_PER_UPDATE) - num_updates
            values.update_many(replay.sample(due, BATCH_SIZE, rng).observed(domain))
            num_updates += due

            if num_episodes % 10 == 0:  # disagreement: the members' std, mean over the states of the latest episode
                print(f"{num_episodes:4} episodes, treasure in {num_found:3}, disagreement {episode.search_std:.3f}")
    print(f"solved after {num_episodes} episodes")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
