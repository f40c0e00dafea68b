"""torch.ao.ns._numeric_suite_fx: weights and values of a model before and after quantization."""

import copy
import importlib
import warnings

from .record import error


def parts(torch):
    names = ("ao.ns._numeric_suite_fx", "ao.ns.fx.utils", "ao.quantization.quantize_fx", "ao.quantization")
    return [importlib.import_module(f"{torch.__name__}.{name}") for name in names]


def models(torch):
    """A prepared and a converted model, and an input."""
    _, _, fx, quantization = parts(torch)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.fc = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(8, 3)
            self.out = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.sin(torch.arange(1.0, p.numel() + 1)).reshape(p.shape))

        def forward(self, x):
            return self.out(self.fc(torch.tanh(self.conv(x)).flatten(1)) + 1)

    x = torch.sin(torch.arange(32.0)).reshape(2, 1, 4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = fx.prepare_fx(Model().eval(), quantization.get_default_qconfig_mapping("x86"), (x,))
        prepared(x)
        return prepared, fx.convert_fx(copy.deepcopy(prepared)), x


def numbers(value):
    return value.dequantize() if value.is_quantized else value


def entries(results):
    """The entries of both models, whose nodes have other names here if they call functions."""
    for name, kinds in results.items():
        for kind, found in kinds.items():
            first, second = found["a"][0], found["b"][0]
            yield [
                name if second["fqn"] else "", kind, first["type"], first["fqn"], second["fqn"], first["index_of_arg"],
                [numbers(v) for v in first["values"]], [numbers(v) for v in second["values"]], second.get("sqnr"),
            ]  # fmt: skip


def case_weights(torch):
    suite, utils, *_ = parts(torch)
    prepared, converted, _ = models(torch)
    results = suite.extract_weights("a", prepared, "b", converted)
    suite.extend_logger_results_with_comparison(results, "a", "b", utils.compute_sqnr, "sqnr")
    missing = error(suite.extend_logger_results_with_comparison, results, "a", "c", utils.compute_sqnr, "x")
    return [*entries(results), missing.partition(":")[0]]


def case_values(torch):
    suite, utils, *_ = parts(torch)
    prepared, converted, x = models(torch)
    a, b = suite.add_loggers("a", prepared, "b", converted, suite.OutputLogger)
    first, second = a(x), b(x)
    results = suite.extract_logger_info(a, b, suite.OutputLogger, "b")
    suite.extend_logger_results_with_comparison(results, "a", "b", utils.compute_sqnr, "sqnr")
    return [first, second, *entries(results)]


def case_loggers(torch):
    suite, *_ = parts(torch)
    logger = suite.OutputLogger("a", "b", "model", "name", "type", "type", "node_output", 0, 0, "fc")
    x = torch.ones(2)
    rows = [logger(x) is x, logger.stats]
    logger((x, (x, x)))
    logger.enabled = False
    logger(x)
    other = suite.OutputComparisonLogger("a", "b", "model", "name", "type", "type", "node_output", 0, 0, "fc")
    other(x, x + 1)
    return [*rows, len(logger.stats), logger.stats_rnn, other.comparisons, other.stats, error(other, (x,), x)]
