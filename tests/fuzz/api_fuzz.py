"""Calls every public function with random arguments: each call returns or raises a Python exception.

    python -m tests.fuzz.api_fuzz --seconds 20 --seed 1

A child process makes the calls, against a private engine; this process watches it. A finding is a child that dies by
a signal, hangs, loses its session, or raises SystemError. Prints the number of calls, and exits with 1 if there are
findings; each is kept in the folder --findings as the seed and number of the call, which `--seed S --only N` repeats.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
SUCCEEDED: list[int] = []  # number of calls that returned, per child
HANG = 60.0  # seconds per call, on a machine with other load
CALLS = 2000  # per child, so that a finding is reproduced quickly

# Not called: these start or end sessions or the process, wait for input (`uploaded`: for an upload), start threads, or
# change the behaviour of later calls.
SKIPPED = {
    "connect", "connect_all", "disconnect", "set_session", "close", "Admin", "Connection", "save", "load", "set_default_dtype",
    "set_default_device", "set_default_tensor_type", "swap_default_device", "swap_tensor_type_device", "swap_current_gpu",
    "set_grad_enabled", "set_inference_mode",
    "DataLoader", "set_autocast_dtype", "annotations", "drain", "connect_in_process", "graph_begin", "graph_end", "uploaded",
}  # fmt: skip


def text_of(error: BaseException) -> str:
    """Its message; empty if that fails, as for a KeyError of an object whose text raises."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return ""


class Raises:
    def _raise(self, *_, **__):
        raise ZeroDivisionError("asked")

    __index__ = __int__ = __float__ = __complex__ = __len__ = __iter__ = __getitem__ = __bool__ = _raise


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def signatures() -> dict[str, list[list[ast.arg]]]:
    """The parameters of each overload of the generated functions, by name, from the type stubs."""
    found: dict[str, list[list[ast.arg]]] = {}
    for stub in ("ops", "torch", "functional"):
        for node in ast.walk(ast.parse((BUILD / f"generated/stubs/_C/{stub}.pyi").read_text())):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append([*node.args.args, *node.args.kwonlyargs])
    return found


def functions(torch) -> list[tuple[str, object]]:
    """Functions of the package's modules and methods of Tensor, by their names."""
    found: dict[str, object] = {}
    modules = [torch, torch._C.ops, torch._C.torch, torch._C, torch.nn.functional, torch.linalg, torch.special, torch.fft,
               torch.signal.windows, torch.masked, torch.func, torch.autograd, torch.nn.init, torch.nn.utils]  # fmt: skip
    for module in modules:
        for name, value in vars(module).items():
            if callable(value) and not isinstance(value, type(sys)) and not name.startswith("__"):
                found[f"{module.__name__}.{name}"] = value
    for name in dir(torch.Tensor):
        if name not in ("__class__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__setattr__", "__delattr__", "__new__"):
            found[f"Tensor.{name}"] = getattr(torch.Tensor, name)
    return sorted((n, f) for n, f in found.items() if callable(f) and n.rpartition(".")[2] not in SKIPPED)


INTS = [0, 1, -1, 2, 3, -2, 5, 64, 100, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30]
FLOATS = [0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, float("nan"), float("inf"), float("-inf")]


