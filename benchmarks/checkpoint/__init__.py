"""Checkpoints in the engine, beside the disk's own rate."""
