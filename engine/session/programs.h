// DefinedProgram: a Program that sessions run by a number. Programs: those of one session.
//
// A definition is checked once. The passes that need the inputs' sizes and dtypes run once per signature of the inputs,
// and their results are kept with the definition, so that all sessions that use it share them.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "engine/program/passes/fold_constants.h"
#include "engine/program/program_run.h"
#include "engine/schema/error.h"
#include "engine/schema/program.h"
#include "engine/session/service.h"
#include "engine/tensor/tensor.h"

namespace tt {

// The values of a Program's names 1, 2, ... are first `read` inputs, then `written` ones, which a run may change.
// `exact`: a run has the bits of single calls.
struct ProgramInterface {
  size_t read = 0, written = 0;
  bool exact = false;
};

// What a Program of a session has done.
struct ProgramCounters {
  int64_t number = 0;
  int64_t instructions = 0;           // as defined
  int64_t compiled_instructions = 0;  // after the passes, for the latest signature of inputs
  int64_t runs = 0;                   // by the session
  int64_t signatures = 0;             // of inputs for which the passes have run
  int64_t microseconds = 0;           // that the passes took, for all sessions that share the Program
  int64_t peak_bytes = 0;             // of the values of a run (passes/peak_memory.h), for the latest signature
};

// Thread-safe.
class DefinedProgram {
 public:
  static constexpr size_t kMaxVariants = 256;
  // Beyond kFewVariants, results of the passes are kept only while all of them take at most kMaxVariantBytes.
  static constexpr size_t kFewVariants = 16;
  static constexpr uint64_t kMaxVariantBytes = uint64_t{32} << 20;

  // `sites` are the source lines of the instructions' sites 1, 2, ...; `text` is the definition as it arrived. Throws
  // Error if check_program() does. The results of the passes are kept for the `max_variants` signatures of inputs that
  // were used last. `memory_budget`: the part of forward's values, 0 to 1, that may be kept for backward passes of the
  // Program (passes/recompute.h).
  DefinedProgram(Program program, const ProgramInterface& interface, std::vector<std::string> sites, std::string text,
                 size_t max_variants = kMaxVariants, double memory_budget = 1);

  // Returns the outputs. Throws Error.
  Tensors run(const ProgramInputs& inputs) const;
  // The Program before and after each pass, as text.
  std::string explain(const ProgramInputs& inputs) const;
  // The calls that backends execute for such inputs (passes/expand.h), as JSON (engine/schema/json_text.h). Throws
  // Error.
  std::string expanded(const ProgramInputs& inputs) const;

  // What the constructor was given.
  const ProgramInterface& interface() const { return interface_; }
  const std::string& text() const { return text_; }
  // As defined; without what its outputs do not need if it has no sizes().
  const Program& program() const { return program_; }
  // All but the number and the runs.
  ProgramCounters counters() const;
  // Estimated host memory, including what the passes have made so far.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // What the passes have made for inputs of one signature. The names of the constants follow those of the inputs.
  struct Compiled {
    Program program;
    Constants constants;
  };
  struct Variant {
    std::string signature;  // of the inputs
    std::shared_ptr<const Compiled> compiled;
    int64_t peak_bytes = 0;

    uint64_t bytes() const {
      return sizeof(Variant) + signature.capacity() + compiled->program.bytes() + compiled->constants.bytes;
    }
  };
  using Metas = absl::Span<const TensorMeta* const>;
  // Receives a Program after a pass, and the metadata of its inputs and constants.
  using Visit = absl::FunctionRef<void(const char* pass, const Program& program, Metas metas)>;

  void check_inputs(const ProgramInputs& inputs) const;
  // What the passes depend on of the inputs and the current CallScope.
  std::string signature_of(const ProgramInputs& inputs) const;
  // Runs the passes that need the inputs, and visits each result. Sets `*reason`, which is empty, if
  // calls are single although loops could compute them.
  Compiled specialised(const ProgramInputs& inputs, Visit visit, std::string* reason) const;
  // Sets `*kept_apart` if later passes must not fuse calls of forward with repeated ones, to the reason.
  void expand_backward(const ProgramInputs& inputs, Program* program, Visit visit, std::string* kept_apart) const;
  std::shared_ptr<const Compiled> variant_for(const ProgramInputs& inputs) const;
  void remove_variants() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string describe_site(uint32_t site) const;

  Program program_;
  const bool writes_;                 // in place
  const bool reads_storage_offsets_;  // a view of an input may depend on its offset
  const int64_t instructions_;        // as defined
  const ProgramInterface interface_;
  const std::vector<std::string> sites_;
  const std::string text_;
  const size_t max_variants_;
  mutable std::atomic<uint64_t> bytes_{0};
  mutable Mutex mutex_;
  mutable absl::Duration compiling_ ABSL_GUARDED_BY(mutex_);     // time that the passes took
  mutable std::list<Variant> variants_ ABSL_GUARDED_BY(mutex_);  // the one used last first
  mutable absl::flat_hash_map<absl::string_view, std::list<Variant>::iterator> by_signature_ ABSL_GUARDED_BY(mutex_);
  mutable uint64_t variant_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  const double memory_budget_;
};

// Used by the thread on which the Context is current. Functions throw Error.
class Programs final : public SessionService {
 public:
  using Entry = std::shared_ptr<const DefinedProgram>;

  // ValueError if the number is in use, or the session has too many Programs.
  void define(int64_t number, Entry program);
  // The definition with this number failed: runs fail with the error, until drop().
  void fail(int64_t number, const Error& error);
  void drop(int64_t number);
  // ValueError if the number is unknown.
  Entry get(int64_t number) const;
  // Call after a run, which may have made the Program larger.
  void count_run(int64_t number);
  std::vector<ProgramCounters> counters() const;
  // Calls visit(number, program) for every Program whose definition did not fail.
  void visit(absl::FunctionRef<void(int64_t, const DefinedProgram&)> visit) const;

  size_t size() const { return programs_.size(); }
  int64_t runs() const { return runs_; }  // of all Programs, also of those that were dropped

  uint64_t host_bytes() const override { return bytes_; }  // called for every instruction
  void skipped(const Op& op, Args args, const Error& error, uint32_t site) override;
  // Programs are part of an image.
  std::string unsaved() const override { return ""; }

 private:
  static constexpr size_t kMaxPrograms = 4096;
  static constexpr uint64_t kEntryBytes = 128;

  struct Named {
    Entry program;  // null: the definition failed
    std::optional<Error> error;
    uint64_t bytes = 0;  // counted in bytes_
    int64_t runs = 0;
  };
  void count(Named* named);
  Named& add(int64_t number);

  absl::flat_hash_map<int64_t, Named> programs_;
  uint64_t bytes_ = 0;
  int64_t runs_ = 0;
};

class Dispatcher;

// The operators that run, drop, explain and expand Programs (ops/programs.yaml); server/session defines them from
// bytes.
void register_program_operators(Dispatcher& dispatcher);

}  // namespace tt
