"""Attacks on operators with indices, offsets and packed formats, on custom operators, device libraries, Programs and models.

Each runs until its process is killed, as those of attacks.py, which has their list.
"""

from __future__ import annotations

import functools
import json
import random
import threading
import time

import grpc

from tests.adversary.wire import ROOT, Peer, instruction, message, operators, parameter_types, signatures

BOOL, UINT8, INT8, INT32, INT64, FLOAT32, COMPLEX64, CPU = 0, 1, 2, 4, 5, 8, 10, 0
BOUNDARIES = [0, 1, -1, 2, 3, 5, 7, 64, 1 << 20, 1 << 31, 1 << 40, -(1 << 40), -(1 << 63), (1 << 63) - 1]
DTYPES = [BOOL, UINT8, INT8, INT32, INT64, FLOAT32, COMPLEX64]


class Guesser:
    """A session that calls operators with arguments of the declared types, which are valid by chance."""

    def __init__(self, address: str, token: str, rng: random.Random, device: int = CPU):
        self.rng, self.device = rng, device
        self.peer = Peer(address, token)
        self.key = self.peer.hello(client="guesser").session_key
        self.frame = message("Frame")(sequence=1)
        self.next_name = 1
        self.tensors: dict[str, list[int]] = {"integers": [], "floats": []}

    def call(self, op: str | int, *args, count: int = 0) -> int:
        """Adds an instruction to the frame; returns the name of its first result."""
        name, self.next_name = self.next_name, self.next_name + 8
        instruction(self.frame, op, *args, result=name, count=count)
        return name

    def make_tensors(self) -> None:
        """Creates integers, sorted and not, in and out of all ranges, and floats, of few sizes so that these often agree."""
        for _ in range(12):
            size = self.rng.choice([[0], [1], [4], [5], [6], [2, 4], [2, 6], [1, 4], [3, 5]])
            dtype = self.rng.choice([INT64, INT64, INT32, BOOL, UINT8])
            low = self.rng.choice([0, 0, 0, -2, -(1 << 40)])
            kind = self.rng.randrange(4)
            if kind == 0:
                name = self.call("full", size, self.rng.choice(BOUNDARIES), INT64, self.device)
            elif kind == 1:
                name = self.call("randint_from", low, self.rng.choice([3, 5, 7, 1 << 40]), size, dtype, self.device)
            elif kind == 2:
                name = self.call("arange", self.rng.choice([0, 1, 4, 5, 6, 7]), dtype, self.device)
            else:
                steps = self.call("randint_from", self.rng.choice([0, 0, -1]), 3, size, INT64, self.device)
                name = self.call("cumsum", ("h", steps), -1, None)
            self.tensors["integers"].append(name)
        for _ in range(12):
            size = self.rng.choice([[], [0], [4], [6], [4, 4], [4, 6], [6, 3], [2, 4, 2, 2], [6, 2, 2], [1, 6, 2, 4]])
            dtype = self.rng.choice([FLOAT32, FLOAT32, FLOAT32, self.rng.choice(DTYPES)])
            self.tensors["floats"].append(self.call("full", size, self.rng.choice([1.0, -2.0, 0.0]), dtype, self.device))

    def tensor(self):
        """A handle of a tensor, sometimes of a result that failed or of nothing."""
        roll = self.rng.random()
        if roll < 0.02:
            return ("h", self.rng.choice([1 << 50, self.next_name + 1]))
        return ("h", self.rng.choice(self.tensors["integers" if roll < 0.5 else "floats"]))

    def integer(self) -> int:
        """A small number, or a boundary value."""
        return self.rng.choice([self.rng.randrange(8), self.rng.choice(BOUNDARIES)])

    def list_of_tensors(self):
        """Up to three handles."""
        return ("hs", [self.tensor()[1] for _ in range(self.rng.randrange(4))])

    def argument(self, kind: str):
        """An argument of a declared type, seldom of another one."""
        rng = self.rng
        if rng.random() < 0.01:
            kind = rng.choice(["Tensor", "int", "int[]", "str", "float", "None", "Tensor[]"])
        if kind.endswith("?") and rng.random() < 0.5:
            return None
        makers = {
            "Tensor": self.tensor, "Tensor[]": self.list_of_tensors, "Tensor?[]": self.list_of_tensors,
            "int": self.integer, "int[]": lambda: [self.integer() for _ in range(rng.randrange(4))],
            "float": lambda: rng.choice([0.0, 1.0, -1.0, 1e300, float("inf"), float("nan")]), "bool": lambda: rng.random() < 0.5,
            "str": lambda: rng.choice([b"sum", b"mean", b"amax", b"", rng.randbytes(9)]), "DType": lambda: rng.choice(DTYPES),
            "Scalar": lambda: rng.choice([0.5, self.integer()]), "Device": lambda: rng.choice([self.device, CPU]),
            "Operand": lambda: rng.choice([self.tensor(), 2, 0.5]), "float[]": lambda: [],
        }  # fmt: skip
        return makers.get(kind.rstrip("?"), lambda: None)()

    def send(self) -> None:
        """Sends the frame with a read of some results, reads the replies until the read's, and leaves without closing the
        session."""
        frame, more = self.frame, threading.Event()
        for request in range(1, 4):
            frame.reads.add(request=request, handle=self.rng.randrange(1, self.next_name))

        def frames():
            yield frame
            more.wait(20)

        try:
            for number, reply in enumerate(self.peer.session(self.key, frames())):
                if reply.HasField("fault") or number > 3:
                    break
        except grpc.RpcError:
            pass
        finally:
            more.set()
            self.peer.close()


