"""Functions that tests run in other processes."""

import os
import signal


def work(i, x, net, queue):
    """Puts a result of the arguments into a queue, and ends."""
    queue.put((i, net(x).detach(), type(net.weight).__name__, x.requires_grad, str(x.dtype)))


def fail(i, x):
    """Raises an error in process 1, while process 0 waits for its end."""
    if i == 1:
        raise ValueError(f"sum {x.sum().item()}")
    signal.pause()


def leave(i, how):
    """Ends the process."""
    os.kill(os.getpid(), how) if how < 0 or how == signal.SIGKILL else os._exit(how)


def change(x, net, tensors, done):
    """Changes the arguments in place, a tensor of a queue too, and returns one through the other queue."""
    import teletensor as torch

    with torch.no_grad():
        x.mul_(2)
        net.weight.fill_(3)
    received = tensors.get(timeout=30)
    received[0] = 7
    done.put((received, x.grad is None, type(net.weight).__name__))
    done.get(timeout=30)  # until the parent has received the tensor and changed it
    done.put(received.tolist())


def train(net, steps):
    """Trains a shared module without locks."""
    import teletensor as torch

    torch.manual_seed(steps)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        x = torch.randn(16, 2)
        optimizer.zero_grad()
        (net(x) - x.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()


def double(x):
    """Twice the argument, in a list."""
    return [x * 2, x.shape]
