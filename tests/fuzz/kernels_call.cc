#include "tests/fuzz/kernels_call.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <vector>

#include "autograd/graph_task.h"
#include "autograd/record.h"
#include "engine/composites/composites.h"
#include "engine/device/devices.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/memory/account.h"
#include "engine/program/slot_table.h"
#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "kernels/cpu/cpu.h"
#include "tests/fuzz/operator_arguments.h"

namespace tt::fuzz {
namespace {

constexpr double kMaxSeconds = 10;  // maximum processor time per input
constexpr uint64_t kMemoryLimit = 4u << 20;
constexpr size_t kMaxCalls = 3;

void have_engine() {
  static const bool ready = [] {
    cpu::register_backend(Dispatcher::instance());
    register_composites(Dispatcher::instance());
    autograd::register_autograd(Dispatcher::instance());
    return true;
  }();
  (void)ready;
}

// Possible element values; the first half are moderate and drawn twice as often.
Scalar number(size_t which) {
  const Scalar kNumbers[] = {Scalar(int64_t{0}),
                             Scalar(int64_t{1}),
                             Scalar(int64_t{2}),
                             Scalar(0.5),
                             Scalar(int64_t{-1}),
                             Scalar(std::numeric_limits<int64_t>::max()),
                             Scalar(std::numeric_limits<int64_t>::min()),
                             Scalar(std::numeric_limits<double>::quiet_NaN()),
                             Scalar(std::numeric_limits<double>::infinity()),
                             Scalar(1e30),
                             Scalar(-3.75),
                             Scalar(int64_t{255})};
  return kNumbers[which % std::size(kNumbers)];
}
constexpr size_t kCalmNumbers = 4, kNumbers = 12;

// A session, and the tensors that an input creates.
class Run {
 public:
  Run(const uint8_t* data, size_t size) : bytes_(data, size) {
    context_.account = std::make_shared<Account>("fuzz", kMemoryLimit);
  }

  std::string all() {
    ContextScope scope(&context_);
    const size_t calls = 1 + bytes_.below(kMaxCalls);
    try {
      for (size_t i = 0; i < calls && !bytes_.at_end(); ++i) {
        if (std::string fault = one(); !fault.empty()) return fault;
      }
    } catch (const Error&) {  // the session's memory limit was reached while creating arguments
    }
    return "";
  }

 private:
  const TensorMeta* make(const TensorMeta& meta) {
    if (tensors_.size() > 2 && bytes_.one_in(3)) return tensors_[bytes_.below(tensors_.size())].get();
    tensors_.push_back(made(meta));
    return tensors_.back().get();
  }

  Tensor made(const TensorMeta& meta) {
    int64_t last = meta.offset;
    for (size_t d = 0; d < meta.sizes.size(); ++d) last += (std::max<int64_t>(meta.sizes[d], 1) - 1) * meta.strides[d];
    const Tensor storage = empty(Sizes{last + 1}, meta.dtype, Device{});
    fill(storage);
    Tensor result = alias(storage, meta);
    result->requires_grad = meta.requires_grad;
    return result;
  }