class Arguments:
    def __init__(self, torch, rng: random.Random):
        import numpy as np

        self.torch, self.np, self.rng = torch, np, rng
        self.base = self.any_size()
        self.dtypes = [getattr(torch, n) for n in ("float32", "float64", "int64", "bool", "uint8", "complex64", "bfloat16", "float8_e5m2")]

    def size(self) -> list[int]:
        if self.rng.random() < 0.7:  # related to the call's other tensors
            base = self.base[self.rng.choice([0, 0, 0, 0, 1]) :]
            return [1 if self.rng.random() < 0.05 else n for n in base]
        return self.any_size()

    def any_size(self) -> list[int]:
        return [self.rng.choice([0, 1, 2, 3, 3, 4, 5]) for _ in range(self.rng.choice([0, 1, 1, 2, 2, 2, 3, 4, 5]))]

    def tensor(self):
        rng, torch = self.rng, self.torch
        kind = rng.randrange(12)
        dtype = torch.float32 if kind < 6 else rng.choice(self.dtypes)
        x = torch.ones(self.size() if kind else [1] * 64, dtype=dtype, device="meta" if kind == 7 else "cpu")
        if kind == 8 and x.dim() > 1:
            x = x.transpose(0, 1)
        if kind == 9:
            x = x.unsqueeze(0).expand(3, *x.shape)
        if kind < 3 and x.is_floating_point():
            x.requires_grad_()
        return x

    def value(self, depth: int = 0):
        rng = self.rng
        kind = rng.randrange(20)
        if kind < 8:
            return self.tensor()
        if kind < 10:
            return rng.choice(INTS[:9])
        if kind == 10:
            return rng.choice(INTS)
        if kind == 11:
            return rng.choice(FLOATS)
        if kind == 12:
            return rng.choice(self.dtypes)
        if kind == 13 and depth < 3:
            return rng.choice([list, tuple])([self.value(depth + 1) for _ in range(rng.randrange(4))])
        if kind == 14:
            return self.size()
        return rng.choice([
            None, True, False, "", "cpu", "meta", "cuda", "mean", "sum", "ij,jk", "\ud800", b"\xff", 1 + 2j, ..., slice(0, 2),
            slice(None, None, -1), Raises(), Index(rng.choice(INTS)), self.np.float32(2), self.np.ones((2, 3)),
            self.np.ones(4)[::-2], self.np.array([None]), object(), {}, {"a": 1}, lambda *a: a[0], int, range(3), set(),
            iter([1]), self.np.int64(3), self.np.bool_(True), self.torch.Size([2]), self.torch.device("cpu"),
        ])  # fmt: skip

    def fitting(self, annotation: str):
        """A value of the parameter's type, or sometimes of another type."""
        rng = self.rng
        if rng.random() < 0.06:
            return self.value()
        if "None" in annotation and rng.random() < 0.6:
            return None
        if annotation.startswith(("Tensor", "Any")):
            return self.tensor() if "_Number" not in annotation or rng.random() < 0.7 else rng.choice(INTS[:9] + FLOATS)
        if annotation.startswith("Sequence[Tensor"):
            return [self.tensor() for _ in range(rng.randrange(4))]
        if annotation.startswith(("Sequence[_int", "_int | Sequence")) and rng.random() < 0.6:
            return [rng.choice(INTS[: rng.choice([5, 7, 9, 18])]) for _ in range(rng.randrange(5))]
        if annotation.startswith("_int"):
            return rng.choice(INTS[: rng.choice([3, 6, 9, 18])])
        if annotation.startswith(("_float", "_Number")):
            return rng.choice(FLOATS + INTS[:6])
        if annotation.startswith("Sequence[_float"):
            return [rng.choice(FLOATS) for _ in range(rng.randrange(4))]
        if annotation.startswith("_bool"):
            return rng.random() < 0.5
        if annotation.startswith("_dtype"):
            return rng.choice(self.dtypes)
        if annotation.startswith("_DeviceLike"):
            return rng.choice(["cpu", "meta", "cuda", "cpu"])
        if annotation.startswith("str"):
            return rng.choice(["mean", "sum", "none", "bilinear", "zeros", "ij", "ij,jk->ik", "max", "constant", "", "left"])
        return self.value()

    def call(self, parameters: list[ast.arg]) -> dict:
        """Arguments by name; some are omitted."""
        chosen = {}
        for p in parameters:
            annotation = ast.unparse(p.annotation) if p.annotation else "Any"
            optional = "None" in annotation or p.arg in ("requires_grad", "out")
            if p.arg != "self" and not (optional and self.rng.random() < 0.6):
                chosen[p.arg] = self.fitting(annotation)
        return chosen

    def keywords(self) -> dict:
        names = ["dim", "dtype", "device", "out", "keepdim", "size", "requires_grad", "other", "input", "weight"]
        names += ["alpha", "axis", "nonsense"]
        return {self.rng.choice(names): self.value() for _ in range(self.rng.choice([0, 0, 0, 1, 2]))}


