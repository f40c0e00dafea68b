"""Serving: requests per second of 32 clients with and without batching, the overhead of a request, and onnxruntime as the peer.

    PYTHONPATH=build/python .venv/bin/python -m benchmarks.serving                 # all
    PYTHONPATH=build/python .venv/bin/python -m benchmarks.serving --seconds 5 --clients 32 --skip-peer

The model is a small ResNet for images of 3 x 32 x 32. The clients are PyPI's tritonclient, in processes of their own, each with
one request at a time. The peer is onnxruntime behind a gRPC server of the same messages, which joins the requests in its queue.
"no computation" is a model that returns a part of its input: what clients, protocol and scheduling allow at most. The runs by rows
are those of one client that sends batches, without the protocol: the server's own time of the run, and onnxruntime's. Rows with
"grpc_load" have a client in C++ (benchmarks/grpc_load.cc, if it is built), which leaves the cores to the server. "peak" is what
the model's runs alone allow, back to back at the best number of rows. The last lines have the ratios of this run and what they
should be; they mean little unless the cores are otherwise idle.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import queue
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent import futures
from pathlib import Path

import numpy as np

SHAPE = (3, 32, 32)
WIDTHS = (16, 32, 64)
CLASSES = 10
PROCESSES = 4  # of clients


def conv_weights(rng, out: int, inner: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    scale = (2 / (inner * size * size)) ** 0.5
    return (rng.standard_normal((out, inner, size, size)) * scale).astype("float32"), np.zeros(out, "float32")


def make_weights() -> dict[str, np.ndarray]:
    """A convolution, a block of two per width, of which the later ones halve the image, and a linear layer."""
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {}
    weights["stem.w"], weights["stem.b"] = conv_weights(rng, WIDTHS[0], SHAPE[0], 3)
    inner = WIDTHS[0]
    for i, width in enumerate(WIDTHS):
        weights[f"{i}.a.w"], weights[f"{i}.a.b"] = conv_weights(rng, width, inner, 3)
        weights[f"{i}.b.w"], weights[f"{i}.b.b"] = conv_weights(rng, width, width, 3)
        weights[f"{i}.s.w"], weights[f"{i}.s.b"] = conv_weights(rng, width, inner, 1)
        inner = width
    weights["head.w"] = (rng.standard_normal((CLASSES, inner)) * 0.1).astype("float32")
    weights["head.b"] = np.zeros(CLASSES, "float32")
    return weights


def teletensor_model(weights: dict[str, np.ndarray]):
    """The model as a function of teletensor."""
    import teletensor as torch
    from teletensor.nn import functional as F  # noqa: N812

    w = {name: torch.tensor(value) for name, value in weights.items()}

    def forward(x):
        x = F.relu(F.conv2d(x, w["stem.w"], w["stem.b"], padding=1))
        for i in range(len(WIDTHS)):
            stride = 1 if i == 0 else 2
            y = F.relu(F.conv2d(x, w[f"{i}.a.w"], w[f"{i}.a.b"], stride=stride, padding=1))
            y = F.conv2d(y, w[f"{i}.b.w"], w[f"{i}.b.b"], padding=1)
            x = F.relu(y + F.conv2d(x, w[f"{i}.s.w"], w[f"{i}.s.b"], stride=stride))
        return F.linear(x.mean((2, 3)), w["head.w"], w["head.b"])

    return forward


def onnx_model(weights: dict[str, np.ndarray]) -> bytes:
    """The same model as ONNX."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, at = [], "x"

    def conv(source: str, name: str, target: str, stride: int, pad: int) -> str:
        attributes = {"strides": [stride] * 2, "pads": [pad] * 4}
        nodes.append(helper.make_node("Conv", [source, f"{name}.w", f"{name}.b"], [target], **attributes))
        return target

    def relu(source: str) -> str:
        nodes.append(helper.make_node("Relu", [source], [source + ".relu"]))
        return source + ".relu"

    at = relu(conv(at, "stem", "stem", 1, 1))
    for i in range(len(WIDTHS)):
        stride = 1 if i == 0 else 2
        y = conv(relu(conv(at, f"{i}.a", f"{i}.a", stride, 1)), f"{i}.b", f"{i}.b", 1, 1)
        shortcut = conv(at, f"{i}.s", f"{i}.s", stride, 0)
        nodes.append(helper.make_node("Add", [y, shortcut], [f"{i}.sum"]))
        at = relu(f"{i}.sum")
    nodes.append(helper.make_node("GlobalAveragePool", [at], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("Gemm", ["flat", "head.w", "head.b"], ["output"], transB=1))
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *SHAPE])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def daemon(models: Path, folder: Path):
    """A teletensord for the models, without authentication."""
    from teletensor.ray import find_daemon

    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [find_daemon(), "--listen", address, "--no-auth", "--models", str(models), "--model-poll", "0"], stdout=log, stderr=log
        )
    try:
        wait_until_ready(address)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(30)


