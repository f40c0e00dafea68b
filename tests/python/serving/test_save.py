"""Native models: what save() writes, and what it refuses."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

import teletensor as torch
from examples.serve_llama import Llama
from teletensor import nn, serving


def header_of(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def entry_of(folder, number=0):
    return serving.read(folder)["entries"][number]


def sizes_of(port):
    return [int(size) for size in port["sizes"]]


def test_module_has_names_of_its_parameters_and_a_dynamic_batch(tmp_path):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    serving.save(model, tmp_path / "1", torch.randn(1, 4))
    entry = entry_of(tmp_path / "1")
    assert entry["name"] == ""
    assert [(p["name"], sizes_of(p), p["size_names"]) for p in entry["inputs"]] == [("input", [-1, 4], ["batch", ""])]
    assert [(p["name"], sizes_of(p), p["size_names"]) for p in entry["outputs"]] == [("output", [-1, 3], ["batch", ""])]
    assert entry["weights"] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    header, data = header_of(tmp_path / "1" / "model.safetensors")
    for name, parameter in model.state_dict().items():
        begin, end = header[name]["data_offsets"]
        assert header[name]["shape"] == list(parameter.shape)
        assert data[begin:end] == parameter.detach().numpy().tobytes()


def test_folders_of_a_new_repository_are_made(tmp_path):
    for _ in range(2):
        serving.save(lambda x: x + 1, tmp_path / "models" / "net" / "1", example_inputs=torch.ones(2, 3))
    assert sorted(p.name for p in (tmp_path / "models/net/1").iterdir()) == ["model.safetensors", "program.pb"]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        serving.save(lambda x: x + 1, tmp_path / "file" / "1", example_inputs=torch.ones(2, 3))


def test_weights_of_modules_that_a_function_uses(tmp_path):
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    offset = torch.ones(3)
    serving.save(lambda x: second(first(x)) + first.weight[0] + offset, tmp_path / "1", torch.ones(2, 3))
    names = entry_of(tmp_path / "1")["weights"]
    assert sorted(names) == ["constant_0", "first.bias", "first.weight", "second.bias", "second.weight"]
    header, data = header_of(tmp_path / "1" / "model.safetensors")
    begin, end = header["second.weight"]["data_offsets"]
    assert data[begin:end] == second.weight.detach().numpy().tobytes()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool])
def test_weights_of_other_dtypes(tmp_path, dtype):
    weight = (torch.arange(6).reshape(2, 3) % 2).to(dtype)
    serving.save(lambda x: x.to(dtype) + weight, tmp_path / "1", torch.ones(2, 3))
    header, data = header_of(tmp_path / "1" / "model.safetensors")
    assert header["constant_0"]["shape"] == [2, 3]
    assert len(data) == 6 * weight.element_size()
    restored = torch.load(tmp_path / "1" / "model.safetensors") if dtype is not torch.bool else None
    if restored is not None:
        assert torch.equal(restored["constant_0"], weight)


def test_outputs_in_containers_that_are_inputs_or_weights_or_equal(tmp_path):
    weight = torch.ones(3)

    def f(a, b):
        total = a + b
        return {"a": a, "total": total, "again": [total, weight]}

    serving.save(f, tmp_path / "1", (torch.ones(2, 3), torch.ones(2, 3)), output_names=["a", "total", "again", "weight"])
    entry = entry_of(tmp_path / "1")
    assert [p["name"] for p in entry["inputs"]] == ["a", "b"]
    assert {p["name"]: sizes_of(p) for p in entry["outputs"]} == {
        "a": [-1, 3], "total": [-1, 3], "again": [-1, 3], "weight": [3],
    }  # fmt: skip


def test_named_dynamic_sizes_and_requirements(tmp_path):
    def f(tokens, mask):
        if tokens.shape[1] > 100:
            raise ValueError("too long")
        return tokens.sum(1), tokens * mask

    serving.save(
        f, tmp_path / "1", (torch.ones(2, 5), torch.ones(2, 5)), dynamic_shapes={"tokens": {1: "length"}, "mask": {1: "length"}}
    )
    entry = entry_of(tmp_path / "1")
    assert [p["size_names"] for p in entry["inputs"]] == [["batch", "length"]] * 2
    assert [p["size_names"] for p in entry["outputs"]] == [["batch"], ["batch", "length"]]
    assert len(entry["requirements"]) == 1
    assert entry["requirements"][0]["right"] == ["0", "100", "0"]


def test_static_model(tmp_path):
    serving.save(lambda x: x * 2, tmp_path / "1", torch.ones(3, 4), dynamic_batch=False)
    assert sizes_of(entry_of(tmp_path / "1")["inputs"][0]) == [3, 4]
    assert sizes_of(entry_of(tmp_path / "1")["outputs"][0]) == [3, 4]


def test_what_is_refused(tmp_path):
    counter = torch.zeros(2)
    folder = tmp_path / "1"
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="accepts only batch = 2"):
        serving.save(lambda x: x + torch.ones(2, 3) if x.shape[0] == 2 else x[:, :1] @ torch.ones(2, 2), folder, x)
    with pytest.raises(ValueError, match="changes its 0 states"):
        serving.save(lambda x: (counter.add_(1), x + counter[0])[1], folder, x)
    with pytest.raises(ValueError, match="changes its 0 states"):
        serving.save(nn.BatchNorm1d(3).train(), folder, x)
    with pytest.raises(TypeError, match="tensors as results"):
        serving.save(lambda x: (x + 1, 3), folder, x)
    with pytest.raises(ValueError, match="example_inputs"):
        serving.save(lambda x: x, folder)
    with pytest.raises(ValueError, match="names of inputs"):
        serving.save(lambda x, y: x + y, folder, (x, x), input_names=["a", "a"])
    with pytest.raises(ValueError, match="got a scalar"):
        serving.save(lambda x: x + 1, folder, torch.tensor(1.0))
    with pytest.raises(ValueError, match="dynamic_shapes"):
        serving.save(lambda x: x + 1, folder, x, dynamic_shapes={"z": {1: "n"}})
    with pytest.raises(RuntimeError, match="value"):
        serving.save(lambda x: x if x.sum().item() > 0 else -x, folder, x)
    assert not (folder / "program.pb").exists()


def test_read_refuses_other_files(tmp_path):
    (tmp_path / "program.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ValueError, match="teletensor.v1.Model"):
        serving.read(tmp_path)


def test_decoder_has_two_entries_that_share_weights_and_cache(tmp_path):
    torch.manual_seed(0)
    model = Llama(symbols=13, length=32, width=16, layers=2).eval()
    serving.save(serving.Decoder(model.prefill, model.step, model.cache(4), 4, 32), tmp_path / "1")
    described = serving.read(tmp_path / "1")
    assert described["attributes"] == {"generation.slots": "4", "generation.max_length": "32"}
    prefill, step = described["entries"]
    assert (prefill["name"], step["name"]) == ("prefill", "step")
    assert prefill["weights"] and set(prefill["weights"]) == set(step["weights"])
    assert prefill["states"] == step["states"] and step["states"][0]["in_place"]
    assert sizes_of(step["outputs"][0]) == [-1, 13]


def test_decoder_functions_agree_with_the_whole_model():
    """That of the tests, as an example of prefill and step."""
    torch.manual_seed(0)
    model = Llama(symbols=13, length=32, width=16, layers=2).eval()
    cache = model.cache(4)
    rows = [[1, 2, 3], [4, 5, 6, 7, 8], [9]]
    with torch.no_grad():
        logits = []
        for slot, row in enumerate(rows):
            padded = torch.tensor([row + [0] * (8 - len(row))])
            logits.append(model.prefill(padded, torch.tensor([len(row)]), torch.tensor([slot]), cache)[0].numpy())
        for _ in range(4):
            tokens = [int(np.argmax(each)) for each in logits]
            for row, each in zip(rows, logits):
                expected = model(torch.tensor([row]))[0, -1].numpy()
                np.testing.assert_allclose(each, expected, rtol=1e-4, atol=1e-5)
            for row, token in zip(rows, tokens):
                row.append(token)
            stepped = model.step(
                torch.tensor(tokens), torch.tensor([len(row) - 1 for row in rows]), torch.arange(16), cache
            ).numpy()
            logits = list(stepped)
