"""transformers: Trainer, pipelines, caches, assisted generation, recomputation, bfloat16 and padding."""

import tempfile

import torch
from transformers import (
    BertTokenizerFast,
    DataCollatorWithPadding,
    TextClassificationPipeline,
    Trainer,
    TrainingArguments,
)

from .tools import EPSILON, integers
from .transformers import WORDS, _batch, _bert, _gpt2, _labels, _llama, _training


class _InOrder(Trainer):
    """Takes the examples in order: shuffling draws different numbers in both libraries."""

    def _get_train_sampler(self, *args):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def trainer_training():
    model, words, labels = _bert(), 3 + integers(WORDS - 3, 12, 7), integers(3, 12)
    examples = [{"input_ids": w, "attention_mask": torch.ones_like(w), "labels": n} for w, n in zip(words, labels)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=2, per_device_train_batch_size=4, learning_rate=1e-2, adam_epsilon=EPSILON, warmup_steps=2,
            weight_decay=0.1, max_grad_norm=0.5, gradient_accumulation_steps=1, logging_steps=1, report_to=[], use_cpu=True,
            save_strategy="epoch", eval_strategy="epoch", disable_tqdm=True, remove_unused_columns=False,
        )  # fmt: skip
        trainer = _InOrder(model, arguments, train_dataset=examples, eval_dataset=examples[:5])
        result = trainer.train()
        again = _InOrder(_bert(), arguments, train_dataset=examples, eval_dataset=examples[:5])
        again.train(resume_from_checkpoint=f"{folder}/checkpoint-3")
        predictions = trainer.predict(examples[:5])
    history = [{k: row[k] for k in ("loss", "eval_loss", "grad_norm", "learning_rate") if k in row} for row in trainer.state.log_history]
    weights = {name: p.detach() for name, p in model.named_parameters()}
    same = [bool(torch.allclose(p, weights[n], atol=1e-5)) for n, p in again.model.named_parameters()]
    return [result.global_step, result.training_loss, history, weights, all(same), predictions.predictions]


def recomputation_training():
    model = _gpt2()
    model.gradient_checkpointing_enable()
    return _training(model)


def bfloat16_forward():
    logits = _llama().to(torch.bfloat16).eval()(**_batch()).logits
    return [str(logits.dtype), list(logits.shape), logits.float().argmax(-1)[0, :3]]


def autocast_backward():
    model = _gpt2().train()
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(**_batch(), labels=_labels(model)).loss
    loss.backward()
    grad = model.transformer.wte.weight.grad
    return [str(loss.dtype), round(loss.item(), 1), str(grad.dtype), list(grad.shape)]


def _texts(model, **options):
    prompt = {k: v[:1, :4] for k, v in _batch().items()}
    return model.eval().generate(**prompt, do_sample=False, max_new_tokens=8, pad_token_id=0, eos_token_id=None, **options)


def static_cache_generate():
    return _texts(_llama(), cache_implementation="static", disable_compile=True)


def without_cache_generate():
    return _texts(_llama(), use_cache=False)


def assisted_generate():
    return _texts(_llama(), assistant_model=_llama())


def scores_generate():
    output = _texts(_gpt2(), output_scores=True, output_logits=True, return_dict_in_generate=True)
    return [output.sequences, list(output.scores), list(output.logits)]


def processors_generate():
    return [
        _texts(_gpt2(), suppress_tokens=[5, 6], min_new_tokens=8),
        _texts(_gpt2(), bad_words_ids=[[7]], forced_eos_token_id=9),
        _texts(_gpt2(), num_beams=4, num_return_sequences=3, length_penalty=0.5, early_stopping=True),
        _texts(_gpt2(), prompt_lookup_num_tokens=2),
    ]


def pipeline_other():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the cat sat on a mat dog is in house hello".split()]
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/vocab.txt", "w") as f:
            f.write("\n".join(words))
        tokenizer = BertTokenizerFast(vocab_file=f"{folder}/vocab.txt", vocab={w: i for i, w in enumerate(words)})
    classify = TextClassificationPipeline(model=_bert().eval(), tokenizer=tokenizer, device="cpu")
    rows = [tokenizer(text) for text in ("the cat sat", "hello", "a dog is in the house")]
    padded = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=4)(rows)
    return [classify(["the cat sat on the mat", "hello"], batch_size=2, top_k=None), dict(padded)]


def resized_embeddings_other():
    model = _gpt2()
    model.resize_token_embeddings(WORDS + 4, mean_resizing=False)
    return [list(model.get_input_embeddings().weight.shape), model.get_output_embeddings().weight is model.get_input_embeddings().weight,
            sum(p.numel() for p in model.parameters())]  # fmt: skip