def wait_until_ready(address: str) -> None:
    import tritonclient.grpc as grpc

    with grpc.InferenceServerClient(address) as client:
        for _ in range(600):
            with contextlib.suppress(grpc.InferenceServerException):
                if client.is_server_ready():
                    return
            time.sleep(0.1)
    raise SystemExit("the server is not ready after a minute")


def run_peer(model: bytes, address: str, max_batch: int) -> None:
    """onnxruntime behind a gRPC server, in this process; does not return. A thread runs what is in the queue as one batch."""
    import grpc
    import onnxruntime
    from tritonclient.grpc import service_pb2, service_pb2_grpc

    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    waiting: queue.SimpleQueue = queue.SimpleQueue()

    def work() -> None:
        while True:
            batch = [waiting.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < max_batch:
                    batch.append(waiting.get_nowait())
            outputs = session.run(None, {"x": np.concatenate([x for x, _ in batch])})[0]
            at = 0
            for x, future in batch:
                future.set_result(outputs[at : at + len(x)])
                at += len(x)

    threading.Thread(target=work, daemon=True).start()

    class Service(service_pb2_grpc.GRPCInferenceServiceServicer):
        def ServerReady(self, request, context):  # noqa: N802, ARG002 - gRPC's names
            return service_pb2.ServerReadyResponse(ready=True)

        def ModelInfer(self, request, context):  # noqa: N802, ARG002
            x = np.frombuffer(request.raw_input_contents[0], "float32").reshape(tuple(request.inputs[0].shape))
            future: futures.Future = futures.Future()
            waiting.put((x, future))
            y = future.result()
            reply = service_pb2.ModelInferResponse(model_name=request.model_name, raw_output_contents=[y.tobytes()])
            reply.outputs.add(name="output", datatype="FP32", shape=list(y.shape))
            return reply

    server = grpc.server(futures.ThreadPoolExecutor(64))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Service(), server)
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


def client_process(address: str, model: str, clients: int, seconds: float, results) -> None:
    """Clients, each a thread with a connection; puts the latencies of their requests."""
    import tritonclient.grpc as grpc

    latencies: list[float] = []
    x = np.random.default_rng(os.getpid()).standard_normal((1, *SHAPE)).astype("float32")

    def work() -> None:
        with grpc.InferenceServerClient(address) as client:
            tensor = grpc.InferInput("x", [1, *SHAPE], "FP32")
            tensor.set_data_from_numpy(x)
            client.infer(model, [tensor])
            until = time.perf_counter() + seconds
            while (start := time.perf_counter()) < until:
                client.infer(model, [tensor])
                latencies.append(time.perf_counter() - start)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(latencies)


def load(address: str, model: str, clients: int, seconds: float) -> tuple[float, float, float]:
    """Requests per second, and the median and the 99th percentile of their latency in milliseconds."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = min(PROCESSES, clients)
    shares = [clients // processes + (i < clients % processes) for i in range(processes)]
    started = [context.Process(target=client_process, args=(address, model, share, seconds, results)) for share in shares]
    for process in started:
        process.start()
    latencies = sorted(each for _ in started for each in results.get())
    for process in started:
        process.join()
    return len(latencies) / seconds, latencies[len(latencies) // 2] * 1e3, latencies[int(len(latencies) * 0.99)] * 1e3


def native_load(program: Path, address: str, model: str, clients: int, seconds: float, folder: Path) -> dict[str, float]:
    """The same by the client in C++, with its processor time per request."""
    from tritonclient.grpc import service_pb2

    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="x", datatype="FP32", shape=[1, *SHAPE])
    request.raw_input_contents.append(np.random.default_rng(0).standard_normal((1, *SHAPE)).astype("float32").tobytes())
    (folder / "request").write_bytes(request.SerializeToString())
    words = [program, address, "/inference.GRPCInferenceService/ModelInfer", folder / "request", clients, PROCESSES, seconds]
    return json.loads(subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True).stdout)


def processor_seconds(pid: int) -> float:
    """The processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def overhead(address: str, model: str, count: int) -> tuple[float, float]:
    """Medians in microseconds of a request from a client in C++ and of the model's run in it, batch 1."""
    import teletensor as torch

    served = torch.models(model, address=address)
    x = np.zeros((1, *SHAPE), "float32")
    for _ in range(50):
        served(x)

    def computed() -> tuple[int, int]:
        infer = served.statistics()[0]["inference_stats"]["compute_infer"]
        return int(infer["ns"]), int(infer["count"])

    requests, runs = [], []
    for _ in range(count):
        before = computed()
        start = time.perf_counter()
        served(x)
        requests.append(time.perf_counter() - start)
        after = computed()
        runs.append((after[0] - before[0]) / max(after[1] - before[1], 1) / 1e9)
    return statistics.median(requests) * 1e6, statistics.median(runs) * 1e6


