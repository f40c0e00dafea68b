"""accelerate: a training loop with a prepared model, optimizer, loader and schedule; tools for tensors and big models."""

import tempfile

import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.state import AcceleratorState
from accelerate.utils import compute_module_sizes, find_tied_parameters, infer_auto_device_map, send_to_device, set_seed

from .tools import EPSILON, fill, integers, randn


def _model():
    return fill(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))


def _data():
    return torch.utils.data.TensorDataset(randn(12, 6), integers(3, 12))


def _trained(**options):
    AcceleratorState._reset_state(reset_partial_state=True)  # an Accelerator's settings hold for the process
    accelerator = Accelerator(cpu=True, **options)
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=EPSILON)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    loader = torch.utils.data.DataLoader(_data(), batch_size=4)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses, gathered = [], []
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(model):
                output = model(x)
                loss = torch.nn.functional.cross_entropy(output, y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
            gathered.append(accelerator.gather_for_metrics((output, y))[0])
    return [losses, gathered, dict(accelerator.unwrap_model(model).state_dict()), schedule.get_last_lr()]


def loop_training():
    return _trained()


def accumulated_training():
    return _trained(gradient_accumulation_steps=2)


def bfloat16_training():
    """Autocast rounds in places that differ between the libraries, so values are rounded to one digit."""
    losses = _trained(mixed_precision="bf16")[0]
    return [round(float(v), 1) for v in losses]


def state_other():
    """save_state and load_state."""
    AcceleratorState._reset_state(reset_partial_state=True)
    accelerator = Accelerator(cpu=True)
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer = accelerator.prepare(model, optimizer)
    model(randn(2, 6)).sum().backward()
    optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        model(randn(2, 6)).sum().backward()
        optimizer.step()
        accelerator.load_state(folder)
    return [all(bool((v == before[k]).all()) for k, v in model.state_dict().items()), before]


def big_models_other():
    with init_empty_weights():
        empty = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    devices = [str(p.device) for p in empty.parameters()]
    with tempfile.TemporaryDirectory() as folder:
        from safetensors.torch import save_file

        save_file(_model().state_dict(), f"{folder}/model.safetensors")
        model = load_checkpoint_and_dispatch(empty, f"{folder}/model.safetensors", device_map={"": "cpu"})
    return [
        devices,
        model(randn(2, 6)),
        dict(compute_module_sizes(model)),
        dict(infer_auto_device_map(_model(), max_memory={"cpu": 10**9})),
    ]


def utilities_other():
    tied = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    set_seed(3)
    moved = send_to_device({"a": [randn(2), (randn(1),)], "b": 3}, "cpu")
    return [find_tied_parameters(tied), moved]
