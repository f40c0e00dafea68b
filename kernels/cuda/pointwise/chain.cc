#include "kernels/cuda/pointwise/chain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "engine/schema/error.h"
#include "engine/tensor/new_result.h"
#include "kernels/common/iteration/permuted_chain.h"
#include "kernels/cuda/pointwise/chain_source.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/runtime/compiler.h"
#include "kernels/cuda/runtime/queue.h"

namespace tt::cuda {

namespace {

// The fused kernels of the process, by device and chain. Thread-safe; lookups wait for a running compilation.
class FusedKernels {
 public:
  // Returns null if the chain does not compile, or during graph capture, which does not allow loading new kernels.
  // Requires a compiler.
  KernelHandle of(const Queue& queue, const ChainPlan& plan) {
    MutexLock lock(mutex_);
    std::pair<int, std::string> key{queue.device().index, plan.key()};
    if (const auto at = kernels_.find(key); at != kernels_.end()) return at->second;
    if (runtime().is_capturing(queue.stream())) return nullptr;
    return kernels_.emplace(std::move(key), compile(plan)).first->second;
  }
  Compiler& compiler() { return *compiler_; }

 private:
  KernelHandle compile(const ChainPlan& plan) {
    try {
      return compiler_->compile(plan.source());
    } catch (const Error&) {
      return nullptr;  // run the steps one by one, as without a compiler
    }
  }

  Mutex mutex_;
  std::map<std::pair<int, std::string>, KernelHandle> kernels_ ABSL_GUARDED_BY(mutex_);  // null: compilation failed
  const std::unique_ptr<Compiler> compiler_ = make_compiler();
};

FusedKernels& fused_kernels() {
  static auto* kernels = new FusedKernels;  // never destroyed: sessions may outlive main
  return *kernels;
}

template <typename T>
void launch(const ChainPlan& plan, KernelHandle kernel, int64_t numel, const Queue& queue) {
  constexpr int kThreads = 256;
  constexpr int64_t kEach = 4, kMaxBlocks = int64_t{1} << 20;
  const ChainParameters<T> parameters = plan.parameters<T>();
  const int64_t blocks = std::min((numel + kThreads * kEach - 1) / (kThreads * kEach), kMaxBlocks);
  queue.add([=](StreamHandle stream) {
    ChainParameters<T> mutable_copy = parameters;
    fused_kernels().compiler().launch(kernel, blocks, kThreads, &mutable_copy, sizeof mutable_copy, stream);
  });
}

bool run_fused(const ChainPlan& plan, const Tensor& out) {
  if (!plan.possible() || !fused_kernels().compiler().available()) return false;
  const Queue queue = queue_of(out);
  const KernelHandle kernel = fused_kernels().of(queue, plan);
  if (!kernel) return false;
  switch (plan.compute()) {
    case DType::kFloat32: launch<float>(plan, kernel, out.numel(), queue); break;
    case DType::kFloat64: launch<double>(plan, kernel, out.numel(), queue); break;
    case DType::kInt32: launch<int32_t>(plan, kernel, out.numel(), queue); break;
    default: launch<int64_t>(plan, kernel, out.numel(), queue);
  }
  return true;
}

bool divides_integers(const ChainStep& step) { return !is_floating(step.compute) && divides(step.op->id); }

void run_one_by_one(absl::Span<const ChainStep> steps, const Tensor& out) {
  absl::InlinedVector<Tensor, kShortChain.steps> results;
  for (const ChainStep& step : steps) {
    absl::InlinedVector<Arg, 6> args(step.args.begin(), step.args.end());
    for (Arg& arg : args) {
      if (arg.kind == Arg::Kind::kSlot) arg = Arg(results[arg.slot].get());
    }
    Inference inferred;
    infer(*step.op, args, false, &inferred);
    results.push_back(&step == &steps.back() ? out : new_result(inferred.outputs[0]));
    run_step({step.op, args, step.compute}, results.back());
  }
}

}  // namespace

void run_chain(absl::Span<const ChainStep> steps, const Tensor& out) {
  if (run_permuted(steps, out, &run_chain)) return;
  for (const ChainStep& step : steps) {
    check(ErrorKind::kNotImplemented, !divides_integers(step), "chains with an integer division are not implemented");
  }
  if (out.numel() == 0 || run_fused(ChainPlan(steps, out), out)) return;
  run_one_by_one(steps, out);
}

}  // namespace tt::cuda
