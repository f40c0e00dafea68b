"""Public classes name PyTorch's modules, as its pickles do, and pickles by name find them again."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import typing

import pytest

from teletensor import _lazy

from .class_modules import TABLE, attribute

PYTORCHS = json.loads(TABLE.read_text())
# Classes of PyTorch's C++ code, whose modules are private and do not exist here, classes that have two names in PyTorch and one here,
# classes of another name, and classes that only raise errors.
ELSEWHERE = """
    torch.Future teletensor.jit:Future
    torch.ScriptFunction teletensor.jit._script:ScriptFunction
    torch.ScriptModule teletensor.jit._script:ScriptModule
    torch.Stream teletensor.cuda.streams:Stream
    torch.ThroughputBenchmark teletensor.utils.throughput_benchmark:ThroughputBenchmark
    torch.accelerator.Graph teletensor.accelerator:Graph
    torch.cuda.GreenContext teletensor.cuda:GreenContext
    torch.distributed.FileStore teletensor.distributed:FileStore
    torch.distributed.GradBucket teletensor.distributed:GradBucket
    torch.distributed.HashStore teletensor.distributed:HashStore
    torch.distributed.TCPStore teletensor.distributed:TCPStore
    torch.jit.ScriptFunction teletensor.jit._script:ScriptFunction
    torch.linalg.LinAlgError teletensor.linalg:LinAlgError
    torch.monitor.Aggregation teletensor.monitor:Aggregation
    torch.monitor.Event teletensor.monitor:Event
    torch.monitor.EventHandlerHandle teletensor.monitor:EventHandlerHandle
    torch.monitor.Stat teletensor.monitor:Stat
    torch.mps.Event teletensor.mps:Event
    torch.mps.Stream teletensor.mps:Stream
    torch.nn.attention.SDPBackend teletensor.nn.attention:SDPBackend
    torch.nn.functional.ScalingType teletensor.nn._functional_names:ScalingType
    torch.nn.functional.SwizzleType teletensor.nn._functional_names:SwizzleType
    torch.profiler.DeviceType teletensor.profiler._device:DeviceType
    torch.profiler.ProfilerActivity teletensor.profiler.profiler:ProfilerActivity
    torch.types.Storage teletensor.storage:UntypedStorage
    torch.xpu.MemPool teletensor.xpu:MemPool
    torch.xpu.XPUGraph teletensor.xpu:XPUGraph
    torch.xpu.XPUPluggableAllocator teletensor.xpu:XPUPluggableAllocator
    torch.xpu.graph teletensor.xpu:graph
"""
PLACES = dict(line.split() for line in ELSEWHERE.strip().splitlines())


def classes():
    """The classes that exist in both packages: the public path, the class here, and PyTorch's module and name."""
    for path, place in PYTORCHS.items():
        module, _, name = path.rpartition(".")
        kind = attribute(module.replace("torch", "teletensor", 1), name)
        if issubclass(type(kind), type):
            yield path, kind, place.replace("torch", "teletensor", 1)


@pytest.mark.filterwarnings("ignore")
def test_classes_name_pytorchs_modules():
    found = {path: (f"{kind.__module__}:{kind.__qualname__}", place) for path, kind, place in classes()}
    different = {path: here for path, (here, place) in found.items() if here != place}
    assert different == PLACES and len(found) > 700


@pytest.mark.filterwarnings("ignore")
def test_pickles_find_the_classes():
    for path, kind, _ in classes():
        assert pickle.loads(pickle.dumps(kind)) is kind, path


def test_the_manager_of_a_context_of_gradients():
    import teletensor
    import teletensor.distributed.autograd

    assert teletensor.distributed.autograd.context.__module__ == "teletensor.distributed.autograd"


@pytest.mark.filterwarnings("ignore")
def test_annotations_of_classes_are_found():
    """Where the class is defined, not in the module that it names."""
    unknown = []
    for path, kind, _ in classes():
        try:
            typing.get_type_hints(kind)
        except NameError:
            unknown.append(path)
    assert unknown == []


@pytest.mark.filterwarnings("ignore")
def test_annotations_are_types():
    import teletensor
    from teletensor.distributed.fsdp import MixedPrecisionPolicy

    found = inspect.get_annotations(MixedPrecisionPolicy, eval_str=True)
    assert found["param_dtype"] == teletensor.dtype | None and found["cast_forward_inputs"] is bool
    texts = {
        path for path, kind, _ in classes() if any(isinstance(t, typing.ForwardRef) for t in inspect.get_annotations(kind).values())
    }
    assert len(texts) < 20, texts


@pytest.mark.filterwarnings("ignore")
def test_sources_of_classes_are_found():
    """Of classes that name another module than the one that defines them."""
    missing, renamed = [], [(path, kind) for path, kind, _ in classes() if id(kind) in _lazy._files]
    for path, kind in renamed:
        try:
            lines = inspect.getsource(kind).splitlines()
        except (OSError, TypeError):
            missing.append(path)
            continue
        if not any(line.startswith(f"class {kind.__name__}") for line in map(str.lstrip, lines)):
            missing.append(path)
    assert missing == [] and len(renamed) > 250


@pytest.mark.parametrize("order", ["inspect, teletensor", "teletensor, inspect", "teletensor.nn, inspect"])
def test_sources_in_each_order_of_imports(order):
    code = f"import {order}\nimport teletensor as torch\n"
    code += "for kind in (torch.nn.BatchNorm2d, torch.utils.data.DataLoader, torch.distributions.HalfNormal, torch.finfo):\n"
    code += "    assert f'class {kind.__name__}' in inspect.getsource(kind)\n"
    code += "assert 'def getsource' in inspect.getsource(inspect)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_does_not_import_inspect():
    subprocess.run([sys.executable, "-c", "import sys, teletensor; assert 'inspect' not in sys.modules"], check=True)
