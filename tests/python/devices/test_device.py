"""Devices of a device library in Python: names, copies, memory, events, files, refusals."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import ROOT, Daemon, client_environment
from tests.python.devices.conftest import EXAMPLE, session
from tests.python.session.test_principals import Engine, run, user

pytestmark = pytest.mark.slow

MIB = 1 << 20


def status(engine) -> list[dict]:
    """The engine's plug-in devices, as `teletensor status --json` shows them."""
    from teletensor import _C

    return json.loads(_C.Admin(engine.address).status())["plugin_devices"]


def test_names(torch):
    """Types, indices and equality follow PyTorch's rules for accelerators."""
    device = torch.device("example:1")
    assert (device.type, device.index, str(device), repr(device)) == ("example", 1, "example:1", "device(type='example', index=1)")
    assert torch.device("example").index is None and torch.device("example") != torch.device("example:0")
    assert torch.device("example", 1) == device and hash(torch.device("example", 1)) == hash(device)
    assert torch.device("privateuseone:1") == device
    x = torch.ones(2, device="example")
    assert x.device == torch.device("example:0") and not x.is_cuda and x.get_device() == 0
    for text in ("example:16", "example:-1", "example:x"):
        with pytest.raises(RuntimeError, match="Invalid device string"):
            torch.device(text)
    with pytest.raises(RuntimeError, match="Expected one of"):
        torch.device("nodev:0")
    with pytest.raises(RuntimeError, match="invalid device ordinal: expected an index below 2"):
        torch.ones(2, device="example:7")


def test_copies(torch):
    """Bytes and layouts survive copies between the host, a device and another device."""
    host = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    there = host.to("example")
    assert torch.equal(there.to("example:1").cpu(), host)
    assert torch.equal(there.transpose(0, 2).cpu(), host.transpose(0, 2))
    assert torch.equal(there[:, 1:, ::2].contiguous().cpu(), host[:, 1:, ::2])
    there[:, 0] = host[:, 0] + 1  # a tensor on the CPU is copied to the device, as by copy_()
    assert torch.equal(there.cpu()[:, 0], host[:, 0] + 1) and torch.equal(there.cpu()[:, 1:], host[:, 1:])
    assert torch.equal(there.to(torch.int64).cpu(), there.cpu().to(torch.int64))
    for dtype in (torch.bool, torch.uint8, torch.float16, torch.bfloat16, torch.complex64, torch.int16):
        values = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
        assert torch.equal(values.to("example").t().to("example:1").cpu(), values.t()), dtype
    there.zero_()
    assert there.sum().item() == 0 and torch.empty(0, 3, device="example").tolist() == []
    big = np.random.default_rng(0).standard_normal(3 * MIB).astype("float32")
    assert np.array_equal(torch.from_numpy(big).to("example").numpy(force=True), big)
    assert torch.zeros(3).pin_memory().to("example", non_blocking=True).tolist() == [0, 0, 0]


def test_mixed_devices_raise(torch):
    x = torch.ones(2, device="example")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        (x + torch.ones(2)).tolist()
    assert (x + torch.tensor(2.0)).tolist() == [3, 3]  # a zero-dim tensor of the CPU counts as a number
    assert (x.double() + torch.tensor(2**63, dtype=torch.uint64)).tolist() == [2.0**63] * 2  # one that int64 cannot hold


def test_kernels_and_fallbacks_are_counted(torch, engine):
    before = status(engine)[0]
    x = torch.tensor([1.0, 4.0], device="example")
    assert (x * 2).sqrt().tolist() == pytest.approx([2**0.5, 8**0.5])
    assert torch.sinh(x).tolist() == pytest.approx(np.sinh([1, 4]).tolist())
    after = status(engine)[0]
    assert int(after["kernel_calls"]) - int(before["kernel_calls"]) == 2
    assert int(after["fallback_calls"]) - int(before["fallback_calls"]) == 1
    assert any(entry["name"] == "sinh" for entry in after["fallbacks"])
    assert after["device"]["type_name"] == "example" and after["device"]["name"] == "example device 0"


