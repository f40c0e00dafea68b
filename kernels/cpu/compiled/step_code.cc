#include "kernels/cpu/compiled/step_code.h"

#include <algorithm>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/schema/op_ids.h"

namespace tt::cpu {

const Body* body_of(uint16_t op) {
  static const std::vector<const Body*> by_id = [] {
    std::vector<const Body*> bodies(op_id::kMax + 1);
    for (const Body& body : compiled_bodies()) bodies[body.op] = &body;
    return bodies;
  }();
  return by_id[op];
}

std::string StepSource::key() const {
  std::string key;
  key.reserve(3 + steps.size() * (4 + 2 * kMaxBodyTensors));
  key.push_back(static_cast<char>(is_double));
  key.push_back(static_cast<char>(num_inputs));
  key.push_back(static_cast<char>(num_numbers));
  for (const SourceStep& step : steps) {
    key.append(reinterpret_cast<const char*>(&step.body->op), sizeof(step.body->op));
    key.push_back(static_cast<char>(step.first_number));
    key.push_back(static_cast<char>(step.is_stored));
    for (int a = 0; a < step.body->num_tensors; ++a) {
      key.push_back(static_cast<char>(step.args[a].kind));
      key.push_back(static_cast<char>(step.args[a].index));
    }
  }
  return key;
}

StepCode::StepCode(const StepSource& source, Function function)
    : function_(function),
      is_double_(source.is_double),
      num_inputs_(source.num_inputs),
      num_outputs_(static_cast<int>(std::count_if(source.steps.begin(), source.steps.end(),
                                                  [](const SourceStep& step) { return step.is_stored; }))) {}

void StepCode::run(int64_t n, const void* const* in, void* const* out, const void* numbers) const {
  const int64_t whole = n & -kLanes;
  if (whole != 0) function_(whole, in, out, numbers);
  if (whole == n) return;
  if (is_double_) return run_rest<double>(whole, n, in, out, numbers);
  run_rest<float>(whole, n, in, out, numbers);
}

// Computes in padded copies, as block functions do (isa/padded.h).
template <typename C>
void StepCode::run_rest(int64_t from, int64_t n, const void* const* in, void* const* out, const void* numbers) const {
  alignas(64) C copies[kMaxCodeOperands][kLanes];
  const void* copied[kMaxCodeOperands];
  void* results[kMaxCodeOperands];
  for (int i = 0; i < num_inputs_; ++i) {
    const C* values = static_cast<const C*>(in[i]) + from;
    std::fill(std::copy_n(values, n - from, copies[i]), copies[i] + kLanes, values[0]);
    copied[i] = copies[i];
  }
  for (int i = 0; i < num_outputs_; ++i) results[i] = copies[num_inputs_ + i];
  function_(kLanes, copied, results, numbers);
  for (int i = 0; i < num_outputs_; ++i) {
    std::copy_n(copies[num_inputs_ + i], n - from, static_cast<C*>(out[i]) + from);
  }
}

namespace {

class CodeCache {
 public:
  std::shared_ptr<const StepCode> find(const StepSource& source, const char* isa, bool at_once, bool* never) {
    const std::string key = source.key();
    Entries forgotten;  // freed after the lock
    const MutexLock lock(mutex_);
    if ((entries_.size() >= kMaxCodes || bytes_ >= kMaxCodeBytes) && !entries_.contains(key)) {
      forgotten.swap(entries_);
      bytes_ = 0;
    }
    Entry& entry = entries_[key];
    constexpr int kUses = 3;  // before compiling takes less time than it will save
    if (!entry.compiled && (at_once || ++entry.uses >= kUses)) {
      entry.code = compile_steps(source, isa);
      entry.compiled = true;
      bytes_ += entry.code == nullptr ? 0 : entry.code->bytes();
    }
    *never = entry.compiled && entry.code == nullptr;
    return entry.code;
  }

 private:
  struct Entry {
    int uses = 0;
    bool compiled = false;
    std::shared_ptr<const StepCode> code;  // null: not compiled, or impossible
  };
  using Entries = absl::flat_hash_map<std::string, Entry>;

  Mutex mutex_;  // for a lookup, which also allocates its key: once per loop of many elements
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the entries' code
};

}  // namespace

std::shared_ptr<const StepCode> find_code(const StepSource& source, const char* isa, bool at_once, bool* never) {
  static CodeCache* const cache = new CodeCache;  // never destroyed: threads may use it until the process ends
  return cache->find(source, isa, at_once, never);
}

}  // namespace tt::cpu
