"""Access to rows in memory, and to rows that are read block by block."""
