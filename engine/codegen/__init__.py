"""Reads the operators' declarations and writes what is generated from them."""
