"""snnTorch: spiking neurons with surrogate gradients, losses of spikes, and the encoding of inputs as spikes."""

import snntorch
import torch
from snntorch import functional, spikegen, surrogate

from .tools import fill, integers, randn, train


class Net(torch.nn.Module):
    """Two layers of spiking neurons that receive the same input several times."""

    def __init__(self):
        super().__init__()
        gradient = surrogate.fast_sigmoid(slope=25)
        self.first, self.last = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.leaky = snntorch.Leaky(beta=0.9, spike_grad=gradient)
        self.synaptic = snntorch.Synaptic(alpha=0.9, beta=0.8, spike_grad=gradient, learn_beta=True)

    def forward(self, x):
        potential, (current, voltage) = self.leaky.reset_mem(), self.synaptic.reset_mem()
        spikes, voltages = [], []
        for _ in range(6):
            hidden, potential = self.leaky(self.first(x), potential)
            out, current, voltage = self.synaptic(self.last(hidden), current, voltage)
            spikes.append(out)
            voltages.append(voltage)
        return torch.stack(spikes), torch.stack(voltages)


def spiking_training():
    net, x, labels, rate = fill(Net(), 3.0), randn(5, 6).abs(), integers(3, 5), functional.ce_rate_loss()

    def loss():
        spikes, voltages = net(x)
        return rate(spikes, labels) + torch.nn.functional.cross_entropy(voltages.sum(0), labels)

    return train(net, loss, steps=3)


def encoding_other():
    x, neuron = torch.sigmoid(randn(3, 4)), fill(snntorch.RLeaky(beta=0.5, linear_features=4, all_to_all=True))
    with torch.no_grad():
        recurrent = neuron(x, *neuron.reset_mem())
    latency = spikegen.latency(x, num_steps=5, normalize=True, linear=True)
    return [latency, spikegen.delta(randn(6, 2), threshold=0.3), recurrent, list(spikegen.rate(x, num_steps=7).shape)]
