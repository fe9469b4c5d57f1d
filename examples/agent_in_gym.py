"""A trained agent acts in a Gymnasium environment: about five seconds. Give the directory of your own run."""

import sys

import gymnasium

import bathysphere
import bathysphere.gym  # registers the environments

if len(sys.argv) > 1:
    run_dir = sys.argv[1]
else:
    run_dir = bathysphere.train("deep-sea", domain={"size": 10}, stop={"on_solved": True})["run_dir"]
agent = bathysphere.load_agent(run_dir)

env = gymnasium.make("bathysphere/DeepSea-v0", size=agent.domain.config.size)
env.reset(seed=0)
over = False
while not over:
    observation, reward, terminated, truncated, info = env.step(agent.act(env))
    over = terminated or truncated
print(f"solved: {info['solved']}, in {info['steps']} steps")
