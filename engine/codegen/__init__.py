"""Reads the operators' declarations and generates code, stubs and documentation."""