def test_module(torch):
    """torch.example has the functions of torch.cuda that apply to every device."""
    module = torch.example
    assert module.is_available() and module.device_count() == 2 and module.current_device() == 0
    assert module.get_device_name(1) == "example device 1"
    assert module.get_device_properties("example:1")["total_memory"] == 256 * MIB
    assert torch.get_device_module("example") is module is torch.get_device_module(torch.device("example:1"))
    module.set_device(1)
    try:
        assert torch.ones(1, device="example").device == torch.device("example:1")
    finally:
        module.set_device(0)
    with pytest.raises(RuntimeError, match="expected an index below 2"):
        module.synchronize(5)
    with pytest.raises(ValueError, match="Expected a example device"):
        module.synchronize("cpu")
    event, later = torch.Event("example"), torch.Event("example", enable_timing=True)
    event.record()
    later.record(module.current_stream())
    later.synchronize()
    assert event.query() and later.query()
    stream = module.current_stream(1)
    stream.wait_event(stream.record_event())
    stream.synchronize()
    assert isinstance(stream.query(), bool) and stream.device_index == 1  # records an event, which may not be reached yet
    assert torch.ones(1, device="example").type() == "torch.example.FloatTensor"
    state = module.get_rng_state()
    first = torch.rand(3, device="example")
    module.set_rng_state(state)
    assert torch.equal(torch.rand(3), first.cpu())  # one generator for all devices


def test_registered_module(engine):
    """torch._register_device_module replaces the type's module, once, in a process of its own."""
    program = (
        "import types, teletensor as torch; module = types.ModuleType('mine'); torch._register_device_module('example', module); "
        "print(torch.example is module, torch.get_device_module('example') is module)\n"
        "try: torch._register_device_module('cuda', module)\nexcept RuntimeError as e: print('already been registered' in str(e))"
    )
    environment = client_environment(TELETENSOR_ADDRESS=engine.address)
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ran.stdout == "True True\nTrue\n", ran.stderr


def test_memory_is_accounted(torch):
    module = torch.example
    before = module.memory_allocated()
    x = torch.zeros(MIB, device="example")
    assert module.memory_allocated() - before == 4 * MIB
    assert module.memory_allocated(1) == 0
    assert module.max_memory_allocated() >= before + 4 * MIB and module.memory_reserved() >= 4 * MIB
    free, total = module.mem_get_info()
    assert 0 < free <= total - 4 * MIB == 252 * MIB
    del x
    assert module.memory_allocated() == before
    module.empty_cache()


def test_memory_limits(torch, engine):
    """The device's memory and the session's limit hold; the session goes on."""
    with pytest.raises(torch.OutOfMemoryError, match="example:0"):
        torch.zeros(80 * MIB, device="example").tolist()
    assert torch.ones(1, device="example").tolist() == [1]
    with session(engine.address, memory_limit=16 * MIB):
        assert torch.zeros(MIB, device="example").sum().item() == 0
        with pytest.raises(torch.OutOfMemoryError, match="limit"):
            torch.zeros(8 * MIB, device="example").sum().item()


def test_accelerator_without_gpus(_engine, tmp_path):
    """torch.accelerator is the device library's type if the engine has no GPU."""
    torch = _engine
    daemon = Daemon(tmp_path, "--devices", str(EXAMPLE), TELETENSOR_CUDA_PLUGIN="")
    try:
        with session(daemon.address):
            assert torch.accelerator.is_available() and torch.accelerator.device_count() == 2
            assert torch.accelerator.current_accelerator() == torch.device("example")
            assert torch.get_device_module() is torch.example
            torch.accelerator.synchronize()
            assert torch.accelerator.memory_allocated() == 0
        program = (  # a registered module does not replace torch.accelerator
            "import types, teletensor as torch; torch._register_device_module('example', types.ModuleType('mine')); "
            "print(torch.accelerator.current_accelerator(), torch.accelerator.device_count(), torch.Event().device)"
        )
        environment = client_environment(TELETENSOR_ADDRESS=daemon.address)
        ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert ran.stdout == "example 2 example:0\n", ran.stderr
    finally:
        assert daemon.stop() == 0


def test_files(torch):
    """torch.save and torch.load keep the device; map_location replaces it."""
    x = torch.tensor([1.0, 2.0], device="example:1")
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.load(file)["x"].device == torch.device("example:1")
    file.seek(0)
    loaded = torch.load(file, map_location="cpu")["x"]
    assert loaded.device.type == "cpu" and torch.equal(loaded, x.cpu())
    file.seek(0)
    assert torch.load(file, map_location="example:0")["x"].tolist() == [1, 2]


