#include "server/serving/statistics.h"

namespace tt::server {

void ModelStatistics::request(bool succeeded, std::chrono::nanoseconds total, std::chrono::nanoseconds queued,
                              uint64_t rows, const BatchTimes& times) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (succeeded) {
    queue_times_.add(static_cast<uint64_t>(queued.count()));
    compute_times_.add(static_cast<uint64_t>(times.infer.count()));
    request_times_.add(static_cast<uint64_t>(total.count()));
  }
  MutexLock lock(mutex_);
  last_ms_ = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  if (!succeeded) return fail_.add(total);
  success_.add(total);
  queue_.add(queued);
  input_.add(times.input);
  infer_.add(times.infer);
  output_.add(times.output);
  rows_ += rows;
}

void ModelStatistics::batch(uint64_t rows, const BatchTimes& times) {
  MutexLock lock(mutex_);
  OfBatches& of = batches_[rows];
  of.input.add(times.input);
  of.infer.add(times.infer);
  of.output.add(times.output);
}

void ModelStatistics::describe(inference::ModelStatistics* wire) const {
  MutexLock lock(mutex_);
  wire->set_last_inference(last_ms_);
  wire->set_inference_count(rows_);
  inference::InferStatistics* stats = wire->mutable_inference_stats();
  success_.describe(stats->mutable_success());
  fail_.describe(stats->mutable_fail());
  queue_.describe(stats->mutable_queue());
  input_.describe(stats->mutable_compute_input());
  infer_.describe(stats->mutable_compute_infer());
  output_.describe(stats->mutable_compute_output());
  uint64_t executions = 0;
  for (const auto& [rows, of] : batches_) {
    inference::InferBatchStatistics* batch = wire->add_batch_stats();
    batch->set_batch_size(rows);
    of.input.describe(batch->mutable_compute_input());
    of.infer.describe(batch->mutable_compute_infer());
    of.output.describe(batch->mutable_compute_output());
    executions += of.infer.count;
  }
  wire->set_execution_count(executions);
}

ModelStatistics::Totals ModelStatistics::totals() const {
  MutexLock lock(mutex_);
  Totals totals{success_.count, fail_.count, 0, rows_};
  for (const auto& [rows, of] : batches_) totals.batches += of.infer.count;
  return totals;
}

std::map<uint64_t, uint64_t> ModelStatistics::batch_sizes() const {
  MutexLock lock(mutex_);
  std::map<uint64_t, uint64_t> sizes;
  for (const auto& [rows, of] : batches_) sizes[rows] = of.infer.count;
  return sizes;
}

}  // namespace tt::server
