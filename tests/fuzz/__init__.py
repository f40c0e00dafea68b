"""Fuzzers: what they send is generated, and what they find is kept as an input that reproduces it."""
