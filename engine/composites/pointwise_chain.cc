#include "engine/composites/pointwise_chain.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "engine/composites/chain_plans.h"
#include "engine/device/cancellation.h"
#include "engine/device/failed_check.h"
#include "engine/device/fair_queue.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/call_scope.h"
#include "engine/dispatch/chain.h"
#include "engine/dispatch/chain_reduction.h"
#include "engine/program/chain_code.h"
#include "engine/program/poison.h"
#include "engine/tensor/new_result.h"

namespace tt::composites {
namespace {

class ChainRun {
 public:
  ChainRun(const Tensors& inputs, SizesView code)
      : inputs_(inputs),
        code_(code),
        steps_(read_chain(code, inputs.size())),
        last_use_(steps_.size()),
        inferred_(steps_.size()),
        results_(steps_.size()) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      last_use_[i] = steps_[i].kept ? steps_.size() : i;
      for_each_tensor(i, [&](size_t, bool is_result, size_t from) {
        if (is_result) last_use_[from] = std::max(last_use_[from], i);
      });
    }
  }

  // The results of the kept steps, and that of the last one. `planned`: if not null, the chain's key, for a plan.
  Tensors run(const ChainKey* planned) {
    planned_ = planned;
    for (size_t i = 0; i < steps_.size();) {
      size_t length = find_loop(i);
      if (may_reduce(i, length) && run_loop(i, length, /*reduces=*/true)) {
        i += length + 1;
      } else {
        // A loop of many steps may need more blocks at once than a backend has.
        while (length >= 2 && !run_loop(i, length, /*reduces=*/false)) length = shorter_loop(i, length);
        if (length >= 2)
          i += length;
        else
          run_step(i++);
      }
      for (size_t done = 0; done < i; ++done) {
        if (last_use_[done] < i && done + 1 < steps_.size()) results_[done] = Tensor();
      }
    }
    Tensors kept;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].kept || i + 1 == steps_.size()) kept.push_back(std::move(results_[i]));
    }
    return kept;
  }

 private:
  // Calls visit(argument index, is_result, index) for each tensor argument. `index` is the index of an earlier step if
  // is_result, else the index of an input.
  template <typename Visit>
  void for_each_tensor(size_t step, const Visit& visit) const {
    for (size_t a = 0; a < steps_[step].args.size(); ++a) {
      const int8_t from = steps_[step].from[a];
      if (from >= 0) visit(a, steps_[step].args[a].kind == Arg::Kind::kSlot, static_cast<size_t>(from));
    }
  }

  // Returns the step's arguments. Inputs and results of steps before `first` are tensors; results of steps from `first`
  // on are the inferred metas.
  absl::InlinedVector<Arg, 4> arguments(size_t step, size_t first) const {
    absl::InlinedVector<Arg, 4> args = steps_[step].args;
    for_each_tensor(step, [&](size_t a, bool is_result, size_t from) {
      if (!is_result) {
        args[a] = Arg(inputs_[from].get());
      } else {
        args[a] = Arg(from < first ? results_[from].get() : &inferred_[from].outputs[0]);
      }
    });
    return args;
  }

  bool reads_large(size_t step) const {
    bool large = false;
    for_each_tensor(step, [&](size_t, bool is_result, size_t from) {
      large |= (is_result ? results_[from] : inputs_[from]).numel() >= kMinRegionElements;
    });
    return large;
  }

  // Returns the number of steps from `first` on that may run as one loop; 1 step is a loop only with a reduction after
  // it.
  size_t find_loop(size_t first) {
    if (first + 1 >= steps_.size() || !steps_[first].op->is_pointwise || !reads_large(first)) return 0;
    size_t end = first, inputs = 0;
    size_t longest = kMaxChainSteps;
    while (end < steps_.size() && end - first < longest && steps_[end].op->is_pointwise && joins(end, first, &inputs)) {
      if (end++ == first) longest = chain_limits(inferred_[first].backend).steps;
    }
    while (end >= first + 2 && !stores_what_is_read(first, end)) --end;
    return end - first;
  }

  // The number of steps to try after a loop of `length` has failed; 0: only single ones are left.
  size_t shorter_loop(size_t first, size_t length) const {
    size_t half = length > kShortChain.steps ? length / 2 : 0;
    while (half >= 2 && !stores_what_is_read(first, first + half)) --half;
    return half;
  }

  bool is_read_after(size_t step, size_t end) const { return step + 1 < end && last_use_[step] >= end; }
  // Whether a loop of the steps [first, end) can store every result that is read after it.
  bool stores_what_is_read(size_t first, size_t end) const {
    const TensorMeta& last = inferred_[end - 1].outputs[0];
    for (size_t i = first; i + 1 < end; ++i) {
      if (!is_read_after(i, end)) continue;
      const TensorMeta& result = inferred_[i].outputs[0];
      if (!keeps_chain_results(inferred_[i].backend) || result.dtype != inferred_[i].compute ||
          last.dtype != result.dtype || last.strides != result.strides) {
        return false;
      }
    }
    return true;
  }

  // Whether the step after a loop is a reduction that the loop can do. Its rows are then long enough, so that the
  // loop computes them one by one without a loss.
  bool may_reduce(size_t first, size_t length) {
    const size_t reduction = first + length;
    if (length == 0 || reduction + 1 != steps_.size() || steps_[reduction].op->is_pointwise) return false;
    // A profile has the sizes of each step's result, which would not exist.
    if (CallScope::current().observes_kernels()) return false;
    const Inference& last = inferred_[reduction - 1];
    const TensorMeta& input = last.outputs[0];
    if (!reduces_chains(last.backend) || input.dtype != last.compute ||
        (input.dtype != DType::kFloat32 && input.dtype != DType::kFloat64)) {
      return false;
    }
    Inference& inferred = inferred_[reduction];
    const auto args = arguments(reduction, first);
    try {
      steps_[reduction].op->check_args(args);
      run_with_check_recovery(
          [&] { infer(*steps_[reduction].op, args, CallScope::current().grad_enabled, &inferred); });
    } catch (const Error&) {
      return false;  // run_step() reports the error
    }
    if (inferred.requires_grad || inferred.outputs[0].dtype != input.dtype) return false;
    return place_of_reduction(input, inferred.outputs[0], args[1], num_threads()) == ReductionPlace::kInLoop;
  }

  bool joins(size_t step, size_t first, size_t* inputs) {
    for (size_t a = 0; a < steps_[step].args.size(); ++a) {
      const bool is_inner =
          steps_[step].args[a].kind == Arg::Kind::kSlot && steps_[step].from[a] >= static_cast<int>(first);
      const bool is_operand = steps_[step].op->params[a].type == ParamType::kTensor;
      *inputs += !is_inner && (steps_[step].from[a] >= 0 || (is_operand && steps_[step].args[a].is_number()));
    }
    Inference& inferred = inferred_[step];
    const auto args = arguments(step, first);
    try {
      steps_[step].op->check_args(args);
      run_with_check_recovery([&] { infer(*steps_[step].op, args, CallScope::current().grad_enabled, &inferred); });
    } catch (const Error&) {
      return false;  // run_step() reports the error
    }
    if (*inputs > chain_limits(inferred.backend).inputs) return false;
    const TensorMeta& meta = inferred.outputs[0];
    // A loop broadcasts its operands; assign() also drops leading dimensions of one element.
    const auto has_more_dims = [&](const Arg& arg) {
      return arg.kind == Arg::Kind::kTensor && arg.tensor->dim() > meta.dim();
    };
    if (std::any_of(args.begin(), args.end(), has_more_dims)) return false;
    if (inferred.requires_grad || !Dispatcher::instance().chain_kernel(inferred.backend)) return false;
    // A loop can store only these dtypes in its blocks. A result has the compute dtype or is boolean.
    const bool is_block_dtype = inferred.compute == DType::kFloat32 || inferred.compute == DType::kFloat64 ||
                                inferred.compute == DType::kInt32 || inferred.compute == DType::kInt64;
    if (!is_block_dtype || (meta.dtype != inferred.compute && meta.dtype != DType::kBool)) return false;
    if (step == first) return meta.numel() >= kMinRegionElements;
    const Inference& start = inferred_[first];
    return inferred.compute == start.compute && inferred.backend == start.backend &&
           meta.sizes == start.outputs[0].sizes;
  }

  // Returns false on failure. Nothing has changed then: the caller runs the steps one by one, and the failing step
  // reports its error.
  bool run_loop(size_t first, size_t length, bool reduces) {
    if (cancel_requested()) return false;
    absl::InlinedVector<absl::InlinedVector<Arg, 4>, kShortChain.steps> args;
    absl::InlinedVector<ChainStep, kShortChain.steps> chain;
    const size_t last = first + length - !reduces;  // the step whose result is `out`
    for (size_t i = first; i <= last; ++i) args.push_back(arguments(i, first));
    for (size_t i = first; i <= last; ++i) {
      absl::InlinedVector<Arg, 4>& list = args[i - first];
      for_each_tensor(i, [&](size_t a, bool is_result, size_t from) {
        if (!is_result || from < first) return;
        list[a].kind = Arg::Kind::kSlot;
        list[a].slot = from - first;
      });
      chain.push_back({steps_[i].op, list, inferred_[i].compute});
    }
    absl::Cleanup forget = [&] {  // unless the loop succeeds
      for (size_t i = first; i <= last; ++i) results_[i] = Tensor();
    };
    CallScope& scope = CallScope::current();
    scope.site = steps_[first].site;
    if (Turn* const turn = Turn::current()) turn->offer();
    const Activity::Kernel running(scope.activity, steps_[last].op->id);
    try {
      if (scope.observes_kernels()) [[unlikely]]
        observe(chain, first, Tensor());
      for (size_t i = first; i < last; ++i) {
        if (!is_read_after(i, last + 1)) continue;
        results_[i] = new_result(inferred_[i].outputs[0]);
        chain[i - first].kept = &results_[i];
      }
      Tensor out = new_result(inferred_[last].outputs[0]);
      try {
        Dispatcher::instance().chain_kernel(inferred_[first].backend)(chain, out);
      } catch (const std::exception&) {
        if (scope.observes_kernels()) observe(chain, first, out);
        throw;
      }
      if (scope.observes_kernels()) [[unlikely]]
        observe(chain, first, out);
      results_[last] = std::move(out);
      std::move(forget).Cancel();
      if (planned_ != nullptr && first == 0) plan(chain);
    } catch (const std::exception&) {
      return false;
    }
    scope.fused += last - first;
    return true;
  }

  // Makes a plan of the chain, of which the loop `chain` has run, if the loop contains all pointwise steps.
  void plan(absl::Span<const ChainStep> chain) {
    const size_t length = steps_.size() - !steps_.back().op->is_pointwise;
    if (chain.size() < length) return;
    const TensorMeta& out = inferred_[length - 1].outputs[0];
    const DeviceType backend = inferred_[0].backend;
    const ChainPreparation prepare = Dispatcher::instance().chain_preparation(backend);
    const bool reduces = length < steps_.size();
    if (prepare == nullptr || out.numel() > (reduces ? ChainPlans::kMaxReduced : ChainPlans::kMaxElements)) return;
    std::vector<TensorMeta> kept;
    for (size_t i = 0; i + 1 < length; ++i) {
      if (chain[i].kept != nullptr) kept.push_back(inferred_[i].outputs[0]);
    }
    const Tensor like = new_result(out);  // the result of a loop that reduces does not exist
    absl::InlinedVector<ChainStep, kShortChain.steps> loop_steps(chain.begin(), chain.begin() + length);
    loop_steps.back().kept = nullptr;  // of a loop that reduces, the plan keeps the result itself
    std::unique_ptr<PreparedChain> loop = prepare(loop_steps, inputs_, like);
    if (loop != nullptr) {
      ChainPlans::instance().set(
          *planned_, std::make_shared<ChainPlan>(std::move(loop), code_, inputs_.size(), std::move(kept), out));
    }
  }

  // Calls the kernel observer for each step of the chain that begins with step `first`: before_kernel() if `out` is
  // undefined, else after_kernel() with `out`. before_kernel() may throw to prevent the loop.
  void observe(absl::Span<const ChainStep> chain, size_t first, const Tensor& out) {
    for (size_t i = 0; i < chain.size(); ++i) {
      Call call;
      call.op = chain[i].op;
      call.args = chain[i].args;
      call.inferred = inferred_[first + i];
      call.chain_length = static_cast<uint32_t>(chain.size());
      if (out) {
        call.outputs = {out};
        CallScope::current().after_kernel(call);
      } else {
        CallScope::current().before_kernel(call);
      }
    }
  }

  void run_step(size_t i) {
    const auto args = arguments(i, i);
    CallScope::current().site = steps_[i].site;
    CallScope::current().first_result = steps_[i].result;
    try {
      steps_[i].op->check_args(args);
    } catch (const Error& error) {
      throw Poisoned(make_poison(error.kind(), error.message(), steps_[i].op->name, steps_[i].site));
    }
    Call call;
    call.op = steps_[i].op;
    call.args = args;
    if (PoisonRef poison = try_dispatch(call, steps_[i].site)) throw Poisoned(std::move(poison));
    results_[i] = std::move(call.outputs[0]);
  }

  const Tensors& inputs_;
  const SizesView code_;
  const CodedSteps steps_;
  const ChainKey* planned_ = nullptr;
  // By step.
  absl::InlinedVector<size_t, kShortChain.steps> last_use_;
  absl::InlinedVector<Inference, kShortChain.steps> inferred_;
  absl::InlinedVector<Tensor, kShortChain.steps> results_;
};

}  // namespace

Tensors run_chain(const Tensors& inputs, SizesView steps) {
  ChainKey key;
  bool wanted = false;
  if (ChainPlans::key_of(inputs, steps, &key)) {
    const std::shared_ptr<const ChainPlan> plan = ChainPlans::instance().find(key, &wanted);
    Tensors results;
    if (plan && plan->run(inputs, &results)) return results;
  }
  return ChainRun(inputs, steps).run(wanted ? &key : nullptr);
}

}  // namespace tt::composites
