"""torchao.testing.pt2e: the quantizer for mobile CPUs."""
