"""Small levels, and agents with random weights: best-first search needs no better ones to solve these."""

from pathlib import Path

from bathysphere.agents import agent_file
from bathysphere.agents.card import Card
from bathysphere.config.run import RunConfig
from bathysphere.domains.sokoban import GeneratorConfig, Sokoban, SokobanConfig, parse_levels
from bathysphere.storage.tensors import halved
from bathysphere.values import Ensemble, OptimiserConfig, ValuesConfig

LEVELS = """\
######
#@ $.#
######
Title: easy

#######
#$ @ .#
#######
Title: hopeless

########
#@ $  .#
########
Title: large

#######
#     #
# $ $ #
# .@. #
#     #
#######
Title: two

####
#@ #
#$ #
#  #
#. #
####
Title: tall
"""
EASY, HOPELESS, LARGE, TWO, TALL = parse_levels(LEVELS)
(DONE,) = parse_levels("#####\n#@ *#\n#####\nTitle: done\n")

# Nobody gets above the box on the right. The board is too large for the rule that would know; so the others are pushed
# for ever.
ENDLESS_TEXT = """
#############
#@        ###
#         # #
#  $ $ $  #$#
#         #.#
#  $ $ $    #
#         ###
#  ...... ###
#         ###
#############
Title: endless
"""
(ENDLESS,) = parse_levels(ENDLESS_TEXT)


def write_agent(path: Path, network: str = "board", *, policy: bool = False) -> Path:
    """Writes an agent file with random weights; a cnn is for boards of 7 x 7."""
    domain = SokobanConfig(generator=GeneratorConfig(height=7, width=7, num_boxes=1), max_steps=40)
    values = ValuesConfig(network, num_members=2, conv_layers=3, conv_channels=4, dense=4, policy=policy)
    config = RunConfig("sokoban", domain=domain, values=values, optimiser=OptimiserConfig("adam"))
    world = Sokoban(domain)
    ensemble = Ensemble(values, config.optimiser, world.observation, 0, num_actions=len(world.action_names))
    card = Card("none", 0, None, 0, 0.0, "none")
    agent_file.write(path, config, world.observation, card, halved(ensemble.weights()))
    return path
