"""Descriptions of models whose warm-up takes minutes, and calls of the engine's models by gRPC."""

from __future__ import annotations

import grpc

from tests.adversary.wire import instruction, message

FLOAT32 = 8
INFERENCE, MODELS = "/inference.GRPCInferenceService/", "/teletensor.v1.Models/"


def description(products: int, sizes: list[int]) -> bytes:
    """A model that multiplies its input, of these sizes, by itself repeatedly; -1: the rows of a batch, which are squared."""
    program = message("Frame")()
    op = "mul" if -1 in sizes else "matmul"
    for i in range(products):
        instruction(program, op, ("h", 1 + i), ("h", 1), result=2 + i)
    program.reads.add(request=1, handle=1 + products)
    port = {"dtype": FLOAT32, "sizes": sizes}
    entry = {"inputs": [{"name": "x", **port}], "outputs": [{"name": "y", **port}], "program": program.SerializeToString()}
    return message("Model")(format=1, producer="test", entries=[entry]).SerializeToString()


class Caller:
    """The calls of one principal."""

    def __init__(self, address: str, token: str, timeout: float = 60):
        self.channel = grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
        self.options = {"metadata": [("authorization", f"Bearer {token}")], "timeout": timeout}

    def start(self, name: str, model: bytes, config: str = "", **options) -> grpc.Future:
        """Starts publishing a model."""
        call = self.channel.unary_unary(MODELS + "Publish", lambda m: m.SerializeToString(), None)
        request = message("PublishModelRequest")(name=name, model=model, config=config)
        return call.future(request, **{**self.options, "timeout": None, **options})

    def publish(self, name: str, model: bytes, config: str = "") -> None:
        self.start(name, model, config, timeout=self.options["timeout"]).result()

    def withdraw(self, name: str) -> None:
        call = self.channel.unary_unary(MODELS + "Withdraw", lambda m: m.SerializeToString(), None)
        call(message("WithdrawModelRequest")(name=name), **self.options)

    def inference(self, method: str, request: bytes) -> bytes:
        """A call of the inference protocol, encoded."""
        return self.channel.unary_unary(INFERENCE + method, lambda b: b, lambda b: b)(request, **self.options)

    def is_server_ready(self) -> bool:
        return self.inference("ServerReady", b"") == b"\x08\x01"

    def is_ready(self, model: str) -> bool:
        return self.inference("ModelReady", _text(1, model)) == b"\x08\x01"

    def load(self, model: str) -> None:
        self.inference("RepositoryModelLoad", _text(2, model))

    def start_load(self, model: str) -> grpc.Future:
        """Starts loading a model of the repository."""
        call = self.channel.unary_unary(INFERENCE + "RepositoryModelLoad", lambda b: b, lambda b: b)
        return call.future(_text(2, model), **{**self.options, "timeout": None})

    def unload(self, model: str) -> None:
        self.inference("RepositoryModelUnload", _text(2, model))

    def infer(self, model: str, size: int) -> bytes:
        """Runs a model of description() on zeros."""
        shape = bytes([0x18, size]) * 2
        tensor = _text(1, "x") + _text(2, "FP32") + shape
        request = _text(1, model) + bytes([0x2A, len(tensor)]) + tensor + bytes([0x3A, 4 * size * size]) + bytes(4 * size * size)
        return self.inference("ModelInfer", request)


def _text(field: int, text: str) -> bytes:
    """A short string as a protobuf field."""
    return bytes([field << 3 | 2, len(text)]) + text.encode()
