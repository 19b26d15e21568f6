"""Optimisation problems and the proofs of their certificates.

`base.py` defines the contract between problems, solvers and the training loop. Each
kind of problem has its own file.
"""
