"""Which layers are instances of which, as programs that search a model for layers ask."""

import inspect

# PyTorch's: subclass and base, of the public classes of torch.nn other than Module.
PAIRS = """
GRU:RNNBase GRUCell:RNNCellBase LSTM:RNNBase LSTMCell:RNNCellBase LazyConv1d:Conv1d LazyConv2d:Conv2d LazyConv3d:Conv3d
LazyConvTranspose1d:ConvTranspose1d LazyConvTranspose2d:ConvTranspose2d LazyConvTranspose3d:ConvTranspose3d LazyLinear:Linear
NLLLoss2d:NLLLoss RNN:RNNBase RNNCell:RNNCellBase ReLU6:Hardtanh UninitializedParameter:Parameter UpsamplingBilinear2d:Upsample
UpsamplingNearest2d:Upsample ZeroPad1d:ConstantPad1d ZeroPad2d:ConstantPad2d ZeroPad3d:ConstantPad3d
"""


def test_bases_of_layers(torch):
    found = {name: value for name, value in inspect.getmembers(torch.nn, inspect.isclass) if name[0] != "_" and name != "Module"}
    pairs = {
        f"{name}:{base}"
        for name, value in found.items()
        for base, other in found.items()
        if value is not other and issubclass(value, other) and {"UninitializedBuffer", "Buffer"} != {name, base}
    }
    assert pairs == set(PAIRS.split())
    stubs = torch.ao.quantization
    assert not issubclass(stubs.DeQuantStub, stubs.QuantStub)


def test_private_bases(torch):
    """Names that profilers and other libraries import."""
    layers = torch.nn.modules
    assert all(issubclass(getattr(torch.nn, name), layers.dropout._DropoutNd) for name in ("Dropout", "Dropout2d", "AlphaDropout"))
    for kind in ("Constant", "Reflection", "Replication", "Circular"):
        assert issubclass(getattr(torch.nn, f"{kind}Pad2d"), getattr(layers.padding, f"_{kind}PadNd"))
    layer = torch.nn.Linear(2, 2)
    clones = layers.transformer._get_clones(layer, 2)
    assert len(clones) == 2 and clones[0].weight is not layer.weight and torch.equal(clones[1].weight, layer.weight)


def test_padding_with_zeros(torch):
    layer = torch.nn.ZeroPad2d((1, 0, 0, 1))
    assert repr(layer) == "ZeroPad2d((1, 0, 0, 1))" and layer.value == 0.0
    assert layer(torch.ones(1, 1, 1)).tolist() == [[[0.0, 1.0], [0.0, 0.0]]]
