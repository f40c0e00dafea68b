"""Checkpoints that the engine reads and writes: files (`files`), and values that are not tensors (`tree`)."""
