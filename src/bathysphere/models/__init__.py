"""Learned world models: the same `successors` as a domain, predicted by a network."""

from __future__ import annotations
