"""torch.ao.pruning.sparsifier: masks of weights."""
