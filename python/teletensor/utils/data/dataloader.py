"""Provides the names of torch.utils.data.dataloader."""

from .loader import DataLoader, default_collate, get_worker_info

__all__ = ["DataLoader", "default_collate", "get_worker_info"]
