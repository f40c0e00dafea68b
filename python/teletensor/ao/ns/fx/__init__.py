"""torch.ao.ns.fx: measures of the difference of two values."""
