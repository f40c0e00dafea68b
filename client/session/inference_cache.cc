#include "client/session/inference_cache.h"

#include <algorithm>
#include <cstring>

#include "engine/schema/custom_table.h"

namespace tt::client {
namespace {

constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;

uint64_t mixed(uint64_t hash, uint64_t value) { return (hash ^ value) * kMultiplier; }

// The bits of a number or a flag, which the union's members share.
uint64_t bits_of(const Arg& arg) {
  uint64_t bits = 0;
  std::memcpy(&bits, &arg.integer, sizeof(bits));
  return bits;
}

// Compares a few numbers in a loop: a call of memcmp(), to which std::equal() is compiled, takes longer.
bool equal(SizesView a, SizesView b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

bool equal(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.requires_grad == b.requires_grad &&
         a.is_number == b.is_number && a.offset == b.offset && equal(SizesView(a.sizes), SizesView(b.sizes)) &&
         equal(SizesView(a.strides), SizesView(b.strides));
}

thread_local constinit InferenceCache* known = nullptr;  // needs no guard, unlike the Owner
thread_local constinit bool thread_ends = false;
struct Owner {
  std::unique_ptr<InferenceCache> cache = std::make_unique<InferenceCache>();
  ~Owner() {
    known = nullptr;
    thread_ends = true;
  }
};

}  // namespace

InferenceCache* InferenceCache::of_thread() {
  if (known != nullptr) [[likely]]
    return known;
  if (thread_ends) return nullptr;
  static thread_local Owner owner;
  return known = owner.cache.get();
}

InferenceCache::Key InferenceCache::key_of(const Op& op, Args args, bool grad) {
  if (op.is_view || op.is_dynamic || op.num_outputs < 0 || args.size() > kArgs || args.size() != op.params.size() ||
      is_custom(op.id)) {
    return {};
  }
  uint64_t hash = mixed(op.id, grad);
  size_t tensors = 0, numbers = 0;
  for (const Arg& arg : args) {
    switch (arg.kind) {
      case Arg::Kind::kTensor:
        if (++tensors > kTensors || arg.tensor->sizes.size() > kDims) return {};
        for (const int64_t size : arg.tensor->sizes) hash = mixed(hash, static_cast<uint64_t>(size));
        hash = mixed(hash, static_cast<uint64_t>(arg.tensor->dtype) << 1 | arg.tensor->requires_grad);
        break;
      case Arg::Kind::kInts:
        numbers += arg.size;
        if (numbers > kNumbers) return {};
        for (const int64_t number : arg.ints()) hash = mixed(hash, static_cast<uint64_t>(number));
        break;
      case Arg::Kind::kNone: break;
      case Arg::Kind::kBool:
      case Arg::Kind::kInt:
      case Arg::Kind::kFloat: hash = mixed(hash, bits_of(arg)); break;
      default: return {};
    }
  }
  return {static_cast<size_t>(hash >> 32), true};
}

const Inference* InferenceCache::find(const Key& key, const Op& op, Args args, bool grad) const {
  const Entry& entry = entries_[key.hash % kEntries];
  if (entry.op != &op || entry.grad != grad || entry.args != args.size()) return nullptr;
  size_t tensors = 0, numbers = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg &arg = args[i], &known = entry.arguments[i];
    if (arg.kind != known.kind || arg.size != known.size) return nullptr;
    if (arg.kind == Arg::Kind::kTensor) {
      if (!equal(*arg.tensor, entry.tensors[tensors++])) return nullptr;
    } else if (arg.kind == Arg::Kind::kInts) {
      if (!equal(arg.ints(), SizesView(entry.numbers).subspan(numbers, arg.size))) return nullptr;
      numbers += arg.size;
    } else if (bits_of(arg) != bits_of(known)) {
      return nullptr;
    }
  }
  return &entry.inference;
}

void InferenceCache::store(const Key& key, const Op& op, Args args, bool grad, const Inference& inference) {
  for (const TensorMeta& meta : inference.outputs) {
    if (meta.sizes.size() > kDims) return;
  }
  Entry& entry = entries_[key.hash % kEntries];
  entry.op = &op;
  entry.grad = grad;
  entry.args = static_cast<uint8_t>(args.size());
  size_t tensors = 0, numbers = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    entry.arguments[i] = args[i];
    if (args[i].kind == Arg::Kind::kTensor) entry.tensors[tensors++] = *args[i].tensor;
    if (args[i].kind != Arg::Kind::kInts) continue;
    std::copy(args[i].ints().begin(), args[i].ints().end(), entry.numbers.begin() + numbers);
    numbers += args[i].size;
  }
  entry.inference = inference;
}

}  // namespace tt::client
