"""Fuzzers. Their inputs are generated; each failing input is kept in the corpus."""
