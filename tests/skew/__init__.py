"""Clients and engines of different versions: `make skew-test`, and the operators of version 0.1."""