def test_shared_with_other_sessions(torch, engine, tmp_path):
    """Publications and the engine's own checkpoints keep the values; they are read on either device."""
    x = torch.arange(6.0, device="example:1").reshape(2, 3)
    torch.publish("shared", {"x": x, "columns": x.t()})
    with session(engine.address):
        opened = torch.open("shared")
        assert opened["x"].device == torch.device("example:1") and opened["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert (opened["columns"] + 1).tolist() == [[1, 4], [2, 5], [3, 6]]
    torch.unpublish("shared")
    daemon = Daemon(tmp_path, "--devices", str(EXAMPLE), "--checkpoint-root", str(tmp_path))
    try:
        with session(daemon.address):
            x = torch.arange(6.0, device="example").reshape(2, 3)
            torch.checkpoint.save({"x": x.t()}, "file.safetensors")
            assert torch.checkpoint.load("file.safetensors")["x"].tolist() == [[0, 3], [1, 4], [2, 5]]
            assert torch.checkpoint.load("file.safetensors", device="example:1")["x"].device == torch.device("example:1")
    finally:
        assert daemon.stop() == 0


def test_refusals(torch, engine):
    from teletensor import _C

    x = torch.ones(2, device="example")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'example'"):
        torch.autocast("example")
    with pytest.raises(NotImplementedError, match="process groups"):
        _C.ops.group_all_reduce([x], torch.tensor(1), op="sum", factor=1.0, work=1).tolist()

    with pytest.raises(Exception, match="--devices cannot be replaced"):
        _C.Admin(engine.address).upgrade(1.0, False)
    assert x.tolist() == [1, 1]


def test_persist_is_refused(_engine, tmp_path):
    """A session with a tensor on the device has no image, and goes on; without one it has."""
    torch = _engine
    daemon = Daemon(tmp_path, "--devices", str(EXAMPLE), "--state-dir", str(tmp_path / "state"))
    try:
        with session(daemon.address):
            x = torch.ones(2, device="example")
            assert x.tolist() == [1, 1]  # persist() does not wait for what was issued before it
            with pytest.raises(RuntimeError, match="a tensor on example:0, a device of a device library, cannot be part of an image"):
                torch.persist(3600)
            assert x.tolist() == [1, 1]
            del x
            assert torch.ones(1).tolist() == [1]
            torch.persist(3600)
    finally:
        assert daemon.stop() == 0


LIMITED = """
import teletensor as torch
kept = torch.zeros(2 << 20, dtype=torch.uint8, device="example:1")
try:
    torch.zeros(2 << 20, dtype=torch.uint8, device="example:1").tolist()
except torch.OutOfMemoryError as e:
    print(str(e).splitlines()[0])
print(torch.zeros(2 << 20, dtype=torch.uint8, device="example:0").sum().item(), torch.zeros(8 << 20, dtype=torch.uint8).sum().item())
del kept
print(torch.zeros(2 << 20, dtype=torch.uint8, device="example:1").sum().item())
"""


def test_limit_of_a_principal(tmp_path):
    """A principal's gpu_memory limits its tensors on each device, and neither other devices' nor the host's."""
    engine = Engine(tmp_path, "--devices", str(EXAMPLE))
    token = user(engine.file, "add", "alice", "--gpu-memory", "3MiB")
    engine.start()
    try:
        environment = client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=token)
        ran = subprocess.run([sys.executable, "-c", LIMITED], env=environment, capture_output=True, text=True)
        lines = ran.stdout.splitlines()
        assert len(lines) == 3 and "on each GPU" in lines[0] and lines[1:] == ["0 0", "0"], (ran.stdout, ran.stderr)
    finally:
        engine.stop()


SHARED_BY_WORKERS = """
import sys
import teletensor as torch
x = torch.ones(2, device="example:1") * 2
print([torch.sinh(x).shape for i in range(int(sys.argv[1]))], torch.cosh(x).tolist(), flush=True)
input()
"""


