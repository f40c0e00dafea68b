"""The example programs: how each is run, or why it is not."""

from __future__ import annotations

import dataclasses

NANOGPT = "nanoGPT"  # the checkout of --nanogpt; the others are folders of pytorch/examples


@dataclasses.dataclass(frozen=True)
class Program:
    """A program.

    Args:
        name: of its row.
        folder: in the checkout.
        script: in the folder.
        arguments: of the script.
        ranks: started by torchrun; 0 if the script starts its processes itself.
        runs: how often it runs in one folder, as programs that resume from a checkpoint do.
        losses: the program ends when it has recorded so many; 0: it ends by itself.
        tolerance: of losses, relative.
        compared: how many losses of each process are compared; None: all.
        others: why the later losses are not.
        changes: texts of the script that are replaced, each of which occurs once.
        reason: why it is not run.
    """

    name: str
    folder: str
    script: str = ""
    arguments: tuple[str, ...] = ()
    ranks: int = 0
    runs: int = 1
    losses: int = 0
    tolerance: float = 1e-4
    compared: int | None = None
    others: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    reason: str = ""


_GPT = (
    "data_config.path=data/input.txt", "data_config.block_size=32", "data_config.truncate=0.002", "gpt_config.n_layer=2",
    "gpt_config.n_head=2", "gpt_config.n_embd=32", "trainer_config.max_epochs=1", "trainer_config.batch_size=64",
    "trainer_config.data_loader_workers=0", "+gpt_config.attn_pdrop=0",
)  # fmt: skip
_NANOGPT = (
    "--device=cpu", "--backend=gloo", "--compile=False", "--dtype=float32", "--dataset=text", "--eval_interval=1000", "--eval_iters=2",
    "--block_size=32", "--batch_size=4", "--n_layer=2", "--n_head=2", "--n_embd=32", "--max_iters=8", "--lr_decay_iters=8",
    "--warmup_iters=2", "--gradient_accumulation_steps=4", "--learning_rate=1e-2",
)  # fmt: skip
# nanoGPT's script uses GPUs with several ranks.
_ON_CPU = (
    ("    device = f'cuda:{ddp_local_rank}'\n    torch.cuda.set_device(device)\n", ""),
    ("model = DDP(model, device_ids=[ddp_local_rank])", "model = DDP(model)"),
)
# fully_shard in the place of DDP: before the optimizer gets the parameters; the evaluation runs on all ranks.
_SHARDED = (
    _ON_CPU[0],
    ("model.to(device)\n\n", "model.to(device)\nfrom torch.distributed.fsdp import fully_shard\n"
     "for block in model.transformer.h:\n    fully_shard(block)\nfully_shard(model)\n\n"),
    ("    model = DDP(model, device_ids=[ddp_local_rank])\n", "    pass\n"),
    ("raw_model = model.module if ddp else model", "raw_model = model"),
    ("if iter_num % eval_interval == 0 and master_process:", "if iter_num % eval_interval == 0:"),
    ("            model.require_backward_grad_sync = ", "            model.set_requires_gradient_sync"),
)  # fmt: skip

PROGRAMS = (
    Program("ddp", "distributed/ddp", "example.py", ranks=2),
    Program("FSDP2", "distributed/FSDP2", "example.py", ranks=2),
    Program("FSDP2, prefetching", "distributed/FSDP2", "example.py", ("--explicit-prefetching",), ranks=2),
    Program(
        "FSDP2, mixed precision", "distributed/FSDP2", "example.py", ("--mixed-precision",), ranks=2, tolerance=1e-3, compared=2,
        others="are rounded to bfloat16 differently and differ by up to 5 %",
    ),
    Program("FSDP2, resumed", "distributed/FSDP2", "example.py", ranks=2, runs=2),
    Program("FSDP2, distributed checkpoint, resumed", "distributed/FSDP2", "example.py", ("--dcp-api",), ranks=2, runs=2),
    Program("tensor parallel", "distributed/tensor_parallelism", "tensor_parallel_example.py", ranks=2),
    Program("sequence parallel", "distributed/tensor_parallelism", "sequence_parallel_example.py", ranks=2),
    Program("FSDP and tensor parallel", "distributed/tensor_parallelism", "fsdp_tp_example.py", ranks=4),
    Program("minGPT-ddp", "distributed/minGPT-ddp/mingpt", "main.py", (*_GPT, "trainer_config.use_amp=False"), ranks=2),
    Program("minGPT-ddp, float16", "distributed/minGPT-ddp/mingpt", "main.py", _GPT, ranks=2, tolerance=2e-3),
    Program("rpc/rnn", "distributed/rpc/rnn", "main.py"),
    Program("rpc/rl", "distributed/rpc/rl", "main.py", losses=20, tolerance=1e-3),
    Program("rpc/ddp_rpc", "distributed/rpc/ddp_rpc", "main.py", compared=1, others="depend on the order of the trainers' updates"),
    Program("rpc/parameter_server", "distributed/rpc/parameter_server", reason="needs torchvision and downloads MNIST"),
    Program("rpc/batch, parameter_server", "distributed/rpc/batch", reason="needs torchvision and CUDA"),
    Program("rpc/batch, reinforce", "distributed/rpc/batch", reason="needs CUDA"),
    Program("rpc/pipeline", "distributed/rpc/pipeline", reason="needs torchvision and two CUDA devices"),
    Program("ddp-tutorial-series", "distributed/ddp-tutorial-series", reason="needs CUDA"),
    Program("FSDP (T5)", "distributed/FSDP", reason="downloads a model and a dataset"),
    Program("nanoGPT, DDP", NANOGPT, "train.py", _NANOGPT, ranks=2, changes=_ON_CPU),
    Program("nanoGPT, fully_shard", NANOGPT, "train.py", _NANOGPT, ranks=2, changes=_SHARDED),
)