  void fill(const Tensor& t) {
    const size_t item = item_size(t.dtype()), kinds = bytes_.one_in(3) ? kNumbers : kCalmNumbers;
    std::string patterns;
    for (size_t i = 0; i < kinds; ++i) {
      const Tensor one = scalar_tensor(number(i), t.dtype(), Device{});
      patterns.append(static_cast<const char*>(one.data()), item);
    }
    uint64_t state = bytes_.byte();
    for (int64_t i = 0; i < t.numel(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      std::memcpy(static_cast<char*>(t.data()) + static_cast<size_t>(i) * item,
                  patterns.data() + (state >> 33) % kinds * item, item);
    }
  }

  std::string one() {
    const Op& op = draw_op(bytes_);
    TensorLimits limits;
    limits.extreme = false;
    limits.cpu_only = true;
    OperatorArguments arguments(op, bytes_, limits, [this](const TensorMeta& meta) { return make(meta); });
    if (std::getenv("TT_FUZZ_TRACE")) std::fprintf(stderr, "%s\n", arguments.to_string().c_str());
    const std::clock_t start = std::clock();
    std::string fault = attempt(op, arguments);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (fault.empty() && seconds > kMaxSeconds) fault = "took " + std::to_string(seconds) + " s";
    return fault.empty() ? fault : arguments.to_string() + ": " + fault;
  }

  std::string attempt(const Op& op, const OperatorArguments& arguments) {
    try {
      op.check_args(arguments.args());
      Call call;
      call.op = &op;
      call.args = arguments.args();
      context_.grad_enabled = !bytes_.one_in(4);
      if (bytes_.one_in(4)) choose_outputs(&call);
      Dispatcher::instance().dispatch(call);
      if (std::string fault = check_results(call); !fault.empty()) return fault;
      for (const Tensor& t : call.outputs) tensors_.push_back(t);
      if (bytes_.one_in(2)) backward(call.outputs);
    } catch (const Error& error) {
      if (error.message().empty()) return "an Error without a message";
    } catch (const std::exception& error) {
      return std::string("an exception other than Error: ") + error.what();
    }
    return "";
  }

  // Calls in place on existing tensors, or with out tensors of other layouts.
  void choose_outputs(Call* call) {
    Inference inference;
    infer(*call->op, call->args, context_.grad_enabled, &inference);
    if (call->op->is_dynamic || call->op->is_view) return;
    for (const TensorMeta& meta : inference.outputs) {
      Tensor target;
      for (const Tensor& t : tensors_) {
        if (t && t.sizes() == meta.sizes && bytes_.one_in(2)) target = t;
      }
      if (!target) {
        Geometry turned{meta.sizes, contiguous_strides(meta.sizes), 0, true};
        std::reverse(turned.sizes.begin(), turned.sizes.end());
        turned.strides = contiguous_strides(turned.sizes);
        std::reverse(turned.sizes.begin(), turned.sizes.end());
        std::reverse(turned.strides.begin(), turned.strides.end());
        target = view_of(empty(meta.sizes, meta.dtype, Device{}), turned);
      }
      call->outputs.push_back(target);
    }
    call->into = true;
  }

  std::string check_results(const Call& call) {
    const auto& inferred = call.inferred.outputs;
    if (!call.op->is_dynamic && call.op->num_outputs >= 0 && call.outputs.size() != inferred.size())
      return "number of results differs from inferred";
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const Tensor& t = call.outputs[i];
      if (!t) return "an undefined result";
      if (t.dim() > kMaxDims) return "more dimensions than allowed";
      if (call.op->is_dynamic) continue;
      if (t.sizes() != inferred[i].sizes) return "sizes differ from inferred: " + describe(t.meta());
      if (!call.into && t.dtype() != inferred[i].dtype) return "dtype differs from inferred: " + describe(t.meta());
    }
    return "";
  }

  void backward(const Tensors& outputs) {
    std::vector<Tensor> roots, gradients;
    for (const Tensor& t : outputs) {
      if (!t.requires_grad() || t.numel() == 0) continue;
      const Tensor gradient = empty(t.sizes(), t.dtype(), Device{});
      fill(gradient);
      roots.push_back(t);
      gradients.push_back(gradient);
    }
    if (roots.empty()) return;
    autograd::GraphTaskOptions options;
    options.create_graph = options.retain_graph = bytes_.one_in(4);
    autograd::GraphTask(roots, gradients, {}, options).finish({});
  }

  ByteReader bytes_;
  Context context_;
  std::vector<Tensor> tensors_;
};

}  // namespace

std::string call_kernels(const uint8_t* data, size_t size) {
  have_engine();
  return Run(data, size).all();
}

}  // namespace tt::fuzz
