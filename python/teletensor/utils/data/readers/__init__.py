"""Data sets that read files: .npy, .npz, safetensors, Parquet, and tar shards. Nothing here reads pickles."""

from ...._lazy import lazy_attributes

_NAMES = {
    "arrays": "ArrayDataset NpyDataset NpzDataset SafetensorsDataset",
    "parquet": "ParquetDataset",
    "webdataset": "WebDataset default_decoders",
}
__all__ = [name for names in _NAMES.values() for name in names.split()]
__getattr__, __dir__ = lazy_attributes(globals(), names=_NAMES)
