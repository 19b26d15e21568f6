"""Solvers of kernel problems, and the Nystroem approximation."""
