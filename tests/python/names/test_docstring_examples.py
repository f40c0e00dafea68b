"""The examples in docstrings of much used classes and functions give the results that they show."""

from __future__ import annotations

import doctest
import functools

import pytest

DOCUMENTED = """
    nn.Linear nn.Identity nn.Sequential nn.ModuleList nn.ModuleDict nn.Conv1d nn.Conv2d nn.Conv3d nn.ConvTranspose2d nn.BatchNorm1d
    nn.BatchNorm2d nn.BatchNorm3d nn.InstanceNorm2d nn.LayerNorm nn.GroupNorm nn.Dropout nn.Dropout2d nn.MaxPool2d nn.AvgPool2d
    nn.AdaptiveAvgPool2d nn.Embedding nn.LSTM nn.GRU nn.Upsample nn.Flatten nn.Module autograd.Function optim.Adam optim.SGD
    utils.data.Dataset utils.data.TensorDataset nn.init.kaiming_normal_ nn.init.xavier_uniform_ nn.init.xavier_normal_
    nn.utils.rnn.pack_padded_sequence nn.utils.rnn.pad_packed_sequence nn.ReLU nn.LeakyReLU nn.Sigmoid nn.Tanh nn.Softmax nn.GELU
    nn.MSELoss nn.L1Loss nn.CrossEntropyLoss nn.BCEWithLogitsLoss
"""


@pytest.mark.parametrize("name", DOCUMENTED.split())
def test_examples(torch, name):
    documented = functools.reduce(getattr, name.split("."), torch)
    found = doctest.DocTestParser().get_doctest(documented.__doc__, {"torch": torch}, name, None, None)
    report: list[str] = []
    failures, attempts = doctest.DocTestRunner().run(found, out=report.append)
    assert attempts > 0 and failures == 0, "".join(report)
