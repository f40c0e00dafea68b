// ChainPlans: the chains that run often, planned once (PreparedChain), so that a run neither decodes nor infers them.
//
// A plan belongs to a computation and the metadata of its inputs, not to names, source lines or sessions: ordinary
// frames, Programs and all sessions share it. It is made at the kMinOccurrences-th run. There are at most kMaxEntries keys;
// then those without a plan are forgotten, and all if there are more than kMaxPlans plans. This memory, a few KiB each,
// belongs to no session. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/dispatch/chain.h"
#include "engine/program/chain_code.h"

namespace tt::composites {

// What a plan is for.
struct ChainKey {
  std::vector<int64_t> words;
  size_t hash = 0;  // seeded by the process, so that a client cannot make keys whose hashes are equal
};

// A chain whose pointwise steps are one loop, and perhaps a reduction of the last one's result.
class ChainPlan {
 public:
  // `code` is the whole chain's. `kept` describes the results that loop->run() keeps, `out` that of its last step.
  ChainPlan(std::unique_ptr<PreparedChain> loop, SizesView code, size_t inputs, std::vector<TensorMeta> kept,
            const TensorMeta& out);

  // Returns false if the chain has to run without the plan: another thread runs it, or a step has failed.
  bool run(const Tensors& inputs, Tensors* results) const;

 private:
  const std::unique_ptr<PreparedChain> loop_;
  const std::vector<int64_t> code_;
  const CodedSteps steps_;  // points into code_
  const std::vector<TensorMeta> kept_;
  const TensorMeta out_;
};

class ChainPlans {
 public:
  static constexpr int kMinOccurrences = 3;
  static constexpr size_t kMaxPlans = 256, kMaxEntries = 512;
  // Larger results take longer than planning their loop does, and may bypass the caches or be divided among threads.
  static constexpr int64_t kMaxElements = 1 << 17;
  static constexpr int64_t kMaxReduced = 1 << 15;  // of a result that is reduced, which is stored

  static ChainPlans& instance();

  // Returns false if no plan is made for such a call.
  static bool key_of(const Tensors& inputs, SizesView code, ChainKey* key);
  // The plan; null if there is none. *wanted is set to whether the caller should call set().
  std::shared_ptr<const ChainPlan> find(const ChainKey& key, bool* wanted);
  // Null: there will be no plan.
  void set(const ChainKey& key, std::shared_ptr<const ChainPlan> plan);

 private:
  void forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct Entry {
    std::vector<int64_t> words;
    int occurrences = 0;
    std::shared_ptr<const ChainPlan> plan;
  };

  Mutex mutex_;
  absl::flat_hash_map<size_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by hash
};

}  // namespace tt::composites
