"""ExecutionTraceObserver: writes the operators of this thread as an execution trace in PyTorch's (Chakra's) JSON."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import time
import weakref
from typing import Any

from .. import _C
from .._C import Tensor
from .._lazy import set_module
from ..utils._python_dispatch import TorchDispatchMode

_SCHEMA = "1.1.1-chakra.0.0.4"
_THREAD = 2  # the id of the thread's node, of which operators are children


class _Recorder(TorchDispatchMode):
    """Receives the operators and appends a node for each."""

    runs_backward = True  # the operators of a backward pass run in the engine, and are not recorded

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[dict[str, Any]] = []
        self._ids = itertools.count(3)
        # By identity: a reference, which shows whether another tensor has the identity now, and the ids of tensor and storage.
        self._tensors: dict[int, tuple[weakref.ref, int, int]] = {}
        self._storages: dict[int, int] = {}
        self._calls = itertools.count(1)

    def _of_tensor(self, tensor: Tensor) -> list[Any]:
        found = self._tensors.get(id(tensor))
        if found is None or found[0]() is not tensor:
            memory = id(tensor) if _C._is_wrapper(tensor) else tensor.untyped_storage().data_ptr()
            storage = self._storages.setdefault(memory, 0) or next(self._ids)
            self._storages[memory] = storage
            found = self._tensors[id(tensor)] = (weakref.ref(tensor), next(self._ids), storage)
        _, own, storage_id = found
        return [own, storage_id, tensor.storage_offset(), tensor.numel(), tensor.dtype.itemsize, str(tensor.device)]

    def _described(self, value: Any) -> tuple[Any, Any, str, Any]:
        """A value, its shape, its type's name and its strides, as the trace has them."""
        if isinstance(value, Tensor):
            dtype = _TYPE_NAMES.get(str(value.dtype).removeprefix("torch."), str(value.dtype).removeprefix("torch."))
            return self._of_tensor(value), list(value.shape), f"Tensor({dtype})", list(value.stride())
        if isinstance(value, (list, tuple)):
            parts = [self._described(v) for v in value]
            return [p[0] for p in parts], [p[1] for p in parts], f"GenericList[{','.join(p[2] for p in parts)}]", [p[3] for p in parts]
        if value is None:
            return "<None>", [], "None", []
        for kind, name in ((bool, "Bool"), (int, "Int"), (float, "Double"), (str, "String"), (_C.device, "Device")):
            if isinstance(value, kind):
                return str(value) if kind is _C.device else value, [], name, []
        return str(value), [], type(value).__name__, []

    def _columns(self, values: Any) -> dict[str, list]:
        rows = [self._described(v) for v in values]
        return {name: [row[i] for row in rows] for i, name in enumerate(("values", "shapes", "types", "strides"))}

    def add(self, name: str, inputs: Any, outputs: Any, schema: str, parent: int, own: int | None = None) -> None:
        """Appends a node."""
        given, made = self._columns(inputs), self._columns(outputs)
        number = 0 if own is not None else next(self._calls)
        attributes = (
            ("rf_id", "uint64", number), ("fw_parent", "uint64", 0), ("seq_id", "int64", -1), ("scope", "uint64", 7 if own else 0),
            ("tid", "uint64", 1), ("fw_tid", "uint64", 0), ("op_schema", "string", schema), ("kernel_backend", "string", ""),
            ("kernel_file", "string", ""), ("tensor_range", "string", ""),
        )  # fmt: skip
        self.nodes.append({
            "id": next(self._ids) if own is None else own, "name": name, "ctrl_deps": parent, "inputs": given, "outputs": made,
            "attrs": [{"name": n, "type": kind, "value": value} for n, kind, value in attributes],
        })  # fmt: skip

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        outputs = result if isinstance(result, (tuple, list)) else [] if result is None else [result]
        schema = getattr(func, "_schema", None)
        name = getattr(schema, "name", "") or str(func)
        self.add(name, [*args, *(kwargs or {}).values()], outputs, str(schema or ""), _THREAD)
        return result


_TYPE_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int",
    "int16": "short int", "int8": "signed char", "uint8": "unsigned char", "bool": "bool", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


class ExecutionTraceObserver:
    """Records the operators between start() and stop(), and writes them to a file of JSON at stop().

    It sees the operators that the starting thread calls: their names, arguments, shapes, strides and the tensors' identities. Those
    of backward passes and of Programs run in the engine and are not seen. Each operator takes as long as in a TorchDispatchMode.
    Modes that were entered after start() must be left before stop().
    """

    def __init__(self) -> None:
        self.output_file_path: str | None = None
        self._recorder: _Recorder | None = None
        self._started = 0.0

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """An observer with a temporary file if the environment has ENABLE_PYTORCH_EXECUTION_TRACE=1; None otherwise."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") != "1":
            return None
        with tempfile.NamedTemporaryFile("w+t", suffix=".et.json", delete=False) as file:
            return ExecutionTraceObserver().register_callback(file.name)

    @property
    def is_registered(self) -> bool:
        """Whether a file is set."""
        return self.output_file_path is not None

    def is_running(self) -> bool:
        """Whether operators are being recorded."""
        return self._recorder is not None

    def register_callback(self, output_file_path: str) -> ExecutionTraceObserver:
        """Sets the file, which stop() replaces."""
        self.output_file_path = os.fspath(output_file_path)
        return self

    def get_output_file_path(self) -> str | None:
        """The file, or None."""
        return self.output_file_path

    def unregister_callback(self) -> None:
        """Stops, and forgets the file."""
        self.stop()
        self.output_file_path = None

    cleanup = unregister_callback

    def start(self) -> None:
        """Begins to record. Has no effect without a file, or if it records already."""
        if self.is_registered and self._recorder is None:
            self._recorder, self._started = _Recorder(), time.monotonic()
            self._recorder.add("[pytorch|profiler|execution_trace|thread]", (), (), "", 1, own=_THREAD)
            self._recorder.__enter__()

    def stop(self) -> None:
        """Ends the recording and writes the file. Has no effect if nothing is recorded."""
        if self._recorder is None:
            return
        recorder, self._recorder = self._recorder, None
        recorder.__exit__(None, None, None)
        trace = {
            "schema": _SCHEMA, "pid": os.getpid(), "time": time.strftime("%Y-%m-%d %H:%M:%S"),
            "start_ts": int(self._started * 1e6), "nodes": recorder.nodes, "finish_ts": int(time.monotonic() * 1e6),
        }  # fmt: skip
        assert self.output_file_path is not None
        with open(self.output_file_path, "w") as file:
            json.dump(trace, file, indent=1)


set_module("teletensor.profiler.profiler", ExecutionTraceObserver)
