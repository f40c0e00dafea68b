#include "server/serving/generation/model_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"

namespace tt::server::generation {
namespace {

constexpr int64_t kMinWindow = 32;
constexpr int64_t kMaxLength = int64_t{1} << 20, kMaxVocabulary = int64_t{1} << 24;

int64_t attribute(const ModelFile& file, const std::string& name, int64_t largest) {
  const auto found = file.attributes.find(name);
  int64_t value = 0;
  check(ErrorKind::kValue,
        found != file.attributes.end() && absl::SimpleAtoi(found->second, &value) && value >= 1 && value <= largest,
        "[generation] expected the attribute ", name, " to be a number from 1 to ", largest);
  return value;
}

void check_port(const ModelEntry& entry, const ModelPort& port, DType dtype, absl::Span<const int64_t> sizes) {
  bool fits = port.dtype == dtype && port.dims.size() == sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = port.dims[i].size == sizes[i];
  check(ErrorKind::kValue, fits, "[generation] expected ", port.name, " of the entry ", entry.name, " to be ",
        std::string(name(dtype)), " of the sizes ", to_string(Sizes(sizes.begin(), sizes.end())));
}

const ModelEntry& entry_of(const ModelFile& file, const char* name) {
  const ModelEntry* entry = file.find(name);
  check(ErrorKind::kValue, entry != nullptr, "[generation] expected an entry ", name);
  check(ErrorKind::kValue, entry->inputs.size() == 3 && entry->outputs.size() == 1, "[generation] expected 3 inputs ",
        "and 1 output of the entry ", name, ", got ", entry->inputs.size(), " and ", entry->outputs.size());
  check(ErrorKind::kValue, !entry->states.empty() && entry->states_in_place() == entry->states.size(),
        "[generation] expected states of the entry ", name, ", all of which it changes in place");
  return *entry;
}

DecoderLimits limits_of(const ModelFile& file, const ModelEntry& prefill, const ModelEntry& step) {
  DecoderLimits limits;
  limits.slots = attribute(file, "generation.slots", ModelDecoder::kMaxSlots);
  limits.max_length = attribute(file, "generation.max_length", kMaxLength);
  const auto& dims = step.outputs[0].dims;
  limits.vocabulary = dims.size() == 2 ? dims[1].size : 0;
  check(ErrorKind::kValue, limits.vocabulary >= 1 && limits.vocabulary <= kMaxVocabulary,
        "[generation] expected logits of the sizes [rows, vocabulary] from the entry step");
  check_port(prefill, prefill.inputs[0], DType::kInt64, {1, kDynamic});
  check_port(prefill, prefill.inputs[1], DType::kInt64, {1});
  check_port(prefill, prefill.inputs[2], DType::kInt64, {1});
  check_port(prefill, prefill.outputs[0], DType::kFloat32, {1, limits.vocabulary});
  for (const ModelPort& input : step.inputs) check_port(step, input, DType::kInt64, {kDynamic});
  check_port(step, step.outputs[0], DType::kFloat32, {kDynamic, limits.vocabulary});
  check(ErrorKind::kValue, prefill.states.size() == step.states.size(),
        "[generation] expected the same states of both entries");
  for (size_t i = 0; i < step.states.size(); ++i) {
    const ModelState& a = prefill.states[i];
    const ModelState& b = step.states[i];
    check(ErrorKind::kValue, a.name == b.name && a.dtype == b.dtype && a.sizes == b.sizes,
          "[generation] expected the same states of both entries");
  }
  return limits;
}

// The smallest power of two, or `largest`, that is not smaller.
int64_t rounded(int64_t size, int64_t smallest, int64_t largest) {
  const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(size, smallest))));
  return std::min(power, largest);
}

Tensor int64_tensor(Sizes sizes, absl::Span<const int64_t> values) {
  Tensor tensor = empty(sizes, DType::kInt64, Device());
  std::fill_n(tensor.data_as<int64_t>(), tensor.numel(), 0);
  std::copy(values.begin(), values.end(), tensor.data_as<int64_t>());
  return tensor;
}

}  // namespace

bool ModelDecoder::is_decoder(const ModelFile& file) {
  return file.find("prefill") != nullptr && file.find("step") != nullptr &&
         file.attributes.contains("generation.slots");
}

ModelDecoder::ModelDecoder(std::shared_ptr<const ServedModel> model)
    : model_(std::move(model)),
      prefill_(entry_of(model_->file(), "prefill")),
      step_(entry_of(model_->file(), "step")),
      limits_(limits_of(model_->file(), prefill_, step_)),
      instance_(model_) {
  const ModelInstance::Use use(instance_);
  states_ = instance_.make_states(step_);
}

ModelDecoder::~ModelDecoder() {
  const ModelInstance::Use use(instance_);
  states_.clear();
}

void ModelDecoder::run(const ModelEntry& entry, const std::vector<Tensor>& inputs, int64_t rows) {
  std::vector<Tensor> host = instance_.to_host(instance_.run(entry, inputs, &states_));
  const Tensor& logits = host.at(0);
  check(logits.dtype() == DType::kFloat32 && logits.dim() == 2 && logits.size(0) >= rows &&
            logits.size(1) == limits_.vocabulary,
        "[generation] expected at least ", rows, " rows of ", limits_.vocabulary, " logits, got ", logits.meta());
  const auto count = static_cast<size_t>(rows * limits_.vocabulary);
  logits_.assign(logits.data_as<float>(), logits.data_as<float>() + count);
}

absl::Span<const float> ModelDecoder::prefill(int64_t slot, absl::Span<const int64_t> tokens) {
  const ModelInstance::Use use(instance_);
  const auto length = static_cast<int64_t>(tokens.size());
  const Tensor padded = int64_tensor({1, rounded(length, kMinWindow, limits_.max_length)}, tokens);
  run(prefill_, {padded, int64_tensor({1}, {length}), int64_tensor({1}, {slot})}, 1);
  return logits_;
}

absl::Span<const float> ModelDecoder::step(absl::Span<const Next> next) {
  const ModelInstance::Use use(instance_);
  int64_t largest = 0, last = 0;
  for (const Next& each : next) {
    largest = std::max(largest, each.slot);
    last = std::max(last, each.position);
  }
  const int64_t rows = rounded(largest + 1, 1, limits_.slots);
  const Tensor tokens = int64_tensor({rows}, {}), positions = int64_tensor({rows}, {});
  for (const Next& each : next) {
    tokens.data_as<int64_t>()[each.slot] = each.token;
    positions.data_as<int64_t>()[each.slot] = each.position;
  }
  const Tensor window = int64_tensor({rounded(last + 1, kMinWindow, limits_.max_length)}, {});
  for (int64_t i = 0; i < window.numel(); ++i) window.data_as<int64_t>()[i] = i;
  run(step_, {tokens, positions, window}, rows);
  const auto vocabulary = static_cast<size_t>(limits_.vocabulary);
  ordered_.resize(next.size() * vocabulary);
  for (size_t i = 0; i < next.size(); ++i) {
    std::copy_n(logits_.begin() + next[i].slot * limits_.vocabulary, vocabulary,
                ordered_.begin() + static_cast<std::ptrdiff_t>(i * vocabulary));
  }
  return ordered_;
}

}  // namespace tt::server::generation
