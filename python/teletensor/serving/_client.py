"""Calls of models that an engine serves, from a process that has neither their code nor their weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import _C, _connection
from .._C import Tensor

_DATATYPES = {
    "BOOL": _C.bool, "UINT8": _C.uint8, "UINT16": _C.uint16, "UINT32": _C.uint32, "UINT64": _C.uint64, "INT8": _C.int8,
    "INT16": _C.int16, "INT32": _C.int32, "INT64": _C.int64, "FP16": _C.float16, "BF16": _C.bfloat16, "FP32": _C.float32,
    "FP64": _C.float64,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DATATYPES.items()}
_NUMPY = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
}  # fmt: skip


def engine(address: str = "") -> _C.Inference:
    """The models of the engine at an address: by default that of this process's session, else TELETENSOR_ADDRESS."""
    connection = _connection._current
    given = _connection.environment
    if not address and connection is not None and connection.address:
        return _C.Inference(
            connection.address, given.get("TELETENSOR_TOKEN", ""), given.get("TELETENSOR_TLS_FINGERPRINT", ""),
            given.get("TELETENSOR_TLS_CA", ""), given.get("TELETENSOR_TLS_CERTIFICATE", ""), given.get("TELETENSOR_TLS_KEY", ""),
        )  # fmt: skip
    return _C.Inference(address)


def _bytes_of(tensor: Tensor) -> bytes:
    value = _C.PendingRead(tensor.detach())
    value.wait()
    return bytes(memoryview(value))


def _encoded(name: str, datatype: str, value: Any) -> tuple[str, str, list[int], bytes]:
    """A value as an input of the datatype that the model expects."""
    if datatype == "BYTES":
        return name, datatype, *_encoded_strings(name, value)
    if isinstance(value, Tensor):
        dtype = _DATATYPES.get(datatype)
        if value.dtype != dtype:
            raise TypeError(f"[models] expected a tensor of dtype {dtype} as {name!r}, got {value.dtype}")
        return name, datatype, list(value.shape), _bytes_of(value)
    import numpy as np

    if datatype not in _NUMPY:
        raise TypeError(f"[models] expected a tensor as {name!r}, because NumPy has no {datatype}")
    array = np.asarray(value)
    if array.dtype != np.dtype(_NUMPY[datatype]):
        if not isinstance(value, (bool, int, float, list, tuple)):
            raise TypeError(f"[models] expected an array of dtype {_NUMPY[datatype]} as {name!r}, got {array.dtype}")
        array = array.astype(_NUMPY[datatype])
    return name, datatype, list(array.shape), np.ascontiguousarray(array).tobytes()


def _encoded_strings(name: str, value: Any) -> tuple[list[int], bytes]:
    """Strings, or bytes, as the protocol has them: each after its length."""
    import numpy as np

    array = np.asarray(value) if isinstance(value, np.ndarray) else np.array(value, object)
    texts = [each.encode() if isinstance(each, str) else each for each in array.flat]
    if not all(isinstance(each, bytes) for each in texts):
        raise TypeError(f"[models] expected strings or bytes as {name!r}, which is BYTES")
    return list(array.shape), b"".join(len(each).to_bytes(4, "little") + each for each in texts)


def _decoded_strings(shape: list[int], data: bytes) -> Any:
    """An array of bytes objects."""
    import numpy as np

    texts, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        texts.append(data[at + 4 : end])
        at = end
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)


def _decoded(datatype: str, shape: list[int], data: bytes, as_tensor: bool) -> Any:
    if datatype == "BYTES":
        return _decoded_strings(shape, data)
    if as_tensor:
        return _C.from_bytes(data, _DATATYPES[datatype], shape, None)
    import numpy as np

    if datatype not in _NUMPY:
        raise TypeError(f"[models] expected tensors as inputs, because an output is {datatype}, which NumPy does not have")
    return np.frombuffer(data, _NUMPY[datatype]).reshape(shape).copy()


