"""Training: the loop, its checkpoints, paths of C, and streams of batches."""
