"""The legacy storage classes of GPUs: torch.cuda.FloatStorage and others."""

from ..storage import legacy_storages

globals().update(legacy_storages("cuda"))
