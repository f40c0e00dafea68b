"""transformers: small BERT, GPT-2, Llama and T5 models with given weights, their training and generation of text."""

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    get_linear_schedule_with_warmup,
)

from .tools import EPSILON, backward, fill, integers, train

WORDS = 61


def _bert():
    config = BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, num_labels=3,
        max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return fill(BertForSequenceClassification(config))


def _gpt2():
    config = GPT2Config(
        vocab_size=WORDS, n_positions=40, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return fill(GPT2LMHeadModel(config))


def _llama():
    config = LlamaConfig(
        vocab_size=WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=40, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    return fill(LlamaForCausalLM(config))


def _t5():
    config = T5Config(
        vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return fill(T5ForConditionalGeneration(config))


def _batch():
    mask = torch.ones(3, 10, dtype=torch.int64)
    mask[1, 7:] = 0
    mask[2, 4:] = 0
    return {"input_ids": 3 + integers(WORDS - 3, 3, 10), "attention_mask": mask}


def _labels(model):
    return (
        torch.tensor([0, 2, 1])
        if isinstance(model, BertForSequenceClassification)
        else 3 + integers(WORDS - 3, 3, 10, seed=2)
    )


def _forward(model):
    output = model.eval()(**_batch(), labels=_labels(model), output_hidden_states=True, output_attentions=False)
    states = getattr(output, "hidden_states", None) or output.decoder_hidden_states
    return [output.loss, output.logits, list(states)]


def _backward(model):
    return backward(model, model.train()(**_batch(), labels=_labels(model)).loss)


def _training(model):
    batch, labels = _batch(), _labels(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, eps=EPSILON, weight_decay=0.1)
    schedule = get_linear_schedule_with_warmup(optimizer, 2, 8)

    def loss():
        schedule.step()
        return model(**batch, labels=labels).loss

    return train(model.train(), loss, optimizer, 3)


def _generate(model):
    model.eval()
    prompt = {k: v[:, :4] for k, v in _batch().items()}
    options = {"max_new_tokens": 8, "pad_token_id": 0, "eos_token_id": None}
    return [
        model.generate(**prompt, do_sample=False, **options),
        model.generate(**prompt, do_sample=False, num_beams=3, **options),
        model.generate(**prompt, do_sample=False, repetition_penalty=1.3, no_repeat_ngram_size=2, **options),
    ]


def _sample(model):
    """A drawn text differs between the libraries; its size and words must be valid."""
    torch.manual_seed(0)
    text = model.eval().generate(
        **{k: v[:, :4] for k, v in _batch().items()},
        do_sample=True,
        top_k=20,
        top_p=0.9,
        temperature=0.8,
        max_new_tokens=5,
        pad_token_id=0,
    )
    return [text.shape[0], text.shape[1] <= 9, bool(((text >= 0) & (text < WORDS)).all())]


def bert_forward():
    return _forward(_bert())


def bert_backward():
    return _backward(_bert())


def bert_training():
    return _training(_bert())


def gpt2_forward():
    return _forward(_gpt2())


def gpt2_backward():
    return _backward(_gpt2())


def gpt2_training():
    return _training(_gpt2())


def gpt2_generate():
    return _generate(_gpt2())


def gpt2_sample_generate():
    return _sample(_gpt2())


def llama_forward():
    return _forward(_llama())


def llama_backward():
    return _backward(_llama())


def llama_training():
    return _training(_llama())


def llama_generate():
    return _generate(_llama())


def t5_forward():
    return _forward(_t5())


def t5_backward():
    return _backward(_t5())


def t5_training():
    return _training(_t5())


def t5_generate():
    return _generate(_t5())


def eager_attention_forward():
    model = _llama()
    model.set_attn_implementation("eager")
    return _forward(model)


def files_other():
    """save_pretrained and from_pretrained."""
    import tempfile

    model = _gpt2()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = GPT2LMHeadModel.from_pretrained(folder)
    return [list(again.state_dict()), _forward(again)]
