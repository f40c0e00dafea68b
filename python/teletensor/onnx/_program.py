"""ONNXProgram: a converted model, its weights, and its execution by onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._C import Tensor
from .._functions import from_numpy
from .._lazy import set_module
from ..utils import _pytree as pytree
from ._dtypes import elem_type, has_numpy, tensor_bytes
from ._model import model_proto, onnx, weight_proto
from ._optimize import optimize
from .errors import OnnxExporterError

_LARGEST_FILE = 1_800_000_000  # bytes: a message has at most 2 GiB
_SMALLEST_EXTERNAL = 1024  # bytes of a tensor that is worth a place in the second file
_ALIGNMENT = 4096


def _session(model: str | bytes) -> Any:
    """A session of onnxruntime.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnxruntime
    except ImportError as e:
        raise ImportError("[ONNXProgram] running a model needs the package onnxruntime: pip install onnxruntime") from e
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class ONNXProgram:
    """An ONNX model that export() has made.

    Attributes:
        exported_program: what was converted; None after release of the example inputs.
    """

    def __init__(self, graph: Any, exported_program: Any, names: dict[str, str], opset: int) -> None:
        self._graph, self.exported_program, self._names, self._opset = graph, exported_program, names, opset
        self._skeleton: Any = None
        self._inference_session: Any = None
        self._initializer: Callable[[str | bytes], Any] = _session
        self._folder: Any = None

    def __repr__(self) -> str:
        proto = self._structure()
        lines = [f"ONNXProgram(opset={self._opset})", *(f"  input  {i.name}" for i in proto.graph.input)]
        lines += [f"  {n.op_type}({', '.join(n.input)}) -> {', '.join(n.output)}" for n in proto.graph.node]
        return "\n".join([*lines, *(f"  output {o.name}" for o in proto.graph.output)])

    # ---- The model

    def _structure(self) -> Any:
        """The model without its weights."""
        if self._skeleton is None:
            g = self._graph
            self._skeleton = model_proto(g.builder, g.inputs, g.outputs, self._names, list(g.infos.values()))
        return self._skeleton

    def _weights(self) -> dict[str, Tensor]:
        return {self._names.get(n, n): t for n, t in self._graph.weights.items()}

    @property
    def model_proto(self) -> Any:
        """The ModelProto, with all weights; a new object for each access."""
        made = onnx().ModelProto()
        made.CopyFrom(self._structure())
        made.graph.initializer.extend(weight_proto(n, t) for n, t in self._weights().items())
        return made

    @property
    def model(self) -> Any:
        """The ModelProto. PyTorch's property is an object of onnx_ir, which is not used here."""
        return self.model_proto

    def optimize(self) -> None:
        """Computes constants, shares equal nodes, and removes unused ones."""
        optimize(self._graph)
        self._skeleton = self._inference_session = None

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replaces weights by name.

        Raises:
            ValueError: a weight has other sizes or another dtype.
        """
        for name, tensor in state_dict.items():
            if name not in self._graph.weights:
                continue
            old = self._graph.weights[name]
            if tuple(old.shape) != tuple(tensor.shape) or old.dtype is not tensor.dtype:
                raise ValueError(
                    f"[apply_weights] expected {name}: {tuple(old.shape)}, {old.dtype}, got {tuple(tensor.shape)}, {tensor.dtype}"
                )
            self._graph.weights[name] = tensor
        self._inference_session = None

    def rename_axes(self, rename_mapping: Mapping[str, str]) -> None:
        """Gives dynamic sizes other names: {"s0": "batch"}."""
        for old, new in rename_mapping.items():
            self._names[f"dim {old}"] = new
        self._skeleton = self._inference_session = None

    # ---- Files

    def save(
        self, destination: str | os.PathLike, *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Writes the model.

        Args:
            destination: the path. Weights outside of the model are in the same folder, in a file of this name with ".data" behind it.
            include_initializers: whether weights are written; without them, they are inputs' names without values.
            keep_initializers_as_inputs: whether weights are inputs too, so that a run may replace them.
            external_data: whether weights are in a file of their own. By default only if the model would be too large for one file.

        Raises:
            OnnxExporterError: the model is too large for one file.
        """
        path = os.fspath(destination)
        weights = self._weights()
        size = sum(t.numel() * t.itemsize for t in weights.values())
        if external_data is None:
            external_data = include_initializers and size > _LARGEST_FILE
        if size > _LARGEST_FILE and include_initializers and not external_data:
            raise OnnxExporterError(
                f"[ONNXProgram.save] {size} bytes of weights exceed what one ONNX file may have; pass external_data=True"
            )
        model = onnx().ModelProto()
        model.CopyFrom(self._structure())
        if keep_initializers_as_inputs or not include_initializers:
            for name, tensor in weights.items():
                model.graph.input.append(
                    onnx().helper.make_tensor_value_info(name, elem_type(tensor.dtype), list(tensor.shape))
                )
        if include_initializers and external_data:
            with open(f"{path}.data", "wb") as file:
                self._write_external(file, model, weights, f"{os.path.basename(path)}.data")
        elif include_initializers:
            model.graph.initializer.extend(weight_proto(n, t) for n, t in weights.items())
        with open(path, "wb") as file:
            file.write(model.SerializeToString())

    @staticmethod
    def _write_external(file: Any, model: Any, weights: dict[str, Tensor], location: str) -> None:
        """Writes the bytes of one weight after the other."""
        package = onnx()
        for name, tensor in weights.items():
            made = weight_proto(name, tensor, with_data=False)
            data = tensor_bytes(tensor)
            if len(data) < _SMALLEST_EXTERNAL:
                made.raw_data = data
            else:
                if len(data) >= 1 << 20:
                    file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                made.data_location = package.TensorProto.EXTERNAL
                for key, value in (("location", location), ("offset", file.tell()), ("length", len(data))):
                    made.external_data.add(key=key, value=str(value))
                file.write(data)
            model.graph.initializer.append(made)

    # ---- Execution

    def initialize_inference_session(self, initializer: Callable[[str | bytes], Any] = _session) -> None:
        """Makes the session that calls use.

        Args:
            initializer: receives the model as bytes, or its path if it is large, and returns an onnxruntime.InferenceSession.
        """
        self._initializer = initializer
        if sum(t.numel() * t.itemsize for t in self._graph.weights.values()) > _LARGEST_FILE:
            import tempfile

            self._folder = tempfile.TemporaryDirectory(prefix="onnx_program_")
            path = os.path.join(self._folder.name, "model.onnx")
            self.save(path, external_data=True)
            self._inference_session = initializer(path)
        else:
            self._inference_session = initializer(self.model_proto.SerializeToString())

    def release(self) -> None:
        """Frees the session and its files."""
        self._inference_session = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Runs the model in onnxruntime with the arguments of the exported module; returns its results in a flat list."""
        if self._inference_session is None:
            self.initialize_inference_session(self._initializer)
        names = [self._names.get(v.name, v.name) for v in self._graph.inputs]
        found = self._inference_session.run(None, dict(zip(names, self._arrays(args, kwargs), strict=True)))
        return [from_numpy(np.array(v)) if isinstance(v, np.ndarray) else v for v in found]

    def _arrays(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        leaves = [v for v in _flat(self.exported_program, args, kwargs) if isinstance(v, Tensor)]
        if len(leaves) != len(self._graph.inputs):
            raise ValueError(f"[ONNXProgram] expected {len(self._graph.inputs)} tensors, got {len(leaves)}")
        for v in leaves:
            if not has_numpy(v.dtype):
                raise TypeError(
                    f"[ONNXProgram] an input of {v.dtype}, which NumPy and onnxruntime's Python functions lack"
                )
        return [v.detach().resolve_conj().cpu().contiguous().numpy() for v in leaves]

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Runs the model in the evaluator of the package onnx."""
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(self.model_proto)
        names = [self._names.get(v.name, v.name) for v in self._graph.inputs]
        found = evaluator.run(None, dict(zip(names, self._arrays(args, kwargs), strict=True)))
        return [from_numpy(np.array(v)) for v in found]

    def compute_values(
        self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Sequence[Tensor]:
        """Runs the model and returns values within it, by name.

        Raises:
            ValueError: there is no such value.
        """
        proto = self.model_proto
        known = {n for node in proto.graph.node for n in node.output} | {i.name for i in proto.graph.input}
        known |= {i.name for i in proto.graph.initializer}
        if missing := [n for n in value_names if n not in known]:
            raise ValueError(f"[compute_values] the model has no values {missing}")
        del proto.graph.output[:]
        proto.graph.output.extend(onnx().ValueInfoProto(name=n) for n in value_names)
        inferred = onnx().shape_inference.infer_shapes(proto)
        types = {v.name: v for v in (*inferred.graph.value_info, *proto.graph.input)}
        del proto.graph.output[:]
        proto.graph.output.extend(types.get(n, onnx().ValueInfoProto(name=n)) for n in value_names)
        session = self._initializer(proto.SerializeToString())
        arrays = self._arrays(tuple(args), dict(kwargs or {}))
        names = [self._names.get(v.name, v.name) for v in self._graph.inputs]
        return [from_numpy(np.array(v)) for v in session.run(list(value_names), dict(zip(names, arrays)))]


def _flat(program: Any, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """The leaves of arguments in the order of the program's inputs."""
    signature = program.module_call_graph[0].signature if program is not None else None
    if signature is not None and kwargs:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec == signature.in_spec:
            return leaves
        order = signature.in_spec.child(1).context or []
        kwargs = {k: kwargs[k] for k in [*(k for k in order if k in kwargs), *(k for k in kwargs if k not in order)]}
    return pytree.tree_leaves((args, kwargs))


set_module("teletensor.onnx", ONNXProgram)
