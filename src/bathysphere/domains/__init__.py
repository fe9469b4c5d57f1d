"""The worlds: rules as batched pure functions on rows of bytes, and their presentation."""

from __future__ import annotations

from bathysphere.domains.base import Domain
from bathysphere.domains.deep_sea import DeepSea, DeepSeaConfig
from bathysphere.domains.sokoban import Sokoban, SokobanConfig
from bathysphere.domains.toy_montezuma import ToyMontezuma, ToyMontezumaConfig

DomainConfig = DeepSeaConfig | ToyMontezumaConfig | SokobanConfig
CONFIGS: dict[str, type[DomainConfig]] = {
    DeepSea.name: DeepSeaConfig,
    ToyMontezuma.name: ToyMontezumaConfig,
    Sokoban.name: SokobanConfig,
}
DOMAIN_NAMES = tuple(CONFIGS)

__all__ = [
    "CONFIGS",
    "DOMAIN_NAMES",
    "DeepSea",
    "DeepSeaConfig",
    "Domain",
    "DomainConfig",
    "Sokoban",
    "SokobanConfig",
    "ToyMontezuma",
    "ToyMontezumaConfig",
    "make_domain",
]


def make_domain(config: DomainConfig) -> Domain:
    """Builds the domain a config describes."""
    match config:
        case DeepSeaConfig():
            return DeepSea(config)
        case ToyMontezumaConfig():
            return ToyMontezuma(config)
        case SokobanConfig():
            return Sokoban(config)
