"""torchao.testing: the quantizer for mobile CPUs."""
