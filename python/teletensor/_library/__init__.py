"""Custom operators: Python functions that are called through torch.ops. See teletensor.library."""
