"""Passes over one set of operators."""
