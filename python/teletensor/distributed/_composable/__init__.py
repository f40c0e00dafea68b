"""torch.distributed._composable: the former place of fully_shard."""
