"""Benchmarks of an engine behind a link with delay and limited rate."""
