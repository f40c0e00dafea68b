// Fused optimizer steps: one operator updates all parameters, split into pieces over the thread pool.
#include <algorithm>
#include <vector>

#include "engine/device/parallel.h"
#include "engine/schema/error.h"
#include "kernels/common/nn/optim.h"
#include "kernels/cpu/iteration/accumulate_type.h"
#include "kernels/cpu/iteration/copy.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/loops/optim_loops.h"

namespace tt::cpu {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements per piece: a few arrays of this size fit the L2 cache

// A parameter with its gradient and states, contiguous and in the type used for computation. Tensors of another type or
// layout are copied before the step and written back after the step.
class StepOperands {
 public:
  explicit StepOperands(Parameter parameter) : tensors_(std::move(parameter)) {
    for (size_t i = 0; i < tensors_.size(); ++i)
      computed_[i] = contiguous_as(tensors_[i], accumulate_type(tensors_[0].dtype()));
  }
  DType dtype() const { return computed_[0].dtype(); }
  int64_t numel() const { return computed_[0].numel(); }
  template <typename T>
  T* at(size_t i, int64_t offset) const {
    return computed_[i] ? computed_[i].data_as<T>() + offset : nullptr;
  }
  void write_back() const { tt::write_back(&copy, computed_, tensors_); }

 private:
  Parameter tensors_;
  Parameter computed_;
};

// Calls step(operands, offset, n) for all pieces of all parameters, in parallel.
template <typename F>
void for_each_piece(std::vector<Parameter> of, F&& step) {
  std::vector<StepOperands> parameters;
  parameters.reserve(of.size());
  for (Parameter& parameter : of) parameters.emplace_back(std::move(parameter));
  struct Piece {
    const StepOperands* operands;
    int64_t offset;
  };
  std::vector<Piece> pieces;
  for (const StepOperands& s : parameters) {
    for (int64_t offset = 0; offset < s.numel(); offset += kPiece) pieces.push_back({&s, offset});
  }
  parallel_for(static_cast<int64_t>(pieces.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece& p = pieces[static_cast<size_t>(i)];
      step(*p.operands, p.offset, std::min(kPiece, p.operands->numel() - p.offset));
    }
  });
  for (const StepOperands& s : parameters) s.write_back();
}

// Whether `number`, one float32, is given and is not 0.
bool is_set(const Tensor& number) { return number && number.data_as<float>()[0] != 0; }

template <typename T>
AdamPiece<T> adam_piece(const StepOperands& s, int64_t at) {
  return {s.at<T>(0, at), s.at<T>(1, at), s.at<T>(2, at), s.at<T>(3, at), s.at<T>(4, at)};
}

}  // namespace

void sgd_step(const Tensors& params, const Tensors& grads, const Tensors& momentum_buffers, double lr, double momentum,
              double dampening, double weight_decay, bool nesterov, bool maximize, bool first_step,
              const Tensor& found_inf) {
  if (is_set(found_inf)) return;
  const SgdStep step{lr, momentum, dampening, weight_decay, nesterov, maximize, first_step};
  for_each_piece(parameters(params, {&grads, &momentum_buffers}), [&](const StepOperands& s, int64_t at, int64_t n) {
    if (s.dtype() == DType::kFloat64) {
      sgd(n, step, SgdPiece<double>{s.at<double>(0, at), s.at<double>(1, at), s.at<double>(2, at)});
    } else {
      sgd(n, step, SgdPiece<float>{s.at<float>(0, at), s.at<float>(1, at), s.at<float>(2, at)});
    }
  });
}

void adam_step(const Tensors& params, const Tensors& grads, const Tensors& exp_avgs, const Tensors& exp_avg_sqs,
               const Tensors& max_exp_avg_sqs, int64_t step, double lr, double beta1, double beta2, double eps,
               double weight_decay, bool decoupled, bool amsgrad, bool maximize, const Tensor& found_inf,
               const Tensor& steps) {
  check_averages(params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, amsgrad);
  if (is_set(found_inf)) return;
  if (steps) step = static_cast<int64_t>(steps.data_as<float>()[0] += 1);
  const AdamStep of = adam_step_of(step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize);
  const Tensors none;
  const Tensors& largest = amsgrad ? max_exp_avg_sqs : none;
  for_each_piece(parameters(params, {&grads, &exp_avgs, &exp_avg_sqs, &largest}),
                 [&](const StepOperands& s, int64_t at, int64_t n) {
                   if (s.dtype() == DType::kFloat64) {
                     adam(n, of, adam_piece<double>(s, at));
                   } else {
                     adam(n, of, adam_piece<float>(s, at));
                   }
                 });
}

void amp_update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                      double backoff_factor, int64_t growth_interval) {
  float& value = scale.data_as<float>()[0];
  int32_t& tracker = growth_tracker.data_as<int32_t>()[0];
  const LossScale next =
      LossScale{value, tracker}.next(is_set(found_inf), growth_factor, backoff_factor, growth_interval);
  value = next.scale;
  tracker = next.growth_tracker;
}

}  // namespace tt::cpu
