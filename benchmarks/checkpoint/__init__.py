"""Checkpoints in the engine, compared with the disk's own rate."""