def run_times(address: str, model: str, onnx: bytes, counts: tuple[int, ...], repeats: int = 40) -> dict[str, float]:
    """The least microseconds of runs of the model by the number of rows, here and with onnxruntime, alternating."""
    import teletensor as torch

    served = torch.models(model, address=address)
    try:
        import onnxruntime

        peer = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])
    except ImportError:
        peer = None

    def computed() -> int:
        return int(served.statistics()[0]["inference_stats"]["compute_infer"]["ns"])

    best: dict[str, float] = {}
    for i in range(repeats):
        for rows in counts:
            x = np.zeros((rows, *SHAPE), "float32")
            before = computed()
            served(x)
            times = {f"{rows} rows us": (computed() - before) / 1e3}
            if peer is not None:
                start = time.perf_counter()
                peer.run(None, {"x": x})
                times[f"onnxruntime {rows}"] = (time.perf_counter() - start) * 1e6
            if i > 2:  # earlier runs compile
                best.update({key: min(best.get(key, value), value) for key, value in times.items()})
    return best


def find_program() -> Path | None:
    """grpc_load beside the daemon, if it is built."""
    from teletensor.ray import find_daemon

    program = Path(find_daemon()).with_name("grpc_load")
    return program if program.exists() else None


def peak(runs: dict[str, float]) -> float:
    """Rows per second of runs back to back, at the best number of rows."""
    return max(int(name.split()[0]) / time * 1e6 for name, time in runs.items() if name.endswith(" rows us"))


def ratios(found: dict[str, dict]) -> dict[str, float]:
    """Requests per second with batches divided by those without and by the peer's; overheads divided by 150 us."""
    rate = {name: numbers["requests per second"] for name, numbers in found.items() if "requests per second" in numbers}
    result = {"batched / single (at least 3):": rate["batched"] / rate["single"]}
    result["batched / peak:"] = rate["batched"] / peak(found["runs"])
    if "batched, grpc_load" in rate:
        result["batched / single, grpc_load:"] = rate["batched, grpc_load"] / rate["single, grpc_load"]
        result["batched / peak, grpc_load (at least 0.85):"] = rate["batched, grpc_load"] / peak(found["runs"])
    if "onnxruntime, batched" in rate:
        result["batched / onnxruntime (at least 1):"] = rate["batched"] / rate["onnxruntime, batched"]
    for name in ("single", "no computation"):
        result[f"overhead of {name} / 150 us (at most 1):"] = found[f"overhead, {name}"]["overhead us"] / 150
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--max-batch", type=int, default=32)
    parser.add_argument("--skip-peer", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    import teletensor as torch
    from teletensor import serving

    weights = make_weights()
    forward = teletensor_model(weights)
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        batches = {"max_batch_size": args.max_batch, "dynamic_batching": {}}
        for model, config in (("single", None), ("batched", batches), ("no computation", batches)):
            (folder / "models" / model).mkdir(parents=True)
            function = forward if model != "no computation" else lambda x: x[:, 0, 0, :CLASSES] + 1
            serving.save(function, folder / "models" / model / "1", torch.zeros(2, *SHAPE))
            if config:
                (folder / "models" / model / "config.json").write_text(json.dumps(config))
        with daemon(folder / "models", folder) as (address, pid):
            for model in ("single", "no computation"):
                request, run = overhead(address, model, 200)
                found[f"overhead, {model}"] = {"request us": request, "run us": run, "overhead us": request - run}
            found["runs"] = run_times(address, "single", onnx_model(weights), (1, 4, 16, 32))
            for model in ("single", "batched", "no computation"):
                load(address, model, args.clients, 0.5)  # compiles
                found[model] = dict(zip(("requests per second", "p50 ms", "p99 ms"), load(address, model, args.clients, args.seconds)))
            program = find_program()
            for model in ("single", "batched", "no computation") if program else ():
                native_load(program, address, model, args.clients, 0.5, folder)
                before = processor_seconds(pid)
                numbers = native_load(program, address, model, args.clients, args.seconds, folder)
                used = (processor_seconds(pid) - before) / (numbers["requests per second"] * args.seconds)
                found[f"{model}, grpc_load"] = {**numbers, "server us": used * 1e6}
    if not args.skip_peer:
        address = f"127.0.0.1:{free_port()}"
        arguments = (onnx_model(weights), address, args.max_batch)
        peer = multiprocessing.get_context("spawn").Process(target=run_peer, args=arguments, daemon=True)
        peer.start()
        wait_until_ready(address)
        load(address, "net", args.clients, 0.5)
        found["onnxruntime, batched"] = dict(
            zip(("requests per second", "p50 ms", "p99 ms"), load(address, "net", args.clients, args.seconds))
        )
        peer.terminate()
    found["ratios"] = ratios(found)
    if args.json:
        json.dump(found, sys.stdout, indent=2)
        return
    for what, numbers in found.items():
        print(what.ljust(24), "  ".join(f"{key} {value:.2f}" for key, value in numbers.items()))


if __name__ == "__main__":
    main()
