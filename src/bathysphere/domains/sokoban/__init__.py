"""Sokoban: rules, levels, the level generator, level files and pictures."""

from bathysphere.domains.sokoban.domain import Sokoban, SokobanConfig
from bathysphere.domains.sokoban.formats import parse_levels, read_levels, write_levels
from bathysphere.domains.sokoban.generator import GeneratorConfig, generate
from bathysphere.domains.sokoban.levels import Level
from bathysphere.domains.sokoban.rules import SHAPED_REWARDS, Rewards

__all__ = [
    "SHAPED_REWARDS",
    "GeneratorConfig",
    "Level",
    "Rewards",
    "Sokoban",
    "SokobanConfig",
    "generate",
    "parse_levels",
    "read_levels",
    "write_levels",
]
