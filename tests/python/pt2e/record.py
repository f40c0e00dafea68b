"""Records the graphs and values of torchao in data/: run with a Python that has PyTorch and torchao.

    python tests/python/pt2e/record.py
"""

import json
import pathlib
import warnings

import models
import numpy as np
import torch
import torchao.quantization as q
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import ComposableQuantizer  # noqa: F401
from torchao.quantization.pt2e.quantizer.arm_inductor_quantizer import (  # noqa: F401
    ArmInductorQuantizer,
    get_default_arm_inductor_quantization_config,
)
from torchao.quantization.pt2e.quantizer.embedding_quantizer import EmbeddingQuantizer  # noqa: F401
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (  # noqa: F401
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)
from torchao.quantization.quant_primitives import _choose_qparams_affine_tinygemm, _quantize_affine_tinygemm
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config  # noqa: F401

warnings.filterwarnings("ignore")
DATA = pathlib.Path(__file__).parent / "data"


def converted(name, kind, is_qat):
    made = models.model(torch, name).train(is_qat)
    samples = models.inputs(torch, name)
    graph = torch.export.export(made, (samples[0],)).module(check_guards=False)
    prepared = (prepare_qat_pt2e if is_qat else prepare_pt2e)(graph, models.quantizer(globals(), kind, is_qat))
    text = str(prepared.graph)
    for sample in samples:
        prepared(sample)
    result = convert_pt2e(prepared)
    return {"prepared": text, "converted": str(result.graph), "output": result(samples[0]).detach().numpy().tolist()}


def graphs():
    found = {name: converted(*case, False) for name, case in models.CASES.items()}
    found |= {f"qat-{name}": converted(*case, True) for name, case in models.QAT.items()}
    (DATA / "graphs.json").write_text(json.dumps(found, indent=0))


WEIGHTS = {
    "int8": lambda: q.Int8WeightOnlyConfig(),
    "int8_tensor": lambda: q.Int8WeightOnlyConfig(granularity=q.PerTensor()),
    "int8_group": lambda: q.Int8WeightOnlyConfig(granularity=q.PerGroup(16)),
    "int8_dynamic": lambda: q.Int8DynamicActivationInt8WeightConfig(),
    "int8_dynamic_asymmetric": lambda: q.Int8DynamicActivationInt8WeightConfig(act_mapping_type=q.MappingType.ASYMMETRIC),
    "int8_static": lambda: q.Int8StaticActivationInt8WeightConfig(act_quant_scale=torch.tensor([[0.03]]), granularity=q.PerTensor()),
    "int4": lambda: q.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=q.PerGroup(16)),
    "int3_axis": lambda: q.IntxWeightOnlyConfig(weight_dtype=torch.int3, mapping_type=q.MappingType.ASYMMETRIC),
    "int8_int4": lambda: q.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=q.PerGroup(16)),
    "float8": lambda: q.Float8WeightOnlyConfig(),
    "float8_group": lambda: q.Float8WeightOnlyConfig(granularity=q.PerGroup(16)),
}


def weights():
    rng = np.random.default_rng(3)
    w, b, x = (rng.standard_normal(s).astype(np.float32) for s in ((24, 32), (24,), (5, 32)))
    arrays = {"w": w, "b": b, "x": x}
    for name, make in WEIGHTS.items():
        layer = torch.nn.Linear(32, 24)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(w))
            layer.bias.copy_(torch.tensor(b))
        q.quantize_(layer, make())
        arrays[f"{name}.weight"] = layer.weight.dequantize().numpy()
        arrays[f"{name}.data"] = layer.weight.qdata.to(torch.float32).numpy()
        arrays[f"{name}.output"] = layer(torch.tensor(x)).detach().numpy()
        if name == "int8_dynamic":
            torch.save(layer.state_dict(), DATA / "int8_dynamic.pt")
    for mapping in q.MappingType:
        for bits, (low, high) in {"8": (-128, 127), "4": (-8, 7), "u4": (0, 15)}.items():
            if mapping == q.MappingType.SYMMETRIC_NO_CLIPPING_ERR and low == 0:
                continue
            dtype = torch.uint8 if low == 0 else torch.int8
            scale, point = q.choose_qparams_affine(torch.tensor(w), mapping, (1, 8), dtype, low, high, 1e-6)
            values = q.quantize_affine(torch.tensor(w), (1, 8), scale, point, dtype, low, high)
            back = q.dequantize_affine(values, (1, 8), scale, point, dtype, low, high)
            for key, value in {"scale": scale, "point": point, "values": values, "back": back}.items():
                arrays[f"affine.{mapping.name}.{bits}.{key}"] = value.numpy()
    scale, point = _choose_qparams_affine_tinygemm(torch.tensor(w), q.MappingType.ASYMMETRIC, (1, 16), torch.int32, 0, 15, 1e-6 / 15)
    arrays["tinygemm.scale"], arrays["tinygemm.point"] = scale.numpy(), point.numpy()
    arrays["tinygemm.values"] = _quantize_affine_tinygemm(torch.tensor(w), (1, 16), scale, point, torch.int32, 0, 15).numpy()
    np.savez_compressed(DATA / "weights.npz", **arrays)


if __name__ == "__main__":
    graphs()
    weights()
