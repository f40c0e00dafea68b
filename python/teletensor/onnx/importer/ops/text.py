"""Strings, which are in the client: the engine has no tensors of strings."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .. import _values
from .._call import Call, keeps

_LONGEST_PATTERN = 1000
MOST_TEXTS = 1 << 22  # strings of one array
_MOST_CHARACTERS = 1 << 28


def _mapped(function: Any, *arrays: np.ndarray) -> np.ndarray:
    _values.bounded(math.prod(np.broadcast_shapes(*(a.shape for a in arrays))), "strings", MOST_TEXTS)
    arrays = np.broadcast_arrays(*arrays)
    found = np.empty(arrays[0].shape, dtype=object)
    found.reshape(-1)[:] = [function(*texts) for texts in zip(*(a.reshape(-1) for a in arrays))]
    return found


def _text(value: Any) -> np.ndarray:
    if not _values.is_text(value):
        raise TypeError("[onnx] expected strings, got numbers")
    return value


@keeps()
def _concat(_call: Call, a: Any, b: Any) -> np.ndarray:
    total = math.prod(np.broadcast_shapes(_text(a).shape, _text(b).shape))
    length = sum(total // max(v.size, 1) * sum(len(str(t)) for t in v.flat) for v in (a, b))
    if length > _MOST_CHARACTERS:
        raise ValueError(f"[StringConcat] expected at most {_MOST_CHARACTERS} characters, got {length}")
    return _mapped(lambda x, y: str(x) + str(y), _text(a), _text(b))


@keeps()
def _match(call: Call, x: Any) -> np.ndarray:
    """Python's regular expressions instead of RE2's, which the standard names. A pattern may take long for some texts."""
    pattern = call.need("pattern")
    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(
            f"[RegexFullMatch] expected a pattern of at most {_LONGEST_PATTERN} characters, got {len(pattern)}"
        )
    compiled = re.compile(pattern)
    return _mapped(lambda t: compiled.fullmatch(str(t)) is not None, _text(x)).astype(bool)


@keeps()
def _split(call: Call, x: Any) -> tuple:
    delimiter, most = call.get("delimiter") or None, call.get("maxsplit", -1)
    x = _text(x)
    parts = [str(t).split(delimiter, most) if t else [] for t in x.reshape(-1)]
    longest = max((len(p) for p in parts), default=0)
    _values.bounded(longest * len(parts), "StringSplit", MOST_TEXTS)
    found = np.empty((len(parts), longest), dtype=object)
    found[:] = ""
    for row, words in zip(found, parts):
        row[: len(words)] = words
    counts = np.asarray([len(p) for p in parts], np.int64).reshape(x.shape)
    return found.reshape(*x.shape, longest), counts


@keeps()
def _normalize(call: Call, x: Any) -> np.ndarray:
    x = _text(x)
    case, words = call.get("case_change_action", "NONE"), call.get("stopwords") or []
    sensitive = call.get("is_case_sensitive", 0)
    if case != "NONE" and call.get("locale", "en_US")[:2].lower() in ("az", "lt", "tr"):
        raise NotImplementedError(f"[StringNormalizer] the case of letters in {call.get('locale')} is not implemented")
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[case]
    removed = set(words) if sensitive else {w.lower() for w in words}

    def kept(row: np.ndarray) -> list[str]:
        return [change(str(t)) for t in row if (str(t) if sensitive else str(t).lower()) not in removed]

    if x.ndim == 1:
        found = kept(x) or [""]
        return np.asarray(found, dtype=object)
    if x.ndim == 2 and x.shape[0] == 1:
        return np.asarray([kept(x[0]) or [""]], dtype=object)
    raise ValueError(f"[StringNormalizer] expected sizes [C] or [1, C], got {list(x.shape)}")


class _Ngrams:
    """The pool of n-grams of a TfIdfVectorizer."""

    def __init__(self, call: Call) -> None:
        self.low, self.high = call.need("min_gram_length"), call.need("max_gram_length")
        self.skips, self.mode = call.need("max_skip_count"), call.need("mode")
        counts, self.indexes = call.need("ngram_counts"), call.need("ngram_indexes")
        pool = call.get("pool_strings") or call.get("pool_int64s") or []
        self.places: dict[tuple, int] = {}
        position = 0
        for n, start in enumerate(counts, 1):
            end = counts[n] if n < len(counts) else len(pool)
            for at in range(start, end, n):
                self.places[tuple(pool[at : at + n])] = position
                position += 1
        self.size = _values.bounded(max(self.indexes, default=-1) + 1, "TfIdfVectorizer")
        self.weights = call.get("weights")

    def count(self, row: list) -> np.ndarray:
        found = np.zeros(self.size, np.float32)
        for n in range(self.low, min(self.high, len(row)) + 1):
            for skip in range(1, min(self.skips, len(row)) + 2) if n > 1 else [1]:
                for start in range(len(row) - (n - 1) * skip):
                    place = self.places.get(tuple(row[start : start + (n - 1) * skip + 1 : skip]))
                    if place is not None:
                        found[self.indexes[place]] += 1
        return found


@keeps()
def _tfidf(call: Call, x: Any) -> Any:
    grams = _Ngrams(call)
    values = _values.array(x)
    rows = values.reshape(1, -1) if values.ndim < 2 else values
    _values.bounded(len(rows) * grams.size, "TfIdfVectorizer")
    counted = np.stack([grams.count(list(row)) for row in rows]) if len(rows) else np.zeros((0, grams.size), np.float32)
    factor = np.ones(grams.size, np.float32)
    if grams.weights is not None:
        for place, weight in zip(grams.indexes, grams.weights):
            factor[place] = weight
    found = {"TF": lambda: counted, "IDF": lambda: (counted > 0) * factor, "TFIDF": lambda: counted * factor}[
        grams.mode
    ]()
    found = found.astype(np.float32)
    return call.tensor(found[0] if values.ndim < 2 else found)


TABLE: dict[str, tuple] = {
    "StringConcat": ((20, _concat),), "RegexFullMatch": ((20, _match),), "StringSplit": ((20, _split),),
    "StringNormalizer": ((10, _normalize),), "TfIdfVectorizer": ((9, _tfidf),),
}  # fmt: skip
