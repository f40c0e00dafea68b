"""Whole models: the files are loaded by onnxruntime and give the module's values at several sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .models import MODELS, example
from .test_rows import check, session_of

pytest.importorskip("onnxruntime")
SIZES = ({"batch": 2, "length": 6}, {"batch": 3, "length": 11}, {"batch": 1, "length": 3})


@pytest.mark.slow
@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("name", MODELS)
def test_model(torch: Any, name: str, opset: int) -> None:
    make, inputs, dynamic = MODELS[name]
    torch.manual_seed(0)
    module = make(torch).eval()
    program = torch.onnx.export(module, example(torch, inputs, SIZES[0]), dynamic_shapes=dynamic, opset_version=opset)
    model = program.model_proto
    check(model)
    session = session_of(model)
    names = {n for n, _ in module.named_parameters()}
    assert {i.name for i in model.graph.initializer} >= names
    for sizes in SIZES:
        args = example(torch, inputs, sizes)
        with torch.no_grad():
            expected = module(*args)
        found = session.run(None, {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)})
        np.testing.assert_allclose(found[0], expected.numpy(), atol=2e-5, rtol=1e-4)
