"""Modules and optimizers compared with values that PyTorch recorded; the whole comparison is `make module-db`."""
