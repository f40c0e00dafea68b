"""Attacks the daemon with hostile clients while a victim trains on it: see tests/adversary/__main__.py."""
