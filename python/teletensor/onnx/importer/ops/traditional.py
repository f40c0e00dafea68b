"""Operators of ai.onnx.ml for features and linear and kernel models."""

from __future__ import annotations

from typing import Any

import numpy as np

import teletensor as torch

from .. import _values
from .._call import Call, keeps
from .scores import transformed

Tensor = torch.Tensor


def _row(call: Call, name: str, x: Tensor) -> Tensor:
    return torch.tensor(call.need(name), device=x.device, dtype=torch.float32)


def _extract(_call: Call, x: Tensor, places: Tensor) -> Tensor:
    found = x.index_select(-1, places.reshape([-1]))
    return found.reshape([1, -1]) if x.dim() == 1 else found


def _binarize(call: Call, x: Tensor) -> Tensor:
    return (x > call.get("threshold", 0.0)).to(x.dtype)


def _scale(call: Call, x: Tensor) -> Tensor:
    return (x.to(torch.float32) - _row(call, "offset", x)) * _row(call, "scale", x)


def _normalize(call: Call, x: Tensor) -> Tensor:
    x, norm = x.to(torch.float32), call.get("norm", "MAX")
    total = {
        "MAX": lambda: x.amax(-1, True),
        "L1": lambda: x.abs().sum(-1, True),
        "L2": lambda: torch.sqrt((x * x).sum(-1, True)),
    }
    divisor = total[norm]()
    return x / torch.where(divisor == 0, torch.ones_like(divisor), divisor)


def _impute(call: Call, x: Tensor) -> Tensor:
    is_float = x.dtype.is_floating_point
    values = call.get("imputed_value_floats") if is_float else call.get("imputed_value_int64s")
    missing = call.get("replaced_value_float", 0.0) if is_float else call.get("replaced_value_int64", 0)
    given = torch.tensor(values, device=x.device, dtype=x.dtype)
    where = torch.isnan(x) if is_float and np.isnan(missing) else x == missing
    return torch.where(where, given, x)


@keeps()
def _features(call: Call, *inputs: Any) -> Tensor:
    tensors = [call.tensor(v).to(torch.float32) for v in inputs]
    sizes = call.get("inputdimensions") or [t.shape[-1] for t in tensors]
    return torch.cat([(t.reshape([1, -1]) if t.dim() == 1 else t)[:, :n] for t, n in zip(tensors, sizes)], 1)


@keeps()
def _one_hot(call: Call, x: Any) -> Tensor:
    labels = call.get("cats_strings") or call.get("cats_int64s")
    values = _values.array(x)
    known = np.asarray(labels, dtype=object if isinstance(labels[0], str) else None)
    _values.bounded(values.size * len(labels), "OneHotEncoder")
    found = (values[..., None] == known).astype(np.float32)
    if not call.get("zeros", 1) and not found.any(-1).all():
        raise ValueError("[OneHotEncoder] expected only known categories")
    return call.tensor(found)


_KEYS = ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor", "classes_strings")
_RESULTS = ("values_strings", "values_int64s", "values_floats", "values_tensor")


def _one_of(call: Call, names: tuple) -> Any:
    for name in names:
        if name in call.attributes:
            found = call.get(name)
            return _values.array(found) if name.endswith("tensor") else found
    return None


def _placed(call: Call, found: np.ndarray) -> Any:
    return found if found.dtype == object else call.tensor(found)


@keeps()
def _encode_labels(call: Call, x: Any) -> Any:
    array = _values.array(x)
    if call.version < 2:
        labels = call.need("classes_strings")
        if array.dtype == object:
            places = {t: i for i, t in enumerate(labels)}
            return call.tensor(
                np.vectorize(lambda t: places.get(t, call.get("default_int64", -1)), otypes=[np.int64])(array)
            )
        texts = [
            labels[i] if 0 <= i < len(labels) else call.get("default_string", "_Unused") for i in array.reshape(-1)
        ]
        return np.asarray(texts, dtype=object).reshape(array.shape)
    keys, values = _one_of(call, _KEYS), _one_of(call, _RESULTS)
    kinds = {"values_strings": (object, "default_string", "_Unused"), "values_int64s": (np.int64, "default_int64", -1),
             "values_floats": (np.float32, "default_float", -0.0)}  # fmt: skip
    name = next(n for n in _RESULTS if n in call.attributes)
    if name == "values_tensor":
        dtype, default = values.dtype, call.get("default_tensor")
        default = (
            _values.array(default).reshape(-1)[0]
            if default is not None
            else ("_Unused" if dtype.kind == "O" else -1 if dtype.kind == "i" else -0.0)
        )
    else:
        dtype, attribute, fallback = kinds[name]
        default = call.get(attribute, fallback)
    table = {k: v for k, v in zip(list(keys), list(values))}
    nan = next((v for k, v in table.items() if isinstance(k, (float, np.floating)) and np.isnan(k)), default)
    flat = [
        nan if isinstance(t, (float, np.floating)) and np.isnan(t) else table.get(t, default) for t in array.reshape(-1)
    ]
    found = np.empty(array.shape, dtype=dtype)
    found.reshape(-1)[:] = flat
    return _placed(call, found)


