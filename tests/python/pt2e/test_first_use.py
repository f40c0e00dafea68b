"""torchao's names and classes at their first use, in an interpreter that has imported no module of the package."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from teletensor.serialization import _constructor
from tests.conftest import client_environment


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=client_environment())
    assert done.returncode == 0, done.stderr


def test_quantize_stays_a_function():
    run("""
from teletensor.torchao.quantization import Int8WeightOnlyConfig, quantize_
import teletensor as t
m = t.nn.Linear(8, 8)
quantize_(m, Int8WeightOnlyConfig())
assert type(m.weight).__name__ == "Int8Tensor", type(m.weight)
from teletensor.torchao import quantization
import teletensor.torchao.quantization.quantize_.workflows.int8.int8_tensor
assert quantization.quantize_ is quantize_
""")


def test_quantized_weights_are_saved():
    run("""
from teletensor.torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_
import io
import teletensor as t
m = t.nn.Linear(8, 8)
quantize_(m, Int8DynamicActivationInt8WeightConfig())
file = io.BytesIO()
t.save(m.state_dict(), file)
read = t.load(io.BytesIO(file.getvalue()))["weight"]
assert type(read) is type(m.weight) and (read.dequantize() == m.weight.dequantize()).all()
""")


@pytest.mark.parametrize("value", ["MappingType.SYMMETRIC", "PerRow()", "ZeroPointDomain.INT"])
def test_settings_are_saved(value):
    run(f"""
import io
import teletensor as t
import teletensor.torchao.quantization as quantization
value = quantization.{value}
file = io.BytesIO()
t.save({{"v": value}}, file)
assert t.load(io.BytesIO(file.getvalue()))["v"] == value
""")


def test_threads_register_classes_at_the_same_moment(monkeypatch):
    class Waits:
        pass

    both, errors = threading.Barrier(2, timeout=30), []

    def register():
        both.wait()  # both threads have found the entry
        _constructor._of_package["first_use.Waits"] = Waits

    monkeypatch.setattr(_constructor, "_registering", {"first_use.": register})
    monkeypatch.setattr(_constructor, "_of_package", {})

    def find():
        try:
            assert _constructor.of_package("first_use.Waits") is Waits
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=find) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and not _constructor._registering
    # A prefix that another thread has registered since the list was made.
    class Removed(dict):
        def __iter__(self):
            return iter(["first_use."])

    monkeypatch.setattr(_constructor, "_registering", Removed())
    assert _constructor.of_package("first_use.Waits") is Waits
