"""The worlds: rules as batched pure functions on rows of bytes, and their presentation."""

from bathysphere.domains.base import Domain, DomainConfig
from bathysphere.domains.deep_sea import DeepSea, DeepSeaConfig
from bathysphere.domains.registry import domain_names, find_domain, make_domain, register_domain
from bathysphere.domains.sokoban import Sokoban, SokobanConfig
from bathysphere.domains.toy_montezuma import ToyMontezuma, ToyMontezumaConfig

__all__ = [
    "DeepSea",
    "DeepSeaConfig",
    "Domain",
    "DomainConfig",
    "Sokoban",
    "SokobanConfig",
    "ToyMontezuma",
    "ToyMontezumaConfig",
    "domain_names",
    "find_domain",
    "make_domain",
    "register_domain",
]