@keeps()
def _map_categories(call: Call, x: Any) -> Any:
    array = _values.array(x)
    texts, numbers = call.need("cats_strings"), call.need("cats_int64s")
    if array.dtype == object:
        table = dict(zip(texts, numbers))
        return call.tensor(
            np.asarray([table.get(t, call.get("default_int64", -1)) for t in array.reshape(-1)], np.int64).reshape(
                array.shape
            )
        )
    table = dict(zip(numbers, texts))
    found = [table.get(int(n), call.get("default_string", "_Unused")) for n in array.reshape(-1)]
    return np.asarray(found, dtype=object).reshape(array.shape)


@keeps()
def _dict_vectorize(call: Call, x: dict) -> Any:
    words = call.get("string_vocabulary") or call.get("int64_vocabulary")
    return call.tensor(np.asarray([[x.get(w, 0) for w in words]]))


@keeps()
def _cast_map(call: Call, x: dict) -> Any:
    size, dense = call.get("max_map", 1), call.get("map_form", "DENSE") == "DENSE"
    kind = {"TO_FLOAT": np.float32, "TO_INT64": np.int64, "TO_STRING": object}[call.get("cast_to", "TO_FLOAT")]
    if dense:
        values = [x[k] for k in sorted(x)]
    else:
        if size > 1 << 24:
            raise ValueError(f"[CastMap] expected a max_map of at most {1 << 24}, got {size}")
        values = [x.get(i, 0) for i in range(size)]
    return _placed(call, np.asarray([values], dtype=kind))


@keeps()
def _zip_map(call: Call, x: Any) -> tuple:
    labels = call.get("classlabels_strings") or call.get("classlabels_int64s")
    return ([dict(zip(labels, row.tolist())) for row in np.atleast_2d(_values.array(x))],)


def _named(chosen: Tensor, labels: list) -> Any:
    if isinstance(labels[0], str):
        return np.asarray(labels, dtype=object)[_values.array(chosen)]
    return torch.tensor(labels, device=chosen.device, dtype=torch.int64)[chosen]


def _linear(call: Call, x: Tensor, classes: int) -> Tensor:
    weights = torch.tensor(call.need("coefficients"), device=x.device, dtype=torch.float32).reshape([classes, -1])
    found = torch.matmul(x.to(torch.float32), weights.t())
    bias = call.get("intercepts")
    return found if not bias else found + torch.tensor(bias, device=x.device, dtype=torch.float32)


def _linear_regressor(call: Call, x: Tensor) -> Tensor:
    return transformed(_linear(call, x, call.get("targets", 1)), call.get("post_transform", "NONE"))


def _linear_classifier(call: Call, x: Tensor) -> tuple:
    labels = call.get("classlabels_strings") or call.get("classlabels_ints")
    rows = len(call.get("intercepts") or []) or len(labels)
    scores, post = _linear(call, x, rows), call.get("post_transform", "NONE")
    if rows == 1 and len(labels) == 2:
        if post == "PROBIT":
            raise NotImplementedError("[LinearClassifier] PROBIT of one score for two classes is not implemented")
        scores = torch.cat([-scores, scores], 1)
        return _named((scores[:, 1] > 0).to(torch.int64), labels), transformed(scores, post)
    return _named(scores.argmax(1), labels), transformed(scores, post)


def _kernel(call: Call, x: Tensor, vectors: Tensor) -> Tensor:
    kind = call.get("kernel_type", "LINEAR")
    gamma, coef, degree = (call.get("kernel_params") or [0.0, 0.0, 3.0])[:3]
    if kind == "RBF":
        distance = (x.unsqueeze(1) - vectors.unsqueeze(0)).square().sum(-1)
        return torch.exp(-gamma * distance)
    dot = torch.matmul(x, vectors.t())
    kinds = {
        "LINEAR": lambda: dot,
        "POLY": lambda: (gamma * dot + coef) ** degree,
        "SIGMOID": lambda: torch.tanh(gamma * dot + coef),
    }
    if kind not in kinds:
        raise ValueError(f"[{call.name}] expected a kernel_type of LINEAR, POLY, RBF or SIGMOID, got {kind!r}")
    return kinds[kind]()


