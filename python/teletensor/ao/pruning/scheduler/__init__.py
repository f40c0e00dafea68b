"""torch.ao.pruning.scheduler: schedules of sparsity."""
