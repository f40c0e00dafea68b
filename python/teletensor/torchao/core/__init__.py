"""torchao.core: the base class of configurations."""
