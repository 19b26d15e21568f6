"""Kernel functions, their values for the rows of X, and sums of kernel values."""
