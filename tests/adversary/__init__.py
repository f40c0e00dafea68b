"""A hostile client beside a victim that trains: see tests/adversary/__main__.py."""
