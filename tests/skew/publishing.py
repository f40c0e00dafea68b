"""Publishes a tensor and opens it, with the package of the caller's PYTHONPATH. Prints its sum, or the error of a client or
engine that does not have published tensors."""

import teletensor as torch

torch.connect()
x = torch.arange(1000.0)
try:
    torch.publish("numbers", x)
    print(torch.open("numbers").sum().item() == x.sum().item())
except (AttributeError, NotImplementedError) as error:
    print(f"{type(error).__name__}: {str(error).splitlines()[0]}")
print(x.sum().item())  # the session goes on
