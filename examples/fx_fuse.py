"""Prepares a small residual network for inference with torch.fx, and changes its graph.

    python examples/fx_fuse.py                      # a private engine on this machine
    python examples/fx_fuse.py --address gpu-box:7070 --device cuda

Batch norms are fused into the convolutions before them, each ReLU is replaced by GELU where it follows an addition, and the
result is written as a package that Python imports.
"""

from __future__ import annotations

import argparse
import tempfile

import teletensor as torch
from teletensor import fx, nn
from teletensor.fx.experimental.optimization import fuse
from teletensor.fx.passes.shape_prop import ShapeProp


class Block(nn.Module):
    """Two convolutions with batch norms, and a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.conv2, self.norm2 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(y)))


def main() -> None:
    """Fuses, replaces, prints and writes the network."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", help="an engine; by default a private one is started")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.address:
        torch.connect(options.address)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), Block(8), Block(8)).to(options.device)
    x = torch.randn(4, 3, 16, 16, device=options.device)
    network(x)  # sets the running statistics of the batch norms
    network.eval()

    fused = fuse(network)
    calls = [sum(node.op.startswith("call") for node in module.graph.nodes) for module in (fx.symbolic_trace(network), fused)]
    difference = (fused(x) - network(x)).abs().max().item()
    print(f"{calls[0]} calls before fusion, {calls[1]} after it; the largest difference is {difference:.1e}")

    matches = fx.replace_pattern(fused, lambda a, b: torch.relu(a + b), lambda a, b: nn.functional.gelu(a + b))
    print(f"{len(matches)} patterns replaced")
    ShapeProp(fused).propagate(x)
    fused.print_readable()

    with tempfile.TemporaryDirectory() as folder:
        fused.to_folder(folder, "Network")
        with open(f"{folder}/module.py") as file:
            print(f"{sum(1 for _ in file)} lines written to module.py")


if __name__ == "__main__":
    main()
