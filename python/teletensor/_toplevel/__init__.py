"""Functions and classes of the module torch that are written in Python and imported at their first use."""