def _guess(address: str, token: str, rng: random.Random, calls: dict[str | int, list[str]], device: int = CPU) -> None:
    names = list(calls)
    while True:
        try:
            guesser = Guesser(address, token, rng, device)
        except grpc.RpcError:
            time.sleep(0.1)
            continue
        guesser.make_tensors()
        for _ in range(rng.randrange(1, 60)):
            op = rng.choice(names)
            made = guesser.call(op, *[guesser.argument(kind) for kind in calls[op]], count=rng.choice([0, 0, 0, 1, 3]))
            guesser.tensors[rng.choice(["integers", "floats"])].append(made)
        guesser.send()


@functools.cache
def _declared_in(*files: str) -> dict[str, list[str]]:
    operators()
    from engine.codegen.declaration import load

    wanted = {op.name for op in load(ROOT / "engine/ops") if op.source.removesuffix(".yaml") in files}
    return {name: types for name, types in signatures().items() if name in wanted}


def hostile_indices(address: str, token: str, rng: random.Random) -> None:
    """Calls all operators of sparse, nested and quantized tensors with indices, offsets and packed weights of any values."""
    _guess(address, token, rng, _declared_in("sparse", "nested", "quantization"))


def custom_operators(address: str, token: str, rng: random.Random) -> None:
    """Calls the operators of the engine's libraries, and asks for the results' sizes, with any arguments."""
    import teletensor as torch
    from teletensor import _C

    torch.connect(address, token=token)
    calls: dict[str | int, list[str]] = {number: parameter_types(schema) for number, _, schema, *_ in _C.custom_operators()}
    if not calls:
        raise SystemExit("the engine has no custom operators")
    calls["custom_operators"] = ["int[]"]
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
    names = "add mul matmul sum relu full randint_from cumsum to_device to_dtype clone assign cat reshape transpose narrow as_strided exp where index_put"
    calls = {name: types for name, types in signatures().items() if name in names.split()}
    _guess(address, token, rng, calls, PLUGIN_DEVICE + rng.randrange(2))


def mutated_programs(address: str, token: str, rng: random.Random) -> None:
    """Defines Programs with changed bytes, of valid and invalid calls, runs, explains and drops them, in any order."""
    valid = []
    for op, types in _declared_in("sparse", "nested", "programs", "arithmetic", "creation").items():
        frame = message("Frame")()
        for name in (10, 11):
            args = [("h", rng.choice([1, 2])) if t.startswith("Tensor") else rng.choice([0, 1, 2]) for t in types]
            instruction(frame, op, *args, result=name)
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
            cells = [guesser.call("full", [1], value, UINT8, CPU) for value in body[:4000]]
            definition = guesser.call("cat", ("hs", cells), 0)
            guesser.call("define_program", ("h", definition), number, rng.choice([2, 0, 1, 5]), rng.choice([0, 0, 1]), False)
            for op in rng.choices(["run_program", "explain_program", "expand_program", "program_counters", "drop_program"], k=4):
                args = [] if op == "program_counters" else [rng.choice([number, number, 1 << 40, -1])]
                if op.endswith(("n_program", "d_program")):
                    args = [guesser.argument("Tensor[]"), guesser.argument("Tensor[]"), *args]
                guesser.call(op, *args, count=rng.choice([0, 1]))
        guesser.send()


MODELS = "/teletensor.v1.Models/"
INFERENCE = "/inference.GRPCInferenceService/"


def _valid_model(address: str, token: str) -> tuple[bytes, object]:
    """The description of a model with a linear layer, and the message's class."""
    import teletensor as torch
    from teletensor.serving import _entries, _files

    torch.connect(address, token=token)
    traced = _entries.entries_of(lambda x: (x * 2 + 1).relu(), None, True, example_inputs=torch.ones(2, 3))
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
                 lambda: raw[rng.choice(list(raw))](_field(1, rng.choice([b"", name.encode(), rng.randbytes(9)])), metadata=bearer, timeout=20)]
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
    """A ModelInferRequest whose sizes, types and contents seldom agree."""
    request = _field(1, name.encode())
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
