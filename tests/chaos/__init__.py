"""Faults of machines and networks under a training run; see __main__.py."""
