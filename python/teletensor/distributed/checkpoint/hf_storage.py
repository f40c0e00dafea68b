"""Checkpoints in Hugging Face's layout: safetensors files, with an index if there are several."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

from ... import _C
from ..._checkpoint import files
from ..._grad_mode import no_grad
from ..._lazy import set_module
from ...checkpoint import _INDEX as INDEX
from ...checkpoint import _Source
from ._index import StoredBox
from .filesystem import FileSystemReader, FileSystemWriter, _Reads, _Writes
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter", "QuantizedHuggingFaceStorageReader"]


class HuggingFaceStorageReader(FileSystemReader):
    """Reads a folder with ``model.safetensors``, or with several files and ``model.safetensors.index.json``. Each rank reads
    only its parts.

    Args:
        thread_count: has no effect: one thread of the engine reads the files.
    """

    def __init__(self, path: str | os.PathLike, thread_count: int = 1) -> None:
        super().__init__(path)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        contents: dict = {}
        storage: dict = {}
        for name, (file, dtype, shape) in _Source(self.path).tensors.items():
            size, origin = _C.Size(shape), _C.Size([0] * len(shape))
            chunk = ChunkStorageMetadata(origin, size)
            contents[name] = TensorStorageMetadata(TensorProperties(dtype), size, [chunk])
            storage[MetadataIndex(name, origin)] = StoredBox(file.rpartition("/")[2], name)
        return Metadata(contents, None, storage, StorageMeta(checkpoint_id=self.path))


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes whole tensors as ``model-00001-of-0000N.safetensors``, and then ``model.safetensors.index.json``.

    Each file is replaced atomically; other files of the folder are kept.

    Args:
        path: the folder, on the engines' hosts.
        fqn_to_index_mapping: the number of each tensor's file, from 1 on; by default all are written to one file.
        thread_count, thread_count_consolidation: have no effect: one thread of the engine writes the files.

    Raises:
        NotImplementedError: ``save_distributed=True``, with which ranks write parts of tensors. teletensor.checkpoint.save writes
            the whole tensors of a group's DTensors.
    """

    def __init__(
        self, path: str, fqn_to_index_mapping: dict[str, int] | None = None, thread_count: int = 1, save_distributed: bool = False,
        enable_consolidation: bool = False, thread_count_consolidation: int = 1,
    ) -> None:  # fmt: skip
        if save_distributed or enable_consolidation:
            raise NotImplementedError(
                "[HuggingFaceStorageWriter] save_distributed and enable_consolidation are not supported: use teletensor.checkpoint.save"
            )
        super().__init__(path)
        self.fqn_to_index_mapping = fqn_to_index_mapping

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        for item in plan.items:
            if item.type is WriteItemType.BYTE_IO:
                raise TypeError(f"[HuggingFaceStorageWriter] expected only strided tensors, got the value '{item.index.fqn}'")
            if item.tensor_data.chunk.sizes != item.tensor_data.size:
                raise NotImplementedError(f"[HuggingFaceStorageWriter] expected whole tensors, got a part of '{item.index.fqn}'")
            if self.fqn_to_index_mapping is not None and item.index.fqn not in self.fqn_to_index_mapping:
                raise KeyError(item.index.fqn)
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        if sum(bool(plan.items) for plan in plans) > 1:
            raise NotImplementedError("[HuggingFaceStorageWriter] expected all tensors on one rank: use teletensor.checkpoint.save")
        return plans

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> _Writes:
        numbers = self.fqn_to_index_mapping or {}
        count = max(numbers.values(), default=1)
        by_file: dict[str, dict[str, _C.Tensor]] = {}
        results: list[WriteResult] = []
        for item in plan.items:
            file = f"model-{numbers.get(item.index.fqn, 1):05}-of-{count:05}.safetensors"
            tensor = planner.resolve_data(item)
            by_file.setdefault(file, {})[item.index.fqn] = tensor
            results.append(WriteResult(item.index, files.byte_size(tensor), [file, item.index.fqn]))
        writes = [
            files.write_tensors(files.join(self.path, file), tensors, {"format": "pt"}, self.in_background)
            for file, tensors in by_file.items()
        ]
        return _Writes(writes, results)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        written = [result for of_rank in results for result in of_rank]
        index = {
            "metadata": {"total_size": sum(result.size_in_bytes for result in written)},
            "weight_map": {result.index.fqn: result.storage_data[0] for result in written},
        }
        files.write_bytes(files.join(self.path, INDEX), json.dumps(index, indent=2).encode()).item()


# The numbers of four bits: a sign, two bits of the exponent, one of the fraction.
_FOUR_BITS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)


