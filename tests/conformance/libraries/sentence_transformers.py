"""sentence-transformers: a small model without downloads: embeddings, similarities, losses, training."""

import tempfile

import torch
from sentence_transformers import SentenceTransformer, losses, models, util
from transformers import BertConfig, BertModel, BertTokenizerFast

from .tools import backward, fill, randn, train

TEXTS = ["the cat sat on the mat", "a dog is in the house", "the cat is on a mat", "hello"]


def _model():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({w for t in TEXTS for w in t.split()})]
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/vocab.txt", "w") as f:
            f.write("\n".join(words))
        BertTokenizerFast(vocab_file=f"{folder}/vocab.txt", vocab={w: i for i, w in enumerate(words)}).save_pretrained(
            folder
        )
        config = BertConfig(
            vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        )  # fmt: skip
        BertModel(config).save_pretrained(folder)
        transformer = models.Transformer(folder)
    pooling = models.Pooling(transformer.get_word_embedding_dimension())
    dense = models.Dense(32, 16, activation_function=torch.nn.Tanh())
    return fill(SentenceTransformer(modules=[transformer, pooling, dense, models.Normalize()], device="cpu"))


def encode_forward():
    model = _model()
    vectors = model.encode(TEXTS, convert_to_tensor=True)
    return [
        vectors,
        model.encode(TEXTS[:2]),
        model.similarity(vectors, vectors),
        util.semantic_search(vectors[:1], vectors, top_k=2),
    ]


def ranking_backward():
    model = _model()
    features = [model.tokenize(TEXTS[:2]), model.tokenize(TEXTS[2:])]
    return backward(model, losses.MultipleNegativesRankingLoss(model)(features, None))


def cosine_training():
    model = _model()
    loss = losses.CosineSimilarityLoss(model)
    target = torch.tensor([0.9, 0.1])
    return train(model, lambda: loss([model.tokenize(TEXTS[:2]), model.tokenize(TEXTS[2:])], target), steps=3)


def utilities_other():
    a, b = randn(4, 8), randn(3, 8, seed=1)
    return [
        util.cos_sim(a, b),
        util.dot_score(a, b),
        util.euclidean_sim(a, b),
        util.manhattan_sim(a, b),
        util.normalize_embeddings(a),
        util.community_detection(torch.cat([a, a + 0.01]), 0.9, 2),
    ]


def files_other():
    model = _model()
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        again = SentenceTransformer(folder, device="cpu")
        return [again.encode(TEXTS), len(again)]