def test_workers(tmp_path):
    """With --isolate=principal each worker has the devices; `teletensor status` adds their calls."""
    engine = Engine(tmp_path, "--isolate", "principal", "--devices", str(EXAMPLE))
    tokens = [user(engine.file, "add", name) for name in ("alice", "bob")]
    root = user(engine.file, "add", "root", "--role", "operator")
    engine.start()
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", SHARED_BY_WORKERS, str(1 + 2 * i)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=token),
        )
        for i, token in enumerate(tokens)
    ]  # fmt: skip
    try:
        assert all("3.76" in client.stdout.readline() for client in clients)
        done = run("--address", engine.address, "--token", root, "--admin-token", root, "status", "--json")
        device = json.loads(done.stdout)["plugin_devices"][1]
        assert [(each["name"], each["calls"]) for each in device["fallbacks"]] == [("sinh", "4"), ("cosh", "2")]
        assert (device["kernel_calls"], device["fallback_calls"]) == ("4", "6")
    finally:
        for client in clients:
            client.communicate("\n")
        engine.stop()


def test_fallback_can_be_switched_off(_engine, tmp_path):
    torch = _engine
    daemon = Daemon(tmp_path, "--devices", str(EXAMPLE), "--device-fallback", "off")
    try:
        with session(daemon.address):
            x = torch.ones(2, device="example")
            assert (x + x).tolist() == [2, 2]
            with pytest.raises(NotImplementedError, match="sinh.*has no kernel for it.*switched off"):
                torch.sinh(x).tolist()
            assert x.tolist() == [1, 1]
    finally:
        assert daemon.stop() == 0


def test_status_lists_devices(engine):
    command = [sys.executable, "-m", "teletensor.cli", "--address", engine.address, "status"]
    shown = subprocess.run(command, env=client_environment(COLUMNS="200"), capture_output=True, text=True, check=True).stdout
    assert "example:0" in shown and "example device 1" in shown and "on the cpu" in shown


PROGRAM = """
import teletensor as torch
from teletensor.utils import generate_methods_for_privateuse1_backend, rename_privateuse1_backend

rename_privateuse1_backend("mydev")
rename_privateuse1_backend("mydev")
try:
    rename_privateuse1_backend("other")
except RuntimeError as e:
    assert "already been set" in str(e)
device = torch.device("mydev:1")
assert device == torch.device("example:1") == torch.device("privateuseone:1") and str(device) == "mydev:1"
generate_methods_for_privateuse1_backend()
x = torch.ones(2).mydev(1)
assert x.is_mydev and x.device == device and not torch.ones(1).is_mydev
layer = torch.nn.Linear(2, 2).mydev()
assert layer.weight.is_mydev and layer.weight.device.index == 0
packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 1)]).mydev()
assert packed.is_mydev
assert torch.mydev.device_count() == 2 and torch.mydev.memory_allocated(1) > 0
assert torch._C._get_privateuse1_backend_name() == "mydev"
try:
    generate_methods_for_privateuse1_backend()
except RuntimeError as e:
    assert "existing attribute" in str(e)
else:
    raise AssertionError
print("done")
"""


def test_renamed(engine):
    """utils.rename_privateuse1_backend and the generated methods, in a process of their own; the first name that the
    program uses opens the session."""
    environment = client_environment(TELETENSOR_ADDRESS=engine.address)
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert ran.stdout == "done\n", ran.stderr


def test_name_before_connection(engine):
    program = "import teletensor as torch; print(torch.ones(2).to(torch.device('example:1')).device)"
    environment = client_environment(TELETENSOR_ADDRESS=engine.address)
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ran.stdout == "example:1\n", ran.stderr


def test_header_is_c99(tmp_path):
    """The header compiles alone as C99 and as C++11."""
    header = ROOT / "engine/device/teletensor_device.h"
    source = tmp_path / "table.c"
    function = "const TeletensorDeviceTable* table(void) { return teletensor_device_table(TELETENSOR_DEVICE_ABI); }"
    source.write_text(f'#include "{header}"\n{function}\n')
    for language in (["-std=c99"], ["-x", "c++", "-std=c++11"]):
        subprocess.run(["cc", *language, "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)], check=True)


@pytest.mark.slow
def test_example_builds_alone(tmp_path):
    """examples/device is a project of its own, whose test trains a network."""
    subprocess.run(["cmake", "-S", str(ROOT / "examples/device"), "-B", str(tmp_path)], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(tmp_path)], check=True, capture_output=True)
    command = [sys.executable, str(ROOT / "examples/device/test_device.py"), str(tmp_path / "libexample_device.so")]
    ran = subprocess.run(command, env=client_environment(), capture_output=True, text=True)
    assert "as on the CPU" in ran.stdout, ran.stderr
