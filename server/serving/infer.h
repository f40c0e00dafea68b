// InferRequest and InferResult: a request for one run of a model and its outputs, independent of the transport.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/schema/dtype.h"
#include "engine/schema/error.h"
#include "engine/schema/meta.h"
#include "engine/tensor/tensor.h"

namespace tt::server {

struct InferInput {
  std::string name;
  DType dtype = DType::kFloat32;
  Sizes sizes;
  absl::Span<const char> bytes;  // in row-major order; not owned
  bool is_strings = false;       // of BYTES: encoded strings (byte_strings.h), and the dtype is kUInt8
};

using InferParameter = std::variant<bool, int64_t, double, std::string>;

struct InferOutput {
  std::string name;
  DType dtype = DType::kFloat32;
  Sizes sizes;
  Tensor values;            // on the CPU, contiguous; of the whole batch
  size_t offset = 0;        // of this request's bytes in them
  size_t size = 0;          // bytes
  bool is_bound = false;    // of `reserve`: `size` is the most that it may be
  std::string owned;        // the bytes, if there is no tensor
  bool is_strings = false;  // of BYTES, encoded, in `owned`
  absl::string_view bytes() const {
    if (!values) return owned;
    return {static_cast<const char*>(values.data()) + offset, size};
  }
};

struct InferResult {
  std::vector<InferOutput> outputs;
  std::map<std::string, InferParameter> parameters;  // of the response
};

enum class Transport : uint8_t { kGrpc, kRest };

// Values of a request. Untrusted: ModelVersion checks them.
struct InferRequest {
  struct Output {
    std::string name;
    uint64_t classes = 0;  // wanted instead of the values (classification.h); 0: the values
  };
  std::string id;
  std::vector<InferInput> inputs;
  std::vector<Output> outputs;  // empty: all
  uint64_t priority = 0;        // 1: the highest level; 0: the model's default
  uint64_t timeout_us = 0;      // in the queue; 0: the model's default
  std::string principal;        // who calls
  std::string address;          // from where, as address_of() has it
  Transport transport = Transport::kGrpc;
  std::string sequence;  // which sequence of the caller; empty: none
  bool sequence_start = false, sequence_end = false;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  // Whether the caller has gone or has lost its rights. Called by one thread at a time; may be empty.
  std::function<bool()> is_cancelled;
  uint64_t class_bytes = UINT64_MAX;                 // of an answer's classes (classification.h), encoded
  std::map<std::string, InferParameter> parameters;  // others than those above, for models that have some
  std::deque<std::string> owned;                     // bytes that the transport has converted, to which inputs refer
  // Reserves memory for an answer with these outputs, of which only dtypes, sizes and `size` are set; replaces what an
  // earlier call has reserved. Called before the run if the model's description says how large its outputs are, after
  // it if that is not known or was wrong, and again when classes are encoded. An error ends the request. May be empty.
  std::function<absl::Status(absl::Span<const InferOutput> outputs)> reserve;
  // Takes the result, before the states of a sequence change. An error ends the request, and the states stay as they
  // were. May be empty.
  std::function<absl::Status(const InferResult& result)> accept;
};

// A model whose requests have several responses, such as one that generates text. Thread-safe.
class StreamingModel {
 public:
  virtual ~StreamingModel() = default;
  // Answers a request: calls `send` for each response, on this thread, until it returns false because the client does
  // not wait any more. Waits.
  using Send = absl::FunctionRef<bool(InferResult result)>;
  virtual absl::Status stream(const InferRequest& request, Send send) = 0;
  struct Counters {
    uint64_t tokens = 0, prompt_tokens = 0, steps = 0;  // so far
    size_t running = 0, waiting = 0;                    // requests
  };
  virtual Counters counters() const = 0;
};

// The status of a request that fails with `error`. An error that a request's values or sizes cause is
// INVALID_ARGUMENT.
absl::Status infer_status(const Error& error);

}  // namespace tt::server
