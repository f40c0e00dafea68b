"""A script for ``teletensor launch``: prints when the first collective is complete."""

import time

import teletensor as torch
import teletensor.distributed as dist

dist.init_process_group()
x = torch.ones(4)
dist.all_reduce(x)
x[0].item()
print("finished at", time.time(), flush=True)
dist.destroy_process_group()