def child(seed: int, first: int, count: int) -> None:
    """Makes calls `first` to `first + count` of a seed; writes the number and name of each before it is made."""
    import faulthandler
    import warnings

    warnings.simplefilter("ignore")
    faulthandler.enable()
    sys.path.insert(0, str(BUILD / "python"))
    import teletensor as torch

    torch.connect(memory_limit=1 << 30)
    public, declared, succeeded = functions(torch), signatures(), 0
    devnull = open(os.devnull, "w")  # noqa: SIM115
    out = os.fdopen(os.dup(1), "w")
    sys.stdout = devnull
    for number in range(first, first + count):
        rng = random.Random(seed * 1_000_003 + number)
        arguments = Arguments(torch, rng)
        name, function = rng.choice(public)
        out.write(f"{number} {name}\n")
        out.flush()
        try:
            overloads = declared.get(name.rpartition(".")[2])
            if overloads and rng.random() < 0.85:
                positional, keywords = [], arguments.call(rng.choice(overloads))
            else:
                positional = [arguments.value() for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4, 6]))]
                keywords = arguments.keywords()
            if name.startswith("Tensor."):
                keywords.pop("input", None)
                positional.insert(0, arguments.tensor())
            result = function(*positional, **keywords)
            if isinstance(result, torch.Tensor) and result.numel() < 1000 and result.device.type == "cpu":
                if result.requires_grad and rng.random() < 0.5:
                    result.sum().backward()
                result.detach().tolist()
            succeeded += 1
        except (SystemError, ConnectionError) as e:
            out.write(f"! {type(e).__name__}: {e}\n")
            out.flush()
            os._exit(1)
        except BaseException as e:  # noqa: BLE001 - any other exception is a valid result
            if "frame refused" in text_of(e):
                out.write(f"! {e}\n")
                out.flush()
                os._exit(1)
        positional = keywords = result = None
    out.write(f"done {succeeded}\n")
    out.flush()
    os._exit(0)  # skips destructors, which are not under test


def watch(seed: int, first: int, count: int, ends: float) -> tuple[int, str | None]:
    """Runs a child; returns the number of the last call and its fault, if any."""
    environment = {**os.environ, "TELETENSOR_DAEMON": os.environ.get("TELETENSOR_DAEMON", str(BUILD / "bin/teletensord"))}
    command = [sys.executable, "-m", "tests.fuzz.api_fuzz", "--child", "--seed", str(seed), "--only", str(first), "--count", str(count)]
    errors = BUILD / "fuzz" / "api" / "stderr"
    with open(errors, "w") as stderr:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=stderr)
        os.set_blocking(process.stdout.fileno(), False)
        last, seen, buffer, called = time.monotonic(), "", b"", first - 1
        fault = None
        while True:
            chunk = process.stdout.read()
            if chunk:
                last = time.monotonic()
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in map(bytes.decode, lines):
                    if line.startswith("!"):
                        fault = f"{seen}: {line[2:]}"
                    elif line.startswith("done"):
                        SUCCEEDED.append(int(line.split()[1]))
                    else:
                        seen, called = line, int(line.split()[0])
            elif process.poll() is not None:
                break
            elif time.monotonic() - last > HANG:
                process.kill()
                process.wait()
                return called, f"{seen}: did not return within {HANG:.0f} s"
            elif time.monotonic() > ends:
                process.kill()
                process.wait()
                return called, None
            else:
                time.sleep(0.02)
    if process.returncode < 0:
        fault = f"{seen}: signal {-process.returncode}\n{errors.read_text()[-2000:]}"
    elif process.returncode != 0 and fault is None:
        fault = f"{seen}: exit status {process.returncode}\n{errors.read_text()[-2000:]}"
    return called, fault


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="make only this call")
    parser.add_argument("--count", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--findings", type=Path, default=BUILD / "fuzz" / "api")
    options = parser.parse_args()
    if options.child:
        child(options.seed, options.only, options.count)
    options.findings.mkdir(parents=True, exist_ok=True)
    (BUILD / "fuzz" / "api").mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + options.seconds
    number, calls, findings = options.only or 0, 0, 0
    while time.monotonic() < ends:
        last, fault = watch(options.seed, number, 1 if options.only is not None else CALLS, ends)
        calls += last - number + 1
        number = last + 1
        if fault:
            findings += 1
            (options.findings / f"seed{options.seed}-{last}.txt").write_text(fault)
            print(f"--seed {options.seed} --only {last}: {fault}", flush=True)
        if options.only is not None:
            break
    print(f"api_fuzz: {calls} calls ({sum(SUCCEEDED)} of {len(SUCCEEDED) * CALLS} returned), {findings} findings, seed {options.seed}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
