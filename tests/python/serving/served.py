"""A daemon with models, for the tests of this folder."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import teletensor
from tests.conftest import Daemon, client_environment
from tests.python.distributed.ranks import free_port

TIMEOUT = 60.0  # of waits that end early


class Served:
    """A daemon that serves the models of a folder, to gRPC at `address` and to HTTP at `http`."""

    def __init__(self, folder: Path, models: Path, *options: str):
        import tritonclient.grpc
        import tritonclient.http

        self.models = models
        self.http_address = f"127.0.0.1:{free_port()}"
        self.daemon = Daemon(
            folder, "--models", str(models), "--http", self.http_address, "--model-poll", "0", "--model-shared-memory", *options
        )
        self.address = self.daemon.address
        self.grpc = tritonclient.grpc.InferenceServerClient(self.address)
        self.http = tritonclient.http.InferenceServerClient(self.http_address, concurrency=32)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        until = time.monotonic() + TIMEOUT
        while not self.grpc.is_server_ready():
            assert time.monotonic() < until, "the models are not loaded"
            time.sleep(0.02)

    def new_grpc(self):
        import tritonclient.grpc

        return tritonclient.grpc.InferenceServerClient(self.address)

    def run(self, program: str, timeout: float = TIMEOUT) -> str:
        """Runs a program whose session is one of this daemon; returns what it prints."""
        made = subprocess.run(
            [sys.executable, "-c", program], env=client_environment(TELETENSOR_ADDRESS=self.address), capture_output=True, text=True,
            timeout=timeout, check=False, cwd=Path(__file__).resolve().parents[3],
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        return made.stdout

    def stop(self) -> None:
        self.grpc.close()
        self.http.close()
        assert self.daemon.stop() == 0


def converter(folder: Path) -> tuple[str, ...]:
    """Options with which a daemon converts ONNX and .pt2 files by this process's package."""
    script = folder / "convert.sh"
    package = Path(teletensor.__file__).parents[1]
    command = "import sys; from teletensor.cli import main; sys.exit(main())"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={package} exec {sys.executable} -c "{command}" convert "$@"\n')
    script.chmod(0o755)
    return ("--model-converter", str(script), "--model-cache", str(folder / "cache"))


def grpc_inputs(client_module, **arrays: np.ndarray) -> list:
    """Arrays as inputs of tritonclient.grpc or tritonclient.http."""
    inputs = []
    for name, array in arrays.items():
        datatypes = {"float32": "FP32", "int64": "INT64", "int32": "INT32", "float64": "FP64", "bool": "BOOL", "uint8": "UINT8"}
        inputs.append(client_module.InferInput(name, list(array.shape), datatypes[str(array.dtype)]))
        inputs[-1].set_data_from_numpy(array)
    return inputs