class QuantizedHuggingFaceStorageReader(HuggingFaceStorageReader):
    """Reads a folder with quantized weights, which the engine dequantizes; each rank reads only its parts.

    Weights ``NAME.weight`` of 8-bit floats have a factor per block in ``NAME.weight_scale_inv``; weights ``NAME_blocks`` of 4-bit
    floats (MXFP4), two per byte, have an exponent per group in ``NAME_scales``. Other tensors are read as they are.

    Args:
        thread_count: has no effect: one thread of the engine reads the files.
        target_dtype: the floating-point dtype in which weights are dequantized.
        block_size: the number of rows and of columns of a block.

    Raises:
        ValueError: another target_dtype or block_size, or, when metadata is read, scales whose sizes or dtypes do not fit the weight.
    """

    def __init__(self, path: str, thread_count: int = 1, target_dtype: _C.dtype = _C.float32, block_size: int = 128) -> None:
        super().__init__(path, thread_count)
        if not isinstance(block_size, int) or isinstance(block_size, bool) or not 1 <= block_size < 2**63:
            raise ValueError(f"[QuantizedHuggingFaceStorageReader] expected a positive block_size, got {block_size!r}")
        if not isinstance(target_dtype, _C.dtype) or not target_dtype.is_floating_point:
            raise ValueError(f"[QuantizedHuggingFaceStorageReader] expected a floating-point target_dtype, got {target_dtype!r}")
        self.target_dtype, self.block_size = target_dtype, block_size
        self._scales: dict[str, str] = {}  # by weight
        self._stored: dict[str, TensorStorageMetadata] = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        metadata = super().read_metadata(*args, **kwargs)
        self._stored = dict(metadata.state_dict_metadata)
        for name in self._stored:
            for end, scale in ((".weight", ".weight_scale_inv"), ("_blocks", "_scales")):
                other = name.removesuffix(end) + scale
                if name.endswith(end) and other in self._stored:
                    self._scales[name] = other
                    metadata.state_dict_metadata[name] = self._dequantized(name, other)
        return metadata

    def _dequantized(self, name: str, scale: str) -> TensorStorageMetadata:
        """The metadata of a weight after it was dequantized. Raises ValueError unless the scales fit it."""
        size, factors = self._stored[name].size, self._stored[scale].size
        dtype, of_scale = self._stored[name].properties.dtype, self._stored[scale].properties.dtype
        is_blocks = name.endswith(".weight")
        if not (of_scale.is_floating_point and not dtype.is_complex if is_blocks else dtype is of_scale is _C.uint8):
            raise ValueError(f"[QuantizedHuggingFaceStorageReader] '{scale}' of {of_scale} does not fit '{name}' of {dtype}")
        if is_blocks:
            expected = [-(-n // self.block_size) for n in size]
            fits = len(size) == 2 and list(factors) == expected
        else:
            fits = len(size) >= 2 and list(factors) == list(size[:-1])
            size = _C.Size([*size[:-2], size[-2] * size[-1] * 2]) if fits else size
        if not fits:
            raise ValueError(f"[QuantizedHuggingFaceStorageReader] '{scale}' of size {list(factors)} does not fit '{name}' of {list(size)}")
        return TensorStorageMetadata(TensorProperties(self.target_dtype), size, [ChunkStorageMetadata(_C.Size([0] * len(size)), size)])

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> _Reads:
        quantized, plain = [], []
        for item in plan.items:
            (quantized if item.storage_index.fqn in self._scales else plain).append(item)
        reads = super().read_data(replace(plan, items=plain), planner)
        for item in quantized:
            target = planner.resolve_tensor(item)
            weight = item.storage_index.fqn
            read = self._blocks if weight.endswith(".weight") else self._groups
            with no_grad():
                target.detach().copy_(read(item, self._scales[weight], target.device, reads.statuses))
            planner.commit_tensor(item, target)
        return reads

    def _box(self, name: str, offsets: list[int], sizes: list[int], device: _C.device, statuses: list) -> _C.Tensor:
        """A part of a stored tensor."""
        stored = self._storage[MetadataIndex(name, _C.Size([0] * len(self._stored[name].size)))]
        box = _C.torch.empty(sizes, dtype=self._stored[name].properties.dtype, device=device)
        statuses += files.read_boxes(files.join(self.path, stored.file), [(box, stored.tensor, offsets)])
        return box

    def _blocks(self, item: ReadItem, scale: str, device: _C.device, statuses: list) -> _C.Tensor:
        offsets, sizes = list(item.storage_offsets), list(item.lengths)
        weight = self._box(item.storage_index.fqn, offsets, sizes, device, statuses).to(_C.float32)
        first = [at // self.block_size for at in offsets]
        counts = [(at + n - 1) // self.block_size + 1 - f if n else 0 for at, n, f in zip(offsets, sizes, first, strict=True)]
        factors = self._box(scale, first, counts, device, statuses).to(_C.float32)
        for dim, (at, n, f) in enumerate(zip(offsets, sizes, first, strict=True)):
            rows = _C.torch.arange(at, at + n, device=device) // self.block_size - f
            factors = factors.index_select(dim, rows)
        return (weight * factors).to(self.target_dtype)

    def _groups(self, item: ReadItem, scale: str, device: _C.device, statuses: list) -> _C.Tensor:
        *outer, at = item.storage_offsets
        *sizes, n = item.lengths
        width = 2 * self._stored[item.storage_index.fqn].size[-1]
        first = at // width
        count = (at + n - 1) // width + 1 - first if n else 0
        packed = self._box(item.storage_index.fqn, [*outer, first, 0], [*sizes, count, width // 2], device, statuses).to(_C.int64)
        exponents = self._box(scale, [*outer, first], [*sizes, count], device, statuses).to(_C.float32) - 127
        halves = _C.torch.stack([packed & 15, packed >> 4], -1).reshape(*sizes, count, width)
        numbers = _C.tensor(_FOUR_BITS, device=device)[halves] * exponents.exp2().unsqueeze(-1)
        return numbers.reshape(*sizes, count * width).narrow(-1, at - first * width, n).to(self.target_dtype)


set_module("teletensor.distributed.checkpoint.quantized_hf_storage", QuantizedHuggingFaceStorageReader)
