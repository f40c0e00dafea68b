"""Attacks on operators with indices, offsets and packed formats, on custom operators, device libraries, Programs and models.

Each runs until its process is killed, as those of attacks.py, which has their list.
"""

from __future__ import annotations

import functools
import json
import random
import re
import threading
import time

import grpc

from tests.adversary.wire import ROOT, Declared, Peer, instruction, message, operators, signatures

BOOL, UINT8, INT8, INT32, INT64, FLOAT32, COMPLEX64, CPU = 0, 1, 2, 4, 5, 8, 10, 0
BOUNDARIES = [0, 1, -1, 2, 3, 5, 7, 64, 1 << 20, 1 << 31, 1 << 40, -(1 << 40), -(1 << 63), (1 << 63) - 1]
DTYPES = [BOOL, UINT8, INT8, INT32, INT64, FLOAT32, COMPLEX64]


DTYPE_NUMBERS = {name: number for number, name in enumerate((
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 uint16 uint32 uint64").split())}


def flat(values) -> tuple[list, list[int]]:
    """The elements of nested lists, and their sizes."""
    if not isinstance(values, list):
        return [values], []
    parts = [flat(value) for value in values]
    return [each for part in parts for each in part[0]], [len(values), *(parts[0][1] if parts else [])]


# Names of parameters that are indices, offsets or dimensions.
INDICES = re.compile(r"indices|crow|col|compressed|plain|row|offsets|lengths|position|group|meta|index|permutation")


class Guesser:
    """A session that calls operators with arguments of the declared types. Their sizes and values often agree: four rows, six
    entries, three columns.
    """

    def __init__(self, address: str, token: str, rng: random.Random, device: int = CPU):
        self.rng, self.device = rng, device
        self.peer = Peer(address, token)
        self.key = self.peer.hello(client="guesser").session_key
        self.frame = message("Frame")(sequence=1)
        self.next_name = 1
        self.tensors: dict[str, list[int]] = {"integers": [], "floats": []}

    def call(self, op: str | int, *args, count: int = 1) -> int:
        """Adds an instruction to the frame; returns the name of its first result."""
        name, self.next_name = self.next_name, self.next_name + 8
        instruction(self.frame, op, *args, result=name if count else 0, count=count)
        return name

    def row(self, *values: int, dtype: int = INT64) -> int:
        """A one-dimensional tensor."""
        cells = [self.call("full", [1], value, dtype, self.device) for value in values]
        return self.call("cat", ("hs", cells), 0)

    def make_tensors(self) -> None:
        """Creates integers that are valid offsets or indices, or nearly so, or anything, and floats."""
        rng = self.rng
        for _ in range(8):
            offsets = sorted([0, rng.randrange(7), rng.randrange(7), rng.randrange(7), 6])
            columns = [rng.randrange(4) for _ in range(6)]
            for values in (offsets, columns):
                for _ in range(rng.choice([0, 0, 1, 1, 2])):  # damaged
                    values[rng.randrange(len(values))] = rng.choice(BOUNDARIES)
            made = [self.row(*values, dtype=rng.choice([INT64, INT64, INT32])) for values in (offsets, columns)]
            made.append(self.call("reshape", ("h", self.row(*columns, *columns)), [2, 6]))
            made.append(self.call("full", rng.choice([[0], [4], [6], [2, 6], [4, 2]]), rng.choice(BOUNDARIES), INT64, self.device))
            self.tensors["integers"] += made
        for _ in range(16):
            size = rng.choice([[6], [6], [4, 3], [4, 4], [6, 3], [6, 2, 2], [2, 4, 2, 2], [1, 6, 2, 4], [4, 6], [0], [], [8, 64]])
            dtype = rng.choice([FLOAT32, FLOAT32, FLOAT32, rng.choice(DTYPES)])
            self.tensors["floats"].append(self.call("full", size, rng.choice([1.0, -2.0, 0.0]), dtype, self.device))

    def tensor(self, name: str = ""):
        """A handle of a tensor that fits the parameter's name, seldom one of nothing."""
        roll = self.rng.random()
        if roll < 0.001:
            return ("h", self.rng.choice([1 << 50, self.next_name + 1]))
        is_index = INDICES.search(name) is not None
        return ("h", self.rng.choice(self.tensors["integers" if is_index == (roll < 0.95) else "floats"]))

    def tensors_of(self, name: str):
        """Up to three handles."""
        return ("hs", [self.tensor(name)[1] for _ in range(self.rng.randrange(4))])

    def integer(self) -> int:
        """A small number, or a boundary value."""
        return self.rng.choice([4, 6, 2, self.rng.randrange(8), self.rng.choice(BOUNDARIES)])

    def argument(self, kind: str, name: str = ""):
        """An argument of a declared type, seldom of another one."""
        rng = self.rng
        if rng.random() < 0.002:
            kind = rng.choice(["Tensor", "int", "int[]", "str", "float", "None", "Tensor[]"])
        if kind in ("Tensor[]", "Tensor?[]", "Tensor(w)[]"):
            return self.tensors_of(name)
        if kind == "Tensor(w)":  # a copy, because a failed call leaves an error in its place
            return ("h", self.call("clone", self.tensor(name)))
        if kind.endswith("?") and rng.random() < 0.5:
            return None
        makers = {
            "Tensor": lambda: self.tensor(name), "int": self.integer, "float[]": lambda: [],
            "int[]": lambda: rng.choice([[4, 4], [4, 4], [4, 3], [4], [6, 3], [self.integer() for _ in range(rng.randrange(4))]]),
            "float": lambda: rng.choice([0.5, 1.0, 0.0, -1.0, 1e300, float("inf"), float("nan")]), "bool": lambda: rng.random() < 0.5,
            "str": lambda: rng.choice([b"sum", b"mean", b"amax", b"", rng.randbytes(9)]), "DType": lambda: rng.choice(DTYPES),
            "Scalar": lambda: rng.choice([0.5, self.integer()]), "Device": lambda: rng.choice([self.device, CPU]),
            "Operand": lambda: rng.choice([self.tensor(name), 2, 0.5]),
        }  # fmt: skip
        return makers.get(kind.rstrip("?"), lambda: None)()

    def guess(self, op: str | int, declared: Declared) -> None:
        """Calls an operator; its results may be arguments of later calls."""
        count = declared.results if declared.results >= 0 else self.rng.randrange(4)
        if self.rng.random() < 0.001:
            count = self.rng.randrange(20)
        made = self.call(op, *[self.argument(kind, name) for kind, name in declared.parameters], count=count)
        if count and self.rng.random() < 0.2:  # often an error, which the calls that use it pass on
            self.tensors[self.rng.choice(["integers", "floats", "floats"])].append(made + self.rng.randrange(count))

    def sample_tensor(self, declared, name: str, damaged: bool):
        """The tensor of a sample of the declarations: its sizes, or a mapping with its values or bounds."""
        if isinstance(declared, list):
            declared = {"size": declared}
        dtype = DTYPE_NUMBERS[declared.get("dtype", "float32")]
        if "values" not in declared:
            low, high = declared.get("int", [0, 2])
            return ("h", self.call("randint_from", low, max(high, low + 1), declared.get("size", []), dtype, self.device))
        values, size = flat(declared["values"])
        if damaged and values:
            values[self.rng.randrange(len(values))] = self.rng.choice(BOUNDARIES)
        if not values:
            return ("h", self.call("full", size, 0, dtype, self.device))
        return ("h", self.call("reshape", ("h", self.row(*values, dtype=dtype)), size))

    def sampled(self, op: str, declared: Declared, samples: list[dict]) -> None:
        """Calls an operator with one of its declaration's samples, of which an argument or an index was changed."""
        sample, args = self.rng.choice(samples), []
        changed = self.rng.choice([*declared.parameters, (None, None)])[1]
        for kind, name in declared.parameters:
            value = sample.get(name)
            if name == changed and self.rng.random() < 0.5 and not isinstance(value, dict):
                args.append(self.argument(kind, name))
            elif kind.startswith("Tensor") and isinstance(value, (list, dict)) and not kind.endswith("[]"):
                args.append(self.sample_tensor(value, name, name == changed))
            elif name not in sample or (kind.startswith("Tensor") and value is not None) or isinstance(value, dict):
                args.append(self.argument(kind, name))
            elif kind.rstrip("?") == "float":
                args.append(float(value) if value is not None else None)
            else:
                args.append(value.encode() if isinstance(value, str) else value)
        self.call(op, *args, count=max(declared.results, 0))

    def send(self) -> None:
        """Sends the frame with a read of some results, reads the replies until the read's or for at most three seconds, and
        leaves without closing the session.
        """
        frame, more = self.frame, threading.Event()
        for request in range(1, 4):
            frame.reads.add(request=request, handle=self.rng.randrange(1, self.next_name))

        def frames():
            yield frame
            more.wait(20)

        replies = self.peer.session(self.key, frames())
        patience = threading.Timer(self.rng.uniform(0.2, 3), replies.cancel)
        patience.start()
        try:
            for reply in replies:
                if reply.HasField("fault") or reply.reads:
                    break
        except grpc.RpcError:
            pass
        finally:
            patience.cancel()
            more.set()
            self.peer.close()


def _guess(address: str, token: str, rng: random.Random, calls: dict[str | int, Declared], device: int = CPU) -> None:
    names = list(calls)
    while True:
        try:
            guesser = Guesser(address, token, rng, device)
        except grpc.RpcError:
            time.sleep(0.1)
            continue
        guesser.make_tensors()
        for _ in range(rng.randrange(1, 100)):
            op = rng.choice(names)
            guesser.guess(op, calls[op])
        guesser.send()


@functools.cache
def _declared_in(*files: str) -> dict[str | int, Declared]:
    operators()
    from engine.codegen.declaration import load

    wanted = {op.name for op in load(ROOT / "engine/ops") if op.source.removesuffix(".yaml") in files}
    return {name: declared for name, declared in signatures().items() if name in wanted}


@functools.cache
def _samples_in(*files: str) -> dict[str | int, list[dict]]:
    """The samples of operators, and their examples of errors."""
    operators()
    from engine.codegen.declaration import load

    found = {}
    for op in load(ROOT / "engine/ops"):
        if op.source.removesuffix(".yaml") in files:
            made = [*op.entry.get("samples", []), *(each["args"] for each in op.entry.get("errors", []))]
            found[op.name] = [each for each in made if isinstance(each, dict)]
    return found


INDEXED = ("sparse", "nested", "quantization")


def hostile_indices(address: str, token: str, rng: random.Random) -> None:
    """Calls all operators of sparse, nested and quantized tensors with indices, offsets and packed weights of any values."""
    calls, samples = _declared_in(*INDEXED), _samples_in(*INDEXED)
    names = list(calls)
    while True:
        try:
            guesser = Guesser(address, token, rng)
        except grpc.RpcError:
            time.sleep(0.1)
            continue
        guesser.make_tensors()
        for _ in range(rng.randrange(1, 60)):
            op = rng.choice(names)
            if samples[op] and rng.random() < 0.9:
                guesser.sampled(op, calls[op], samples[op])
            else:
                guesser.guess(op, calls[op])
        guesser.send()


def custom_operators(address: str, token: str, rng: random.Random) -> None:
    """Calls the operators of the engine's libraries, and asks for the results' sizes, with any arguments."""
    import teletensor as torch
    from teletensor import _C

    torch.connect(address, token=token)
    calls: dict[str | int, Declared] = {number: Declared(schema) for number, _, schema, *_ in _C.custom_operators()}
    if not calls:
        raise SystemExit("the engine has no custom operators")
    calls["custom_operators"] = signatures()["custom_operators"]
    torch.disconnect()
    _guess(address, token, rng, calls)


PLUGIN_DEVICE = 3 << 8  # the first of the first type of devices (engine/schema/device.h)


def plugged_devices(address: str, token: str, rng: random.Random) -> None:
    """Calls operators on the devices of a device library, with tensors of any dtype, up to its memory, and leaves without
    waiting.
    """
    import teletensor as torch

    torch.connect(address, token=token)
    if torch.zeros(1, device="example").sum().item() != 0:
        raise SystemExit("the device computes something else")
    torch.disconnect()
    names = "add mul matmul sum relu full randint_from cumsum to_device to_dtype clone assign cat reshape transpose narrow"
    more = "as_strided exp where index_put sparse_coalesce"
    calls: dict[str | int, Declared] = {name: declared for name, declared in signatures().items() if name in f"{names} {more}".split()}
    _guess(address, token, rng, calls, PLUGIN_DEVICE + rng.randrange(2))


def mutated_programs(address: str, token: str, rng: random.Random) -> None:
    """Defines Programs with changed bytes, of valid and invalid calls, runs, explains and drops them, in any order."""
    valid = []
    for op, declared in _declared_in("sparse", "nested", "programs", "arithmetic", "creation").items():
        frame = message("Frame")()
        for name in (10, 20):
            args = [("h", rng.choice([1, 2])) if kind.startswith("Tensor") else rng.choice([0, 1, 2]) for kind, _ in declared.parameters]
            instruction(frame, op, *args, result=name, count=max(declared.results, 1))
        frame.reads.add(request=1, handle=10)
        valid.append(frame.SerializeToString())
    while True:
        try:
            guesser = Guesser(address, token, rng)
        except grpc.RpcError:
            time.sleep(0.1)
            continue
        guesser.make_tensors()
        for number in range(rng.randrange(1, 20)):
            body = bytearray(rng.choice(valid))
            for _ in range(rng.choice([0, 0, 1, 4])):
                body[rng.randrange(len(body))] = rng.randrange(256)
            definition = guesser.row(*body[:4000], dtype=UINT8)
            guesser.call("define_program", ("h", definition), number, rng.choice([2, 2, 0, 1, 5]), rng.choice([0, 0, 1]), False, count=0)
            for op in rng.choices(["run_program", "explain_program", "expand_program", "program_counters", "drop_program"], k=4):
                args = [] if op == "program_counters" else [rng.choice([number, number, number, 1 << 40, -1])]
                if op in ("run_program", "explain_program", "expand_program"):
                    written = rng.choice([("hs", []), ("hs", []), guesser.tensors_of("")])
                    args = [("hs", [guesser.tensor("")[1], guesser.tensor("index")[1]]), written, *args]
                guesser.call(op, *args, count=0 if op == "drop_program" else 1)
        guesser.send()


MODELS = "/teletensor.v1.Models/"
INFERENCE = "/inference.GRPCInferenceService/"


def _valid_model(address: str, token: str) -> bytes:
    """The description of a model without weights."""
    import teletensor as torch
    from teletensor.serving import _files

    torch.connect(address, token=token)
    traced = _files.entries_of(lambda x: (x * 2 + 1).relu(), None, True, example_inputs=torch.ones(2, 3))
    return _files.description_of(traced, None, None)


def published_models(address: str, token: str, rng: random.Random) -> None:
    """Publishes models with changed bytes, under few and many names, infers with shapes and contents that do not fit, and
    withdraws; calls the methods of operators too.
    """
    valid = _valid_model(address, token)
    peer = Peer(address, token)
    publish = peer.channel.unary_unary(MODELS + "Publish", lambda m: m.SerializeToString(), None)
    withdraw = peer.channel.unary_unary(MODELS + "Withdraw", lambda m: m.SerializeToString(), None)
    infer = peer.channel.unary_unary(INFERENCE + "ModelInfer", lambda b: b, None)
    raw = {name: peer.channel.unary_unary(INFERENCE + name, lambda b: b, None) for name in (
        "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryRegister", "ModelConfig", "ModelStatistics", "RepositoryIndex")}
    bearer = [("authorization", f"Bearer {token}")]
    names = ["good", *(f"m{rng.randrange(1 << 30)}" for _ in range(6)), "../up", "a" * 300, ""]
    configs = ["", "{}", "{", json.dumps({"max_batch_size": 1 << 40}), json.dumps({"instance_group": [{"count": 1 << 30}]}),
               "[" * 5000, json.dumps({"dynamic_batching": {"max_queue_delay_microseconds": 1 << 50}, "max_batch_size": 8})]
    calls = []
    while True:
        body = bytearray(valid)
        for _ in range(rng.choice([0, 0, 1, 3])):
            body[rng.randrange(len(body))] = rng.randrange(256)
        name = rng.choice(names)
        request = message("PublishModelRequest")(name=name, version=rng.choice([0, 0, 1, 7, (1 << 62)]), model=bytes(body),
                                                 weights=rng.choice(["", "none"]), config=rng.choice(configs))
        steps = [lambda: publish(request, metadata=bearer, timeout=20),
                 lambda: withdraw(message("WithdrawModelRequest")(name=name), metadata=bearer, timeout=20),
                 lambda: raw[rng.choice(list(raw))](_field(1, rng.choice([b"", name.encode(), b"\0"])), metadata=bearer, timeout=20)]
        try:
            rng.choices(steps, [2, 1, 1])[0]()
        except grpc.RpcError:
            pass
        for _ in range(20):
            calls.append(infer.future(_inference_request(rng.choice(names), rng), metadata=bearer, timeout=rng.choice([0.01, 1, 10])))
        for call in calls[:-200]:
            call.cancel()
        del calls[:-200]


def _varint(number: int) -> bytes:
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, value: bytes | int) -> bytes:
    """A protobuf field."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _inference_request(name: str, rng: random.Random) -> bytes:
    """A ModelInferRequest whose sizes, types and contents agree, nearly agree, or are random."""
    request = _field(1, name.encode())
    if rng.random() < 0.5:
        rows = rng.choice([1, 2, 5, 1000])
        tensor = _field(1, b"x") + _field(2, b"FP32") + _field(3, rows) + _field(3, rng.choice([3, 3, 3, 4]))
        return request + _field(5, tensor) + _field(7, rng.randbytes(rows * 12 + rng.choice([0, 0, 0, 1, -1])))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 500])):
        shape = rng.choice([[2, 3], [1, 3], [0, 3], [-1, 3], [1 << 40, 3], [1 << 62, 1 << 62], [2] * 200, []])
        tensor = _field(1, rng.choice([b"x", b"input0", b"args_0", rng.randbytes(3)]))
        tensor += _field(2, rng.choice([b"FP32", b"FP64", b"BYTES", b"INT8", b"?"]))
        tensor += b"".join(_field(3, size) for size in shape)
        if rng.random() < 0.2:  # a parameter: shared_memory_region
            tensor += _field(4, _field(1, b"shared_memory_region") + _field(2, _field(3, b"../../etc/passwd")))
        request += _field(5, tensor)
    for _ in range(rng.choice([0, 1, 1, 3])):
        request += _field(7, rng.randbytes(rng.choice([0, 3, 12, 24, 4000])))
    if rng.random() < 0.1:
        request = bytes(rng.randrange(256) if rng.random() < 0.05 else byte for byte in request)
    return request


SURFACES = (hostile_indices, custom_operators, plugged_devices, mutated_programs, published_models)
