"""The papers behind the solvers, and their methods in NumPy."""
