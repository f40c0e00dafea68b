// A request in the queue of a ModelVersion, and what the run of its batch leaves for its answer. For model_version.cc,
// model_requests.cc and model_batches.cc only.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "server/serving/model_version.h"
#include "server/serving/request_inputs.h"

namespace tt::server {

// The product of sizes that check_input() has accepted.
inline size_t elements_of(SizesView sizes) {
  size_t elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<size_t>(size);
  return elements;
}

struct ModelVersion::Work final : Batcher::Job {
  std::vector<const InferInput*> inputs;  // in the entry's order; null for those that are states
  std::deque<InferInput> controls;        // of them, those that the server sets
  std::deque<std::string> control_values;
  NamedSizes named;                // of the inputs
  std::deque<InferInput> strings;  // of them, those that clients send as BYTES
  struct Output {
    size_t index = 0;
    uint64_t classes = 0;  // as InferRequest::Output has it
  };
  std::vector<Output> outputs;                  // those that are wanted
  bool has_sequence = false;                    // it is a request of one
  const std::vector<Tensor>* states = nullptr;  // of its sequence; null: they are to be made
  std::vector<Tensor> next_states;              // after the run
  std::vector<Tensor> values;                   // of the batch, by output
  size_t first_row = 0;                         // in the batch
  size_t rows_run = 0;  // of the batch, with those that only fill it; 0: the values are the request's
  BatchTimes times;     // of the batch
};

}  // namespace tt::server