def _svm_regressor(call: Call, x: Tensor) -> Tensor:
    x, count = x.to(torch.float32), call.get("n_supports", 0)
    coefficients, rho = _row(call, "coefficients", x), _row(call, "rho", x)
    if count:
        found = torch.matmul(_kernel(call, x, _row(call, "support_vectors", x).reshape([count, -1])), coefficients)
    else:
        found = _kernel(call, x, coefficients.reshape([1, -1])).reshape([-1])
    found = (found + rho[0]).unsqueeze(1)
    found = (
        torch.where(found > 0, torch.ones_like(found), -torch.ones_like(found)) if call.get("one_class", 0) else found
    )
    return transformed(found, call.get("post_transform", "NONE"))


def _svm_classifier(call: Call, x: Tensor) -> tuple:
    x = x.to(torch.float32)
    labels = call.get("classlabels_strings") or call.get("classlabels_ints")
    counts, rho = call.get("vectors_per_class") or [], _row(call, "rho", x)
    post = call.get("post_transform", "NONE")
    if not counts or call.get("prob_a"):
        return _svm_linear(call, x, labels, rho, post) if not counts else _svm_probabilities(call)
    scores = _pair_scores(call, x, counts, rho)
    classes = len(counts)
    if classes == 2:
        if post == "PROBIT":
            raise NotImplementedError("[SVMClassifier] PROBIT of one score for two classes is not implemented")
        if min(call.need("coefficients")) >= 0:
            raise NotImplementedError("[SVMClassifier] coefficients of one sign, for which the standard defines no scores")
        chosen = (scores[:, 0] <= 0).to(torch.int64)
        return _named(chosen, labels), transformed(torch.cat([-scores, scores], 1), post)
    votes = torch.zeros([x.shape[0], classes], device=x.device)
    pair = 0
    columns = [torch.zeros_like(scores[:, 0]) for _ in range(classes)]
    for i in range(classes):
        for j in range(i + 1, classes):
            won = (scores[:, pair] > 0).to(torch.float32)
            columns[i], columns[j] = columns[i] + won, columns[j] + 1 - won
            pair += 1
    votes = torch.stack(columns, 1)
    return _named(votes.argmax(1), labels), transformed(scores, post)


def _pair_scores(call: Call, x: Tensor, counts: list[int], rho: Tensor) -> Tensor:
    """The decision of each pair of classes: (rows, pairs)."""
    total, classes = sum(counts), len(counts)
    products = _kernel(call, x, _row(call, "support_vectors", x).reshape([total, -1]))
    coefficients = _row(call, "coefficients", x).reshape([classes - 1, total])
    starts = np.concatenate([[0], np.cumsum(counts)])
    pairs, at = [], 0
    for i in range(classes):
        for j in range(i + 1, classes):
            own, other = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            value = torch.matmul(products[:, own], coefficients[j - 1, own]) + torch.matmul(
                products[:, other], coefficients[i, other]
            )
            pairs.append(value + rho[at])
            at += 1
    return torch.stack(pairs, 1)


def _svm_linear(call: Call, x: Tensor, labels: list, rho: Tensor, post: str) -> tuple:
    weights = _row(call, "coefficients", x).reshape([len(labels), -1])
    scores = torch.matmul(x, weights.t()) + rho[0]
    return _named(scores.argmax(1), labels), transformed(scores, post)


def _svm_probabilities(call: Call) -> Any:
    raise NotImplementedError(f"[{call.name}] probabilities of pairs (prob_a, prob_b) are not implemented")


TABLE: dict[str, tuple] = {
    "ArrayFeatureExtractor": ((1, _extract),), "Binarizer": ((1, _binarize),), "Scaler": ((1, _scale),), "Normalizer": ((1, _normalize),),
    "Imputer": ((1, _impute),), "FeatureVectorizer": ((1, _features),), "OneHotEncoder": ((1, _one_hot),),
    "LabelEncoder": ((1, _encode_labels),), "CategoryMapper": ((1, _map_categories),), "DictVectorizer": ((1, _dict_vectorize),),
    "CastMap": ((1, _cast_map),), "ZipMap": ((1, _zip_map),), "LinearRegressor": ((1, _linear_regressor),),
    "LinearClassifier": ((1, _linear_classifier),), "SVMRegressor": ((1, _svm_regressor),), "SVMClassifier": ((1, _svm_classifier),),
}  # fmt: skip
