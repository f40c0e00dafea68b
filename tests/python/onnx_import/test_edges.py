"""Results that a model gives at the edges of operators' definitions, for inputs in the engine and for constants, which the client
computes with."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import teletensor as torch
from teletensor.onnx.backend import PreparedModel

from .graphs import model


def of_node(op: str, arrays: list, outputs: int, opset: int, attributes: dict, is_constant: bool) -> list:
    """The outputs of one node whose inputs are those of the model, or constants."""
    tensors = [numpy_helper.from_array(np.asarray(a), f"x{i}") for i, a in enumerate(arrays)]
    infos = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in tensors]
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, [t.name for t in tensors], names, **attributes)
    results = [onnx.ValueInfoProto(name=n) for n in names]
    given = ([], results, tensors) if is_constant else (infos, results)
    proto = helper.make_model(helper.make_graph([node], "g", *given), opset_imports=[helper.make_opsetid("", opset)])
    feed = {} if is_constant else {t.name: np.asarray(a) for t, a in zip(tensors, arrays)}
    return list(PreparedModel(torch.onnx.load(proto)).run(feed))


def int64(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


def float32(*numbers: float) -> np.ndarray:
    return np.asarray(numbers, np.float32)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
BIG = np.asarray([[2**31 - 1, 3], [5, 2**30]])
HUGE = np.asarray([[2**62, 3], [2**53 + 1, 1]])
FLOATS = float32(-1e6, -500, 448, 465, 1e6, 0.001)

# op, inputs, attributes, opset, expected outputs
EXACT = {
    "Div towards 0": ("Div", [int64(-(2**60) - 1, 2**60 + 3, -(2**63), -7), int64(2, -2, 3, 2)], {}, 14,
                      [int64(-(2**59), -(2**59) - 1, -3074457345618258602, -3)]),
    "GatherElements of fewer rows": ("GatherElements", [X, np.asarray([[0, -1]])], {"axis": 1}, 13, [float32(0, 3).reshape(1, 2)]),
    "GatherElements of fewer columns": ("GatherElements", [X, np.asarray([[0, -1], [2, 1]])], {"axis": 0}, 13,
                                        [float32(0, 9, 8, 5).reshape(2, 2)]),
    "GatherND with batches": ("GatherND", [X, np.asarray([[1], [-1], [0]])], {"batch_dims": 1}, 13, [float32(1, 7, 8)]),
    "ScatterND that adds": ("ScatterND", [float32(1, 2), np.asarray([[0], [0], [-1]]), float32(1, 2, 3)], {"reduction": "add"}, 18,
                            [float32(4, 5)]),
    "CumSum backwards": ("CumSum", [float32(1, 2, 3), np.asarray(0)], {"reverse": 1, "exclusive": 1}, 14, [float32(5, 3, 0)]),
    "CumSum of nothing": ("CumSum", [np.zeros((2, 0), np.float32), np.asarray(1)], {"exclusive": 1}, 14, [np.zeros((2, 0), np.float32)]),
    "ReduceMax of nothing": ("ReduceMax", [np.zeros((2, 0), np.float32), int64(1)], {"keepdims": 0}, 20,
                             [float32(-np.inf, -np.inf)]),
    "Pow with a negative exponent": ("Pow", [np.asarray([1, 2], np.int32), np.asarray([-1, -2], np.int32)], {}, 15,
                                     [np.asarray([1, 0], np.int32)]),
    "Slice backwards from before the start": ("Slice", [X, int64(-10), int64(-20), int64(1), int64(-1)], {}, 13, [X[:, :1]]),
    "Range that is empty": ("Range", [np.asarray(3), np.asarray(1), np.asarray(1)], {}, 11, [int64()]),
    "Cast to float8 saturates": ("Cast", [FLOATS], {"to": TensorProto.FLOAT8E4M3FN}, 21,
                                 [np.clip(FLOATS, -448, 448).astype(ml_dtypes.float8_e4m3fn)]),
    "Cast to float8 with NaN": ("Cast", [FLOATS], {"to": TensorProto.FLOAT8E4M3FNUZ, "saturate": 0}, 21,
                                [FLOATS.astype(ml_dtypes.float8_e4m3fnuz)]),
    "Cast to uint64": ("Cast", [float32(-3.7, 2.5)], {"to": TensorProto.UINT64}, 21, [np.asarray([2**64 - 3, 2], np.uint64)]),
    "Cast to text": ("Cast", [int64(15, -2)], {"to": TensorProto.STRING}, 21, [np.asarray(["15", "-2"], object)]),
    "Cast of text": ("Cast", [np.asarray(["9007199254740993", "-2.5"], object)], {"to": TensorProto.INT64}, 21,
                     [int64(9007199254740993, -2)]),
    "MatMul of int32 wraps": ("MatMul", [BIG.astype(np.int32)] * 2, {}, 13, [(BIG @ BIG).astype(np.int32)]),
    "MatMul of uint64 wraps": ("MatMul", [HUGE.astype(np.uint64)] * 2, {}, 13, [HUGE.astype(np.uint64) @ HUGE.astype(np.uint64)]),
    "Gemm of int64": ("Gemm", [HUGE, np.eye(2, dtype=np.int64), HUGE], {"beta": -1.0}, 13, [np.zeros((2, 2), np.int64)]),
    "Clip without bounds": ("Clip", [float32(1, -2)], {}, 6, [float32(1, -2)]),
    "Sign of NaN": ("Sign", [float32(np.nan, -2)], {}, 13, [float32(np.nan, -1)]),
    "ReduceLogSum of integers": ("ReduceLogSum", [np.asarray([3, 5], np.int32)], {"keepdims": 0}, 18, [np.asarray(2, np.int32)]),
    "DynamicQuantizeLinear of zeros": ("DynamicQuantizeLinear", [float32(0, 0)], {}, 11,
                                       [np.zeros(2, np.uint8), np.asarray(1, np.float32), np.asarray(0, np.uint8)]),
    "QLinearConv between two numbers": (
        "QLinearConv", [np.full((1, 1, 1, 1), 200, np.uint8), np.float32(0.05), np.uint8(51), np.full((1, 1, 1, 1), 23, np.uint8),
                        np.float32(0.01), np.uint8(18), np.float32(0.3), np.uint8(79), np.asarray([155], np.int32)],
        {}, 10, [np.full((1, 1, 1, 1), 81, np.uint8)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_exact_results(name, is_constant):
    op, arrays, attributes, opset, expected = EXACT[name]
    found = of_node(op, arrays, len(expected), opset, attributes, is_constant)
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tolist() == b.tolist() or np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize(
    ("op", "arrays", "outputs"),
    [
        ("GatherND", [X, np.asarray([[0, 4]])], 1),
        ("GatherND", [X, np.asarray([[1, -5]])], 1),
        ("ScatterND", [X, np.asarray([[0, 4]]), float32(1)], 1),
        ("Split", [X, int64(1, 1)], 2),
        ("Split", [X, int64(1, 1, 1)], 2),
    ],
)
def test_indices_and_sizes_that_do_not_fit_are_refused(op, arrays, outputs, is_constant):
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        of_node(op, arrays, outputs, 13, {}, is_constant)


def test_normalization_of_numbers_far_from_0():
    x = (np.arange(18, dtype=np.float32).reshape(1, 2, 3, 3) + 10_000).astype(np.float32)
    found = of_node("MeanVarianceNormalization", [x], 1, 13, {}, False)[0]
    wide = x.astype(np.float64)
    expected = (wide - wide.mean((0, 2, 3), keepdims=True)) / wide.std((0, 2, 3), keepdims=True)
    assert np.allclose(found, expected, atol=1e-3)


def test_activations_of_recurrent_layers_take_the_numbers_in_turn():
    """The only alpha is for LeakyRelu, the last activation."""
    rng = np.random.default_rng(0)
    x, w, r = (rng.standard_normal(s).astype(np.float32) for s in ((1, 2, 3), (1, 6, 3), (1, 6, 2)))
    attributes = {"hidden_size": 2, "activations": ["Sigmoid", "LeakyRelu"], "activation_alpha": [0.3]}
    found = of_node("GRU", [x, w, r], 2, 14, attributes, False)[1][0]
    gates = x[0] @ w[0].T
    z, new = 1 / (1 + np.exp(-gates[:, :2])), gates[:, 4:]
    assert np.allclose(found, (1 - z) * np.where(new < 0, 0.3 * new, new), atol=1e-5)


def test_a_resized_dimension_of_size_1_with_pytorchs_coordinates():
    x = np.asarray([1.0, 5.0, 2.0, 7.0], np.float32).reshape(1, 1, 1, 4)
    sizes = [x, float32(), float32(), int64(1, 1, 1, 1)]
    attributes = {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}
    assert of_node("Resize", sizes, 1, 11, attributes, False)[0].item() == 1.0


def test_a_value_in_place_of_an_initializer_is_checked():
    proto = model("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1.0, 1.0}> { v = Mul(w, w)  y = Add(x, v) }")
    loaded = torch.onnx.load(proto)
    assert loaded(torch.ones(2)).tolist() == [2.0, 2.0]
    assert loaded({"x": torch.ones(2), "w": torch.tensor([2.0, 3.0])}).tolist() == [5.0, 10.0]
    with pytest.raises(TypeError, match="'w'"):
        loaded({"x": torch.ones(2), "w": torch.ones(2, dtype=torch.int64)})
    with pytest.raises(ValueError, match="'w'"):
        loaded({"x": torch.ones(2), "w": torch.ones(1)})


WEIGHTS = "g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}, float s = {2.0}> { w2 = Mul(w, s)  y = Mul(x, w2) }"


def test_changed_weights_are_used_where_the_client_computes():
    loaded = torch.onnx.load(model(WEIGHTS))
    with torch.no_grad():
        assert loaded(torch.ones(2)).tolist() == [2.0, 4.0]
        loaded.w.mul_(10.0)
        assert loaded(torch.ones(2)).tolist() == [20.0, 40.0]
        loaded.load_state_dict({"w": torch.ones(2), "s": torch.tensor(3.0)})
        assert loaded(torch.ones(2)).tolist() == [3.0, 3.0]


def test_gradients_flow_to_weights_where_the_client_computes():
    loaded = torch.onnx.load(model(WEIGHTS), trainable=True)
    loaded(torch.tensor([1.0, 5.0])).sum().backward()
    assert loaded.w.grad.tolist() == [2.0, 10.0] and loaded.s.grad.item() == 11.0


def test_a_loop_that_does_not_run_has_outputs_of_the_declared_types():
    loaded = torch.onnx.load(
        model(
            "g (float[2] x, int64 n) => (float[2] y, int64[M, 2] s) {\n"
            "y, s = Loop (n, , x) <body = b (int64 i, bool c, float[2] v) => (bool co, float[2] vo, int64[2] r) {\n"
            "co = Identity(c)  vo = Add(v, v)  r = Cast <to = 7> (v) }> }"
        )
    )
    y, s = loaded(torch.ones(2), torch.tensor(0))
    assert y.tolist() == [1.0, 1.0] and s.dtype == torch.int64 and list(s.shape) == [0, 2]


def test_a_negative_size_is_divided_towards_0():
    """Directly, and in a Program, which may refuse other sizes, but not divide downwards."""
    loaded = torch.onnx.load(
        model(
            "g (float[N, 4] x) => (int64[M] y) { s = Shape(x)  n = Neg(s)  t = Constant <value_ints = [2]> ()  y = Div(n, t) }"
        )
    )
    assert loaded(torch.ones(3, 4)).tolist() == [-1, -2]
    program = loaded.program(torch.ones(3, 4))
    assert program(torch.ones(3, 4)).tolist() == [-1, -2]


@pytest.mark.parametrize(
    ("op", "arrays", "outputs", "attributes", "text"),
    [
        ("Conv", [np.ones((1, 1, 4)), np.ones((1, 1, 3))], 1, {"kernel_shape": [2]}, "kernel_shape"),
        ("ConvTranspose", [np.ones((1, 1, 4)), np.ones((1, 1, 3))], 1, {"kernel_shape": [2]}, "kernel_shape"),
        ("Split", [X], 2, {"num_outputs": 3}, "num_outputs"),
        ("StringNormalizer", [np.asarray(["I"], object)], 1, {"case_change_action": "LOWER", "locale": "tr_TR"}, "tr_TR"),
    ],
)
def test_attributes_that_contradict_or_are_not_implemented_are_refused(op, arrays, outputs, attributes, text):
    with pytest.raises((ValueError, NotImplementedError), match=text):
        of_node(op, arrays, outputs, 18, attributes, False)


def of_classifier(op: str, version: int, x: np.ndarray, **attributes) -> list:
    """The labels and scores of a classifier of ai.onnx.ml."""
    node = helper.make_node(op, ["x"], ["label", "scores"], domain="ai.onnx.ml", classlabels_ints=[3, 7], **attributes)
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(x.shape))]
    results = [onnx.ValueInfoProto(name=n) for n in ("label", "scores")]
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    proto = helper.make_model(helper.make_graph([node], "g", given, results), opset_imports=imports)
    return list(PreparedModel(torch.onnx.load(proto)).run([x]))


def test_a_linear_classifier_of_one_row_divides_two_classes_at_0():
    labels, scores = of_classifier("LinearClassifier", 1, float32(0.3, -0.3).reshape(2, 1), coefficients=[1.0], intercepts=[0.0])
    assert labels.tolist() == [7, 3] and np.allclose(scores, [[-0.3, 0.3], [0.3, -0.3]])


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_scores_of_a_support_vector_classifier_of_two_classes(post):
    """The decision x - 3 x + 0.5 is for the first class where it is positive."""
    x = float32(0, 1).reshape(2, 1)
    labels, scores = of_classifier(
        "SVMClassifier", 1, x, kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0], coefficients=[1.0, -1.0],
        support_vectors=[1.0, 3.0], vectors_per_class=[1, 1], rho=[0.5], post_transform=post,
    )  # fmt: skip
    decision = np.asarray([0.5, -1.5])
    raw = np.stack([-decision, decision], 1)
    powers = np.exp(raw)
    expected = {"NONE": raw, "SOFTMAX": powers / powers.sum(1, keepdims=True), "LOGISTIC": 1 / (1 + np.exp(-raw))}[post]
    assert labels.tolist() == [3, 7] and np.allclose(scores, expected, atol=1e-6)


def test_probabilities_that_no_standard_defines_are_refused():
    with pytest.raises(NotImplementedError, match="PROBIT"):
        of_classifier("LinearClassifier", 1, float32(0.3).reshape(1, 1), coefficients=[1.0], intercepts=[0.0], post_transform="PROBIT")
