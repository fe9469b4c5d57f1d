"""Deep-sea: rules, pictures, and what the ensemble does not know, cell by cell."""

from bathysphere.domains.deep_sea.domain import DeepSea, DeepSeaConfig

__all__ = ["DeepSea", "DeepSeaConfig"]
