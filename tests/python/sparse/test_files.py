"""Sparse tensors in files, pickles and copies."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys

import pytest

import teletensor as torch
from tests.conftest import client_environment

from .cases import operands

KINDS = ("c", "cc", "h", "z", "s0", "csr", "csc", "bsr", "bsc", "bcsr")


def _same(a, b) -> None:
    assert a.layout == b.layout and a.shape == b.shape and a.dtype == b.dtype and a.requires_grad == b.requires_grad
    if a.is_sparse:
        assert a.is_coalesced() == b.is_coalesced()
        torch.testing.assert_close(a._indices(), b._indices())
        torch.testing.assert_close(a._values().detach(), b._values().detach())
    else:
        torch.testing.assert_close(a.to_dense().detach(), b.to_dense().detach())


@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(kind: str) -> None:
    tensor, file = operands(torch)[kind], io.BytesIO()
    torch.save({"tensor": tensor}, file)
    file.seek(0)
    _same(torch.load(file)["tensor"], tensor)
    _same(pickle.loads(pickle.dumps(tensor)), tensor)
    tensor.requires_grad_()
    _same(copy.deepcopy(tensor), tensor)


def test_damaged_files_are_refused() -> None:
    from teletensor.serialization import LoadError, _rebuild

    layouts = torch.sparse_coo, torch.sparse_csr
    one, index = torch.ones(1), torch.zeros(1, 1, dtype=torch.int64)
    for layout, data in (
        (layouts[0], (index + 9, one, (2,), False)), (layouts[0], (index, one, (-1,), False)), (layouts[0], (index, one, (2**40, 2), True)),
        (layouts[0], ("x", one, (2,))), (layouts[0], (index, one, 5)), (layouts[0], (index, one, (2,), 7)), (layouts[0], ()),
        (layouts[1], (index[0], index[0], one, (2, 2))), (layouts[1], (torch.tensor([0, 1, 9]), index[0], one, (2, 2))),
    ):  # fmt: skip
        with pytest.raises(LoadError):
            _rebuild.rebuild_sparse_tensor(layout, data)


def test_a_loaded_tensor_in_a_process_that_has_made_none(tmp_path):
    torch.save(torch.eye(2).to_sparse(), tmp_path / "sparse.pt")
    script = f"import teletensor as torch; x = torch.load({str(tmp_path / 'sparse.pt')!r}); print(x, (x @ torch.ones(2)).tolist())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=client_environment())
    assert "layout=torch.sparse_coo) [1.0, 1.0]" in done.stdout, done.stderr
