"""peft: LoRA, IA3, prompt tuning and others on a small GPT-2: outputs, training, merging, files."""

import tempfile

import torch
from peft import (
    IA3Config,
    LoHaConfig,
    LoraConfig,
    OFTConfig,
    PeftModel,
    PrefixTuningConfig,
    PromptTuningConfig,
    get_peft_model,
)
from transformers import GPT2Config, GPT2LMHeadModel

from .tools import EPSILON, backward, fill, integers, train


def _base():
    config = GPT2Config(
        vocab_size=41, n_positions=40, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


CONFIGURATIONS = {
    "lora": LoraConfig(
        r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True, task_type="CAUSAL_LM"
    ),
    "dora": LoraConfig(r=4, use_dora=True, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM"),
    "ia3": IA3Config(
        target_modules=["c_attn", "mlp.c_proj"],
        feedforward_modules=["mlp.c_proj"],
        fan_in_fan_out=True,
        task_type="CAUSAL_LM",
    ),
    "prompt": PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
    "prefix": PrefixTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
}


def _model(kind):
    return fill(get_peft_model(_base(), CONFIGURATIONS[kind]))


def _batch():
    return {
        "input_ids": integers(41, 2, 9),
        "attention_mask": torch.ones(2, 9, dtype=torch.int64),
        "labels": integers(41, 2, 9),
    }


def _outputs(kind):
    model = _model(kind).eval()
    output = model(**_batch())
    return [output.loss, output.logits, list(model.get_nb_trainable_parameters())]


def lora_forward():
    return _outputs("lora")


def dora_forward():
    return _outputs("dora")


def ia3_forward():
    return _outputs("ia3")


def prompt_forward():
    return _outputs("prompt")


def prefix_forward():
    return _outputs("prefix")


def lora_backward():
    model = _model("lora")
    return backward(model, model(**_batch()).loss)


def dora_backward():
    model = _model("dora")
    return backward(model, model(**_batch()).loss)


def lora_training():
    model = _model("lora")
    parameters = [p for p in model.parameters() if p.requires_grad]
    return train(model, lambda: model(**_batch()).loss, torch.optim.AdamW(parameters, lr=1e-2, eps=EPSILON), 3)


def lora_generate():
    return (
        _model("lora")
        .eval()
        .generate(
            input_ids=integers(41, 2, 4),
            attention_mask=torch.ones(2, 4, dtype=torch.int64),
            max_new_tokens=6,
            do_sample=False,
            pad_token_id=0,
            eos_token_id=None,
        )
    )


def merge_other():
    model = _model("lora").eval()
    before = model(**_batch()).logits
    with model.disable_adapter():
        base = model(**_batch()).logits
    merged = model.merge_and_unload()
    return [base, before, merged(**_batch()).logits]


def files_other():
    model = _model("lora").eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        torch.manual_seed(0)
        again = PeftModel.from_pretrained(_base(), folder)
    names = [n for n in model.state_dict() if "lora" in n]
    return [all(bool((again.state_dict()[n] == model.state_dict()[n]).all()) for n in names), sorted(names)]


def linear_other():
    """LoHa and OFT on a plain module."""
    rows = []
    for config in (
        LoHaConfig(r=2, target_modules=["0", "2"]),
        OFTConfig(r=0, oft_block_size=4, target_modules=["0", "2"], use_cayley_neumann=False),
    ):
        model = get_peft_model(
            torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)), config
        )
        rows.append(fill(model)(torch.linspace(-1, 1, 16).reshape(2, 8)))
    return rows
