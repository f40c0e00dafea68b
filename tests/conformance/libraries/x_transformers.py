"""x_transformers: decoders, encoders, positions, memories, generation and their training."""

import torch
from x_transformers import (
    AutoregressiveWrapper,
    ContinuousTransformerWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)

from .tools import backward, fill, integers, randn, train

OPTIONS = {
    "rotary": {"rotary_pos_emb": True},
    "alibi": {"alibi_pos_bias": True},
    "relative": {"rel_pos_bias": True},
    "dynamic": {"dynamic_pos_bias": True},
    "rms": {"use_rmsnorm": True},
    "gated": {"ff_glu": True, "ff_swish": True, "ff_no_bias": True},
    "qk norm": {"attn_qk_norm": True},
    "one kv head": {"attn_one_kv_head": True},
    "kv heads": {"attn_kv_heads": 1},
    "talking": {"attn_pre_talking_heads": True},
    "macaron": {"macaron": True},
    "sandwich": {"sandwich_coef": 1},
    "sparse": {"attn_sparse_topk": 3},
    "memory": {"attn_num_mem_kv": 2},
    "shift": {"shift_tokens": 1},
    "gate": {"attn_gate_values": True},
    "residual": {"gate_residual": True},
    "entmax": {"attn_softclamp_logits": True},
    "laser": {"attn_laser": True},
    "flash": {"attn_flash": True},
}


def _layers(kind=Decoder, **options):
    return kind(dim=16, depth=2, heads=2, attn_dim_head=8, **options)


def _language(**options):
    return fill(TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=_layers(**options)))


def options_forward():
    tokens, found = integers(32, 2, 10), {}
    with torch.no_grad():
        for name, options in OPTIONS.items():
            found[name] = _language(**options).eval()(tokens)
    return found


def encoders_forward():
    masked = fill(
        TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=_layers(Encoder), num_memory_tokens=2)
    ).eval()
    image = fill(ViTransformerWrapper(image_size=16, patch_size=8, num_classes=5, attn_layers=_layers(Encoder))).eval()
    numbers = fill(
        ContinuousTransformerWrapper(dim_in=3, dim_out=4, max_seq_len=12, attn_layers=_layers(Encoder))
    ).eval()
    mask = torch.arange(10)[None] < torch.tensor([[10], [6]])
    with torch.no_grad():
        return [masked(integers(32, 2, 10), mask=mask), image(randn(2, 3, 16, 16)), numbers(randn(2, 8, 3))]


def recurrence_forward():
    model = fill(
        TransformerWrapper(num_tokens=32, max_seq_len=16, max_mem_len=8, attn_layers=_layers(rel_pos_bias=True))
    ).eval()
    with torch.no_grad():
        first, memories = model(integers(32, 2, 8), return_mems=True)
        second, _ = model(integers(32, 2, 8, seed=1), mems=memories, return_mems=True)
    return [first, second]


def language_backward():
    model = AutoregressiveWrapper(_language(rotary_pos_emb=True, ff_glu=True))
    return backward(model, model(integers(32, 2, 12)))


def translation_backward():
    model = fill(
        XTransformer(
            dim=16,
            tie_token_emb=True,
            enc_num_tokens=32,
            enc_depth=1,
            enc_heads=2,
            enc_max_seq_len=10,
            dec_num_tokens=32,
            dec_depth=1,
            dec_heads=2,
            dec_max_seq_len=10,
        )
    )
    return backward(
        model, model(integers(32, 2, 8), integers(32, 2, 9, seed=1), mask=torch.ones(2, 8, dtype=torch.bool))
    )


def greedy_generate():
    model = AutoregressiveWrapper(_language(rotary_pos_emb=True).eval())
    prompt = integers(32, 2, 3)
    return [model.generate(prompt, 8, temperature=0.0), model.generate(prompt, 8, temperature=0.0, cache_kv=False)]


def sampled_generate():
    model = AutoregressiveWrapper(_language(alibi_pos_bias=True).eval())
    found = model.generate(integers(32, 2, 3), 6, filter_logits_fn="top_p", filter_kwargs={"thres": 0.9})
    return [list(found.shape), bool(((found >= 0) & (found < 32)).all())]


def language_training():
    model, tokens = AutoregressiveWrapper(_language(rotary_pos_emb=True)), integers(32, 4, 12)
    return train(model, lambda: model(tokens))
