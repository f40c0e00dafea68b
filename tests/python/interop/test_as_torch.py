"""`import torch` gives teletensor in a prepared process."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import client_environment

ROOT = Path(__file__).resolve().parents[3]

ASKS = """
import teletensor.as_torch
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader
import teletensor
assert torch.Tensor is teletensor.Tensor and nn is teletensor.nn and F is teletensor.nn.functional
assert torch.__version__ == "2.15.0" and teletensor.__version__ != torch.__version__
assert (1, 13) <= torch.__version__ < (2, 16) and torch.__version__ > "2.9" and torch.version.__version__ == "2.15.0"
assert torch.torch is torch and torch.cat is teletensor.cat and "cat" in vars(torch) and "cat" in dir(torch)
assert torch.float32 is teletensor.float32 and not hasattr(torch, "no_such_name") and type(torch) is type(teletensor)
assert nn.__spec__.name == "teletensor.nn" and torch.Tensor.__module__ == "torch"
import torch._C._nn, torch._C._fft as fft
from torch._C import _TensorMeta
assert torch._C._nn is teletensor._C._nn and fft.fft_fft is torch.fft.fft and isinstance(torch.Tensor, _TensorMeta)
try:
    import torch.no_such_module.x
except ModuleNotFoundError:
    print("right")
"""

# The folder with the package `torch` is on the path, and nothing imports teletensor.as_torch first.
PACKAGE = """
import torch.nn as nn, torch
import teletensor
assert nn is teletensor.nn and torch.ones is teletensor.ones and torch.__version__ == "2.15.0"
import functorch
assert functorch is teletensor.functorch and functorch.vmap is not torch.vmap
print("right")
"""

# The first use of functions is in compiled code, for which torch's hook is not traced.
COMPILED = """
import teletensor.as_torch, torch, sys, tempfile, pathlib
assert "hstack" not in vars(torch)
path = pathlib.Path(tempfile.mkdtemp()) / "compiled_code.py"
path.write_text("import torch\\ndef f(x): return torch.hstack([x, torch.zeros(3)]).sum() * torch.pi\\n")
sys.path.insert(0, str(path.parent))
from compiled_code import f
found = torch.compile(f, fullgraph=True, backend="eager")(torch.ones(3)).item()
print("right" if abs(found - 9.42478) < 1e-4 else found)
"""

# A program's class returns one of the functions with which PyTorch restores tensors.
PICKLED = """
import teletensor.as_torch, torch, io
class Spoofed:
    def __reduce_ex__(self, protocol):
        indices = [torch.tensor(i) for i in ([0, 1, 1], [0])]
        return torch._utils._rebuild_sparse_tensor, (torch.sparse_csr, (*indices, torch.ones(1), torch.Size((2, 2))))
file = io.BytesIO()
torch.save(Spoofed(), file)
file.seek(0)
found = torch.load(file).to_dense().tolist()
print("right" if found == [[1, 0], [0, 0]] else found)
"""


@pytest.mark.parametrize(
    "code, said",
    [
        *((code, "right") for code in (ASKS, PACKAGE, COMPILED, PICKLED)),
        ("import sys; sys.modules['torch'] = sys\nimport teletensor.as_torch", "already"),
    ],
)
def test_import_in_a_new_process(torch, code, said):
    path = [*sys.path, str(ROOT / "python/teletensor/_torch_path")] if code is PACKAGE else sys.path
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(path)})
    assert said in done.stdout + done.stderr
    assert done.returncode == (said == "already")


PROGRAM = """
import sys, subprocess, importlib.metadata, multiprocessing, torch

def child(queue):
    import torch
    queue.put(torch._is_teletensor and float(torch.ones(2).sum()))

if __name__ == "__main__":
    assert importlib.metadata.version("torch") == "2.15.0+teletensor", importlib.metadata.version("torch")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(sys.argv[1:], queue.get(timeout=120), __file__ if "__file__" in globals() else None)
    process.join()
    sys.exit(7)
"""


@pytest.mark.parametrize("command", [["teletensor.as_torch"], ["teletensor.cli", "run"]])
@pytest.mark.parametrize("module", [False, True])
def test_unmodified_program(torch, tmp_path, command, module):
    (tmp_path / "program.py").write_text(PROGRAM)
    words = ["-m", "program"] if module else ["program.py"]
    done = subprocess.run(
        [sys.executable, "-m", *command, *words, "--flag", "x"], cwd=tmp_path, capture_output=True, text=True, timeout=240,
        env=client_environment(),
    )  # fmt: skip
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("['--flag', 'x'] 2.0") and "program.py" in done.stdout


@pytest.mark.slow
def test_unmodified_ranks(torch, tmp_path):
    (tmp_path / "rank.py").write_text("import torch.distributed as d; d.init_process_group('gloo'); print(d.get_rank())")
    words = ["run", "-m", "torch.distributed.run", "--nproc-per-node=2", "rank.py"]
    done = subprocess.run(
        [sys.executable, "-m", "teletensor.cli", *words], cwd=tmp_path, capture_output=True, text=True, timeout=240,
        env=client_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1", "[0]", "[1]"]


@pytest.mark.parametrize(
    "words, message", [(["nothing.py"], "no file 'nothing.py'"), (["-m", "-c", "x"], "exclude each other")]
)
def test_program_that_cannot_run(torch, words, message):
    done = subprocess.run(
        [sys.executable, "-m", "teletensor.as_torch", *words], capture_output=True, text=True, env=client_environment()
    )
    assert done.returncode == 2 and message in done.stderr


def test_annotated_code_runs(torch):
    @torch.jit.script
    def double(x):
        return x if torch.jit.is_scripting() else 2 * x

    class Net(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return self.hidden(x) + self.dropped(x)

        @torch.jit.ignore
        def hidden(self, x):
            return double(x)

        @torch.jit.unused
        def dropped(self, x):
            return x

    x = torch.ones(2)
    assert torch.jit.trace(Net(), x)(x).tolist() == torch.jit.script(Net())(x).tolist() == [3, 3]
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.isinstance([1], torch.jit.annotations.List[int])


# A program that was written for PyTorch registers nothing: the functions and classes of its own modules can be called.
CALLS = """
import os
import sys
import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

class Counter:
    def __init__(self, start):
        self.value = start
        self.module = torch.nn.Linear(2, 2)
    def add(self, number):
        self.value += number
        return self.value

def _total(counter, module):
    return counter.local_value().add(int(module.weight.sum()))

def _call(method, counter, *args):
    return method(counter.local_value(), *args)

def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    if rank == 0:
        counter = rpc.remote("worker1", Counter, args=(5,))
        module = torch.nn.Linear(2, 3)
        torch.nn.init.ones_(module.weight)
        print(rpc.rpc_sync("worker1", _total, args=(counter, module)), rpc.rpc_sync("worker1", _call, args=(Counter.add, counter, 4)))
        print(counter.to_here().value, counter.rpc_sync().add(1))
        for function in (os.system, sys.exit, lambda: 1):
            try:
                rpc.rpc_sync("worker1", function, args=("true",))
            except ValueError as error:
                print("registered" in str(error))
    rpc.shutdown()

if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1],), nprocs=2)
"""


@pytest.mark.slow
def test_functions_of_the_program_are_called_on_other_workers(tmp_path):
    (tmp_path / "calls.py").write_text(CALLS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "teletensor.as_torch", str(tmp_path / "calls.py"), str(port)]
    result = subprocess.run(command, env=client_environment(), capture_output=True, text=True, timeout=60)
    assert result.stdout.split() == ["11", "15", "15", "16", "True", "True", "True"], result.stderr
