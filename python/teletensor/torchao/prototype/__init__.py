"""torchao.prototype: the names that other libraries import."""
