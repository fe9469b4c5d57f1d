"""Toy Montezuma's Revenge: maps a person can edit, rules on rows of bytes, and pictures."""

from bathysphere.domains.toy_montezuma.domain import ToyMontezuma, ToyMontezumaConfig

__all__ = ["ToyMontezuma", "ToyMontezumaConfig"]
