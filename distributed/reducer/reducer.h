// Reducer: averages the gradients of a module's parameters over a group's ranks while a backward pass computes them.
//
// The parameters are divided into buckets, in reverse order because backward passes usually reach the last ones first.
// When all gradients of a bucket are accumulated, they are copied into one tensor, whose all_reduce starts while the
// pass continues. Buckets are reduced in the same order on all ranks. finish() waits for them and copies the results to
// the gradients. Owned by a session's GroupService; used on the session's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distributed/group/process_group.h"
#include "engine/session/gradient_observers.h"
#include "engine/session/image.h"
#include "engine/tensor/tensor.h"

namespace tt::distributed {

class Reducer final : public GradientObserver {
 public:
  struct Options {
    size_t first_bucket_bytes = size_t{1} << 20;  // small, so that the first all_reduce starts early
    size_t bucket_bytes = size_t{25} << 20;
    std::optional<DType> wire_dtype;  // 16-bit dtype in which the gradients are sent; none: their own
  };

  // Requires parameters on which gradients accumulate. Throws Error if their dtypes have no average.
  Reducer(std::shared_ptr<ProcessGroup> group, std::vector<Tensor> parameters, const Options& options);

  size_t num_parameters() const { return parameters_.size(); }
  const std::vector<Tensor>& parameters() const { return parameters_; }

  // Call before each backward pass. Gradients of a pass with `synchronize` false stay local.
  void prepare(bool synchronize);
  void accumulated(size_t index, const Tensor& gradient) override;
  // Ends the pass, unless it has computed none of the gradients. Returns the work to wait for, or null when everything
  // is complete; call it again after each wait. Then the gradients are the averages over all ranks. `gradients` are
  // those of all parameters, in order, whether the pass computed them or not, or empty: then throws Error that names
  // the parameters whose gradient was not computed. Throws the collective's Error.
  std::shared_ptr<Work> finish(const Tensors& gradients);
  // Called instead of finish() if this rank's gradients are errors: enters the collectives that have not started with
  // the error, so that the other ranks receive it. `allows_unused` as in their calls.
  void skip(const Error& error, const std::string& site, bool allows_unused);
  // After finish() with gradients: int32, for each parameter the number of ranks that computed its gradient.
  const Tensor& num_used() const { return num_used_; }
  const ProcessGroup& group() const { return *group_; }
  ProcessGroup& group() { return *group_; }

  // Whether no pass has begun to reduce gradients: then the reducer can be part of an image.
  bool is_idle() const;
  void write_image(ImageTensors* tensors, ImageOutput* out) const;
  static std::shared_ptr<Reducer> read_image(std::shared_ptr<ProcessGroup> group, ImageInput* in,
                                             const ImageObjects& objects);

 private:
  struct Bucket {
    DType dtype;
    std::vector<size_t> parameters;
    std::vector<int64_t> offsets;  // of each parameter in `flat`
    int64_t items = 0;
    size_t num_ready = 0;
    Tensor flat{};
    std::shared_ptr<Work> work{};
  };
  void allocate(Bucket& bucket);  // `flat`, on the parameters' GPU if they are on one, otherwise on the CPU
  Tensor piece(const Bucket& bucket, size_t position) const;
  void make_buckets(const Options& options);
  void start_ready_buckets();
  void start(Bucket& bucket);
  void check_complete(const Tensors& gradients) const;
  void start_unused(const Tensors& gradients);
  void copy_to_gradients(const Bucket& bucket, const Tensors& gradients) const;
  // Ends a pass that failed. Collectives that were started keep their buckets' memory.
  void abandon_pass();

  const std::shared_ptr<ProcessGroup> group_;
  const std::vector<Tensor> parameters_;
  const Options options_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<size_t, size_t>> place_;  // of each parameter: its bucket and position in it
  std::vector<Tensor> gradients_;                 // of this pass; null: not computed
  Tensor num_used_;
  std::shared_ptr<Work> used_work_;  // reduces num_used_
  size_t next_ = 0;                  // first bucket that has not started
  size_t complete_ = 0;              // buckets whose results were copied
  bool synchronizes_ = false;
  bool finishing_ = false;
};

}  // namespace tt::distributed
