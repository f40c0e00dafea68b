"""OnnxModel: an ONNX model as a module, and load(), which makes it."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

import teletensor as torch

from ... import _C, nn
from ...compiler import TracedProgram, trace
from ...fx.experimental._recorded import RecordedTensor
from ...utils._python_dispatch import _disable_current_modes
from . import _types, _values
from ._package import onnx
from ._plan import Builder, Plan
from ._run import Run

MAX_MODEL = 2 << 30  # protobuf's limit for a message


class OnnxModel(nn.Module):
    """An ONNX model that is executed by the engine, node by node or as a Program.

    Calls take the inputs by position or by name (as keywords, or with `call(dict)`), and return the only output, or a
    tuple. Inputs are tensors, arrays or numbers; lists for sequences. An initializer is a parameter if it has floating-point
    numbers, else a buffer: `parameters()`, `state_dict()`, `to()` and gradients work as with other modules.

    Attributes:
        input_names: of the inputs that are not initializers.
        output_names: of the outputs.
        opsets: versions of the operator sets by domain.
        inputs, outputs: the declared (element type, sizes) by name; a size is an int, a name or None.
    """

    def __init__(self, model: Any, folder: str | None, device: Any, trainable: bool) -> None:
        super().__init__()
        self._device, self._trainable = torch.device(device), trainable
        self._repeated: dict[str, int] = {}
        self._uploaded: dict[str, tuple] = {}  # by key, the tensor and its version
        self._keys: dict[str, str] = {}  # attribute of each weight, by its name in the model
        builder = Builder(model, self, folder)
        self.opsets = builder.opsets
        self._plan: Plan = builder.graph(model.graph, builder.opsets, {}, [], 0, "")
        if builder.missing:
            raise NotImplementedError(
                f"[onnx.load] operators that are not implemented: {', '.join(sorted(builder.missing))}"
            )
        constant = {*self._plan.constants, *self._plan.weights}
        self.input_names = [n for n in self._plan.inputs if n not in constant]
        self.output_names = list(self._plan.outputs)
        self.inputs = {i.name: _declared(i.type) for i in model.graph.input if i.name not in constant}
        self._replaceable = {i.name: _declared(i.type) for i in model.graph.input if i.name in constant}
        self.outputs = {o.name: _declared(o.type) for o in model.graph.output}
        self.graph_name = model.graph.name

    def add(self, name: str, array: np.ndarray) -> str:
        """Uploads a weight, and returns its key."""
        first = key = re.sub(r"[^0-9A-Za-z_]", "_", name) or "_"
        while hasattr(self, key):  # names that differ in other characters only
            self._repeated[first] = self._repeated.get(first, 0) + 1
            key = f"{first}_{self._repeated[first]}"
        tensor = _values.to_engine(array, self._device)
        if tensor.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            self.register_parameter(key, nn.Parameter(tensor, requires_grad=self._trainable))
        else:
            self.register_buffer(key, tensor)
        self._keys[name] = key
        self._uploaded[key] = (tensor := self.weight(key), tensor._version)
        return key

    def host(self, key: str, constant: Any) -> Any:
        """The host copy of a weight, for operators that need its values: `constant`, the model's initializer, unless that has changed.

        None: the weight has changed, or a gradient is wanted, so that the tensor in the engine is used. torch.export's placeholders
        have no values: the program contains those of the weight that they stand for, also changed ones.
        """
        tensor, (first, version) = self.weight(key), self._uploaded[key]
        if tensor.requires_grad:
            return None
        state = tensor.read_state() if isinstance(tensor, RecordedTensor) else tensor
        if state is first and state._version == version and state.dtype == first.dtype:
            return constant
        if state is None or state is tensor or state.dtype != first.dtype or not isinstance(constant, np.ndarray):
            return None
        with _disable_current_modes():
            return _values.array(state)

    def weight(self, key: str) -> torch.Tensor:
        """The weight of a key."""
        found = self._parameters.get(key)
        return self._buffers[key] if found is None else found

    def weight_names(self) -> dict[str, str]:
        """The attribute of each weight in the engine, by the initializer's name in the model."""
        return dict(self._keys)

    def dtype_of(self, name: str) -> torch.dtype:
        """The dtype of an input in the engine."""
        return _types.dtype_of(self.inputs[name][0])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        found = self.execute(*args, **kwargs)
        if _C.is_tracing():  # outputs of a Program cannot share memory
            found = [v.clone() if isinstance(v, torch.Tensor) and v._base is not None else v for v in found]
        results = tuple(self._result(v) for v in found)
        return results[0] if len(results) == 1 else results

    def execute(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The values of the outputs as operators compute them: host values too, as arrays. For backends."""
        given = self._given(args, kwargs)
        device = next((v.device for v in given.values() if isinstance(v, torch.Tensor)), self._device)
        return Run(self._plan, self, device)(given)

    def program(self, *args: Any, **kwargs: Any) -> TracedProgram:
        """The model as a Program for arguments such as these. Sizes stay symbolic: see torch.compiler.trace."""
        return trace(self, *args, **kwargs)

    def _given(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) == 1 and isinstance(args[0], dict) and not kwargs:
            args, kwargs = (), args[0]
        if len(args) > len(self.input_names):
            raise TypeError(
                f"[OnnxModel] expected at most {len(self.input_names)} inputs {self.input_names}, got {len(args)}"
            )
        given = dict(zip(self.input_names, args))
        for name, value in kwargs.items():
            name = (
                name
                if name in self._plan.inputs
                else next((n for n in self._plan.inputs if _identifier(n) == name), name)
            )
            if name not in self._plan.inputs or name in given:
                raise TypeError(f"[OnnxModel] expected inputs of the names {self.input_names}, got {name!r}")
            given[name] = value
        missing = [n for n in self.input_names if n not in given and not self._is_optional(n)]
        if missing:
            raise TypeError(f"[OnnxModel] expected the inputs {self.input_names}; missing: {missing}")
        return {name: self._input(name, given.get(name)) for name in dict.fromkeys([*self.input_names, *given])}

    def _is_optional(self, name: str) -> bool:
        return self.inputs.get(name, (0, None))[0] is None

    def _input(self, name: str, value: Any) -> Any:
        """An argument as a value of the graph, checked against the declaration."""
        if (
            value is None
            or isinstance(value, (list, tuple, dict))
            and not isinstance(value, (_values.Narrow, _values.Sizes))
        ):
            if isinstance(value, (list, tuple)):
                return [self._input("", v) for v in value]
            if value is None and not self._is_optional(name):
                raise TypeError(f"[OnnxModel] expected a tensor for the input {name!r}, got None")
            return value
        declared, dims = self.inputs.get(name) or self._replaceable.get(name, (0, None))
        if isinstance(value, (bool, int, float, np.generic)):
            value = np.asarray(value, dtype=_types.numpy_of(declared) if declared else None)
        if isinstance(value, np.ndarray):
            value = _values.from_array(value)
            if not _values.is_text(value):
                number = value.type if isinstance(value, _values.Narrow) else None
                value = _values.to_engine(_values.plain(value), self._device)
                value = _values.Narrow(value, number) if number else value
        elif not isinstance(value, (torch.Tensor, _values.Narrow)):
            raise TypeError(f"[OnnxModel] expected a tensor for the input {name!r}, got {type(value).__name__}")
        self._check(name, value, declared, dims)
        if declared in _types.NARROW and isinstance(value, torch.Tensor):
            return _values.Narrow(value, declared)
        return value

    def _check(self, name: str, value: Any, declared: int | None, dims: Any) -> None:
        if not declared:
            return
        expected = torch.float if declared == _types.STRING else _types.dtype_of(declared)
        if _values.is_text(value) != (declared == _types.STRING) or (
            declared != _types.STRING and _values.plain(value).dtype != expected
        ):
            raise TypeError(f"[OnnxModel] expected {expected} for the input {name!r}, got {_values.plain(value).dtype}")
        if dims is None:
            return
        shape = _values.shape_of(value)
        if len(shape) != len(dims) or any(isinstance(d, int) and d != n for d, n in zip(dims, shape)):
            raise ValueError(f"[OnnxModel] expected sizes {list(dims)} for the input {name!r}, got {list(shape)}")

    def _result(self, value: Any) -> Any:
        """What a caller gets: tensors of numbers in the engine, arrays of strings, lists."""
        value = _values.plain(value)
        if isinstance(value, list):
            return [self._result(v) for v in value]
        if isinstance(value, _values.Sizes) or isinstance(value, np.ndarray) and value.dtype != object:
            return _values.tensor(value, self._device)
        return value


def _identifier(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z_]", "_", name)


def _declared(proto: Any) -> tuple[int | None, tuple | None]:
    """The element type and sizes of a declared type. 0 if it is not a tensor, None if the value is optional."""
    if proto.HasField("optional_type"):
        return None, None
    if not proto.HasField("tensor_type"):
        return 0, None
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return tensor.elem_type, None
    dims = tuple(
        (d.dim_value if d.dim_value >= 0 else None)
        if d.HasField("dim_value")
        else d.dim_param
        if d.HasField("dim_param")
        else None
        for d in tensor.shape.dim
    )
    return tensor.elem_type, dims


def load(model: Any, *, device: Any = "cpu", trainable: bool = False) -> OnnxModel:
    """Loads an ONNX model.

    Args:
        model: a path, the bytes of a model, or an onnx.ModelProto. Only a path can have data in other files, which must be in
            its folder.
        device: where the weights are and where the model runs.
        trainable: whether the initializers of floating-point numbers require gradients.

    Raises:
        ImportError: PyPI's package `onnx` is missing.
        ValueError: it is no ONNX model, or an invalid one.
        NotImplementedError: the model has operators that are not implemented.
        OSError: the file cannot be read.
    """
    package = onnx()
    folder = None
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        folder = os.path.dirname(os.path.abspath(path))
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError(f"[onnx.load] expected a file, got {path!r}")
        if os.path.getsize(path) > MAX_MODEL:
            raise ValueError(f"[onnx.load] expected a file of at most {MAX_MODEL} bytes, got {os.path.getsize(path)}")
        with open(path, "rb") as file:
            model = file.read()
    if isinstance(model, (bytes, bytearray, memoryview)):
        from google.protobuf.message import DecodeError

        try:
            model = package.ModelProto.FromString(bytes(model))
        except DecodeError as error:
            raise ValueError(f"[onnx.load] expected an ONNX model, got something else: {error}") from error
    if not isinstance(model, package.ModelProto):
        raise TypeError(f"[onnx.load] expected a path, bytes or a ModelProto, got {type(model).__name__}")
    if not model.HasField("graph"):
        raise ValueError("[onnx.load] expected an ONNX model, got a message without a graph")
    return OnnxModel(model, folder, device, trainable)