class ServedModel:
    """A model that an engine serves. Calls wait for its answer; requests of other clients may be in the same batch.

    Attributes:
        name, version: of the model; the version is "" for the newest one.
        inputs, outputs: dicts with name, datatype and shape.
    """

    def __init__(self, name: str, version: str = "", address: str = "", timeout: float = 60.0):
        self.name, self.version, self.timeout = name, version, timeout
        self._engine = engine(address)
        described = json.loads(self._engine.metadata(name, version))
        self.versions = list(described["versions"])
        self.inputs, self.outputs = described["inputs"], described["outputs"]
        for port in [*self.inputs, *self.outputs]:
            port["shape"] = [int(n) for n in port["shape"]]

    def __repr__(self) -> str:
        def show(ports: list[dict[str, Any]]) -> str:
            return ", ".join(f"{p['name']}: {p['datatype']}{p['shape']}" for p in ports)

        return f"ServedModel({self.name!r}, ({show(self.inputs)}) -> ({show(self.outputs)}))"

    def __call__(self, *args: Any, parameters: Mapping[str, Any] | None = None, **kwargs: Any) -> Any:
        """Runs the model.

        Args:
            args, kwargs: its inputs, in order or by name: tensors, arrays, or numbers and lists of them; for inputs of
                BYTES, strings or bytes and lists or arrays of them.
            parameters: of the request, such as ``sequence_id``, ``priority`` or ``timeout`` (microseconds).

        Returns:
            The output, or a dict of the outputs by name if there are several: tensors of this process's session if an
            input is a tensor, else arrays; outputs of BYTES are arrays of bytes objects.

        Raises:
            TypeError, ValueError: an input is missing, unknown, or has another dtype or other sizes than the model expects.
            RuntimeError: the model's queue is full, or its computation failed.
            ConnectionError: no answer within `timeout` seconds.
        """
        names = [port["name"] for port in self.inputs]
        if len(args) > len(names):
            raise TypeError(f"[models] expected at most {len(names)} inputs of {self.name!r}, got {len(args)}")
        given = dict(zip(names, args))
        for name, value in kwargs.items():
            if name not in names or name in given:
                raise TypeError(f"[models] expected each of the inputs {', '.join(names)} once, got {name!r}")
            given[name] = value
        if missing := [name for name in names if name not in given]:
            raise TypeError(f"[models] expected the input {missing[0]!r} of {self.name!r}")
        inputs = [_encoded(port["name"], port["datatype"], given[port["name"]]) for port in self.inputs]
        as_tensor = any(isinstance(value, Tensor) for value in given.values())
        found = self._engine.infer(self.name, self.version, inputs, [], dict(parameters or {}), self.timeout)
        results = {name: _decoded(datatype, shape, data, as_tensor) for name, datatype, shape, data in found}
        return next(iter(results.values())) if len(results) == 1 else results

    def statistics(self) -> list[dict[str, Any]]:
        """Counts and durations of the model's requests, by version."""
        return json.loads(self._engine.statistics(self.name, self.version))["model_stats"]

    def config(self) -> dict[str, Any]:
        """The model's configuration: batching, instances, inputs and outputs."""
        return json.loads(self._engine.config(self.name, self.version))["config"]


def models(name: str | None = None, version: str | int | None = None, *, address: str = "", timeout: float = 60.0) -> Any:
    """A model that an engine serves, or without a name, the list of all.

    Args:
        name: of the model.
        version: None: the newest one.
        address: of the engine, as for ``connect()``; by default that of this process's session, else TELETENSOR_ADDRESS.
        timeout: seconds that a call may take.

    Returns:
        A ServedModel; or dicts with name, version, state ("READY", "UNAVAILABLE", ...) and reason.

    Raises:
        ValueError: there is no such model.
        ConnectionError: the engine does not answer.
    """
    if name is None:
        if version is not None:
            raise ValueError("[models] expected a name for the version")
        return json.loads(engine(address).index())["models"]
    return ServedModel(name, "" if version is None else str(version), address, timeout)
