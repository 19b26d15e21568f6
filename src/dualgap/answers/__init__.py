"""Proven answers about the exact optimum, from an approximate model and its gap."""

from __future__ import annotations

from .ball import Decided

__all__ = ["Decided"]
