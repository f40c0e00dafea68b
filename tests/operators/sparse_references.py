"""References of the operators on components of sparse tensors, over dense arrays and plain loops."""

from __future__ import annotations

import numpy as np


def _flat(indices):
    """One row for each matrix of a batch."""
    return indices.reshape(int(np.prod(indices.shape[:-1], dtype=int)), indices.shape[-1])


def unique(indices, size):
    """The distinct columns in lexicographic order, and each column's position among them."""
    columns = [tuple(int(i) for i in c) for c in indices.T]
    distinct = sorted(set(columns))
    found = np.array(distinct, indices.dtype).reshape(len(distinct), len(indices)).T
    return found, np.array([distinct.index(c) for c in columns], "int64")


def coalesce(indices, values, size):
    """The distinct columns, the sums of their values, and each column's position."""
    found, inverse = unique(indices, size)
    sums = np.zeros((found.shape[1], *values.shape[1:]), values.dtype)
    np.add.at(sums, inverse, values)
    return found, sums, inverse


def scatter(indices, values, size):
    """A dense array with values added at the columns of indices."""
    out = np.zeros((*size, *values.shape[1:]), values.dtype)
    for c, v in zip(indices.T, values):
        out[tuple(c)] += v
    return out


def expand(compressed):
    """Rows of entries from compressed indices."""
    flat = _flat(compressed)
    rows = [np.repeat(np.arange(len(c) - 1), np.diff(c)) for c in flat]
    return np.array(rows, compressed.dtype).reshape(*compressed.shape[:-1], len(rows[0]))


def compress(index, size):
    """Compressed indices from sorted rows."""
    flat = _flat(index)
    rows = [np.searchsorted(r, np.arange(size + 1)) for r in flat]
    return np.array(rows, index.dtype).reshape(*index.shape[:-1], size + 1)


def transpose(crow, col, size):
    """CSC indices and the positions of their entries among those of all matrices."""
    rows, columns = _flat(expand(crow)), _flat(col)
    order = np.argsort(columns, axis=-1, kind="stable")
    sorted_columns = np.take_along_axis(columns, order, -1).reshape(col.shape)
    first = np.arange(len(columns))[:, None] * col.shape[-1]
    return (
        compress(sorted_columns, size),
        np.take_along_axis(rows, order, -1).reshape(col.shape),
        (order + first).reshape(col.shape),
    )


def union(a, b, size):
    """The sorted union of two sets of columns, and the positions of both in it."""
    found, inverse = unique(np.concatenate([a, b], 1), size)
    return found, inverse[: a.shape[1]], inverse[a.shape[1] :]


def intersection(a, b, size):
    """The positions, in two sets of columns, of the columns in both."""
    first, second = [tuple(c) for c in a.T], [tuple(c) for c in b.T]
    both = sorted(set(first) & set(second))
    return np.array([first.index(c) for c in both], "int64"), np.array([second.index(c) for c in both], "int64")


def dense(crow, col, values, columns):
    """Dense matrices of CSR components; values may be blocks, which are the last dimensions of the result then."""
    rows, nnz = crow.shape[-1] - 1, col.shape[-1]
    block = values.shape[col.ndim :]
    out = np.zeros((int(np.prod(col.shape[:-1], dtype=int)), rows, columns, *block), values.dtype)
    for b, (r, c, v) in enumerate(zip(_flat(expand(crow)), _flat(col), values.reshape(len(out), nnz, *block))):
        np.add.at(out[b], (r, c), v)
    return out.reshape(*col.shape[:-1], *out.shape[1:])


def dense_blocks(crow, col, values, columns):
    """Dense matrices of BSR components."""
    p, q = values.shape[-2:]
    out = np.swapaxes(dense(crow, col, values, columns // q), -3, -2)
    return out.reshape(*col.shape[:-1], (crow.shape[-1] - 1) * p, columns)


def sampled(crow, col, product):
    """The entries of dense matrices at CSR positions."""
    flat = product.reshape(-1, *product.shape[-2:])
    return np.array([m[r, c] for m, r, c in zip(flat, _flat(expand(crow)), _flat(col))]).reshape(col.shape)


def extremum(crow, col, values, other, largest):
    """The extremes of products over each row's entries, and their entries."""
    shape = (len(crow) - 1, other.shape[1])
    out, argument = np.zeros(shape, other.dtype), np.full(shape, -1)
    for r in range(shape[0]):
        entries = np.arange(crow[r], crow[r + 1])
        if len(entries):
            products = values[entries, None] * other[col[entries]]
            place = (np.argmax if largest else np.argmin)(products, 0)
            out[r], argument[r] = products[place, np.arange(shape[1])], entries[place]
    return out, argument


def matmul(crow1, col1, values1, crow2, col2, values2, columns):
    """The product of CSR matrices; its entries are those that have a term."""
    shape = (len(crow1) - 1, len(crow2) - 1)
    terms = dense(crow1, col1, np.ones(len(col1)), shape[1]) @ dense(crow2, col2, np.ones(len(col2)), columns)
    product = dense(crow1, col1, values1, shape[1]) @ dense(crow2, col2, values2, columns)
    row, col = np.nonzero(terms)
    return compress(row.astype(crow1.dtype), shape[0]), col.astype(crow1.dtype), product[row, col]


def softmax(values, group, groups, log):
    """The softmax, or its logarithm, over the values of each group."""
    out = np.zeros_like(values)
    for g in range(groups):
        at = group == g
        if at.any():
            shifted = values[at] - values[at].max(0)
            sums = np.exp(shifted).sum(0)
            out[at] = shifted - np.log(sums) if log else np.exp(shifted) / sums
    return out


def _positions(meta):
    """The columns of values, (rows, values per row), from metadata."""
    words = meta.astype("uint16")[..., None] >> (2 * np.arange(8)) & 3
    in_group = words.reshape(len(meta), -1).astype("int64")
    return in_group + np.arange(in_group.shape[1]) // 2 * 4


def semi_compress(x):
    """The two largest magnitudes of each four columns, and their positions."""
    groups = x.reshape(len(x), -1, 4)
    at = np.sort(np.argsort(-np.abs(groups), -1, kind="stable")[..., :2], -1)
    values = np.take_along_axis(groups, at, -1).reshape(len(x), -1)
    bits = at.reshape(len(x), -1, 8) << (2 * np.arange(8))
    return values, bits.sum(-1).astype("uint16").astype("int16")


def semi_expand(values, meta):
    """The matrix that values and metadata describe."""
    out = np.zeros((len(values), 2 * values.shape[1]), values.dtype)
    np.add.at(out, (np.arange(len(values))[:, None], _positions(meta)), values)
    return out


def semi_select(x, meta):
    """The elements of a matrix at the positions in metadata."""
    return np.take_along_axis(x, _positions(meta), 1)
