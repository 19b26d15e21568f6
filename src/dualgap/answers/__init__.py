"""Proven answers about the exact optimum, from an approximate model and its gap."""
