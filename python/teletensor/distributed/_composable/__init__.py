"""torch.distributed._composable: the former module of fully_shard."""
