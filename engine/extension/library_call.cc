#include "engine/extension/library_call.h"

#include <algorithm>

#include "engine/device/cancellation.h"
#include "engine/device/fair_queue.h"
#include "engine/device/native_stream.h"
#include "engine/device/parallel.h"
#include "engine/dispatch/boxed.h"
#include "engine/dispatch/call_scope.h"
#include "engine/schema/error.h"

// What a library sees as an opaque type.
struct teletensor_call {
  tt::extension::LibraryCall& call;
  // Of the frame, for other threads of a parallel loop.
  const tt::Cancellation* cancellation;
};

namespace tt::extension {

constexpr size_t kMaxMessage = 4096;

// The header's numbers are the engine's.
static_assert(TELETENSOR_FLOAT8_E5M2 == kNumDTypes - 1 &&
              TELETENSOR_FLOAT8_E5M2 == static_cast<int>(DType::kFloat8E5m2) &&
              TELETENSOR_BOOL == static_cast<int>(DType::kBool) &&
              TELETENSOR_BFLOAT16 == static_cast<int>(DType::kBFloat16) &&
              TELETENSOR_FLOAT32 == static_cast<int>(DType::kFloat32) &&
              TELETENSOR_COMPLEX128 == static_cast<int>(DType::kComplex128) &&
              TELETENSOR_UINT64 == static_cast<int>(DType::kUInt64));
static_assert(TELETENSOR_CPU == static_cast<int>(DeviceType::kCPU) &&
              TELETENSOR_CUDA == static_cast<int>(DeviceType::kCUDA) &&
              TELETENSOR_META == static_cast<int>(DeviceType::kMeta));

// The functions of the table. None throws.
struct HostFunctions {
  static const Arg* argument(teletensor_call* call, int index, Arg::Kind kind) {
    const Arg* const arg = call->call.argument(index);
    return arg != nullptr && arg->kind == kind ? arg : nullptr;
  }

  static int is_none(teletensor_call* call, int index) {
    const Arg* const arg = call->call.argument(index);
    return arg == nullptr || arg->is_none();
  }
  static const teletensor_tensor* tensor(teletensor_call* call, int index) {
    const Arg* const arg = argument(call, index, Arg::Kind::kTensor);
    if (arg == nullptr) return nullptr;
    return guarded<const teletensor_tensor*>(call, nullptr, [&] { return call->call.describe_once(arg, *arg); });
  }
  static const teletensor_tensor* list_tensor(teletensor_call* call, int index, int64_t at) {
    const Arg* const arg = argument(call, index, Arg::Kind::kTensors);
    if (arg == nullptr || at < 0 || at >= arg->size) return nullptr;
    const TensorMeta* const meta = arg->list()[static_cast<size_t>(at)];
    if (meta == nullptr) return nullptr;
    return guarded<const teletensor_tensor*>(call, nullptr, [&] { return call->call.describe_once(meta, Arg(meta)); });
  }
  static int64_t integer(teletensor_call* call, int index) {
    const Arg* const arg = call->call.argument(index);
    if (arg == nullptr || !arg->is_real_number()) return 0;
    return arg->kind == Arg::Kind::kFloat ? Scalar(arg->real).to_int() : arg->integer;
  }
  static double number(teletensor_call* call, int index) {
    const Arg* const arg = call->call.argument(index);
    return arg != nullptr && arg->is_number() ? arg->to_double() : 0;
  }
  static int64_t length(teletensor_call* call, int index) {
    const Arg* const arg = call->call.argument(index);
    if (arg == nullptr) return 0;
    switch (arg->kind) {
      case Arg::Kind::kTensors:
      case Arg::Kind::kInts:
      case Arg::Kind::kFloats:
      case Arg::Kind::kString: return arg->size;
      default: return 0;
    }
  }
  static const int64_t* integers(teletensor_call* call, int index) {
    const Arg* const arg = argument(call, index, Arg::Kind::kInts);
    return arg != nullptr ? arg->integers : nullptr;
  }
  static const double* numbers(teletensor_call* call, int index) {
    const Arg* const arg = argument(call, index, Arg::Kind::kFloats);
    return arg != nullptr ? arg->reals : nullptr;
  }
  static const char* text(teletensor_call* call, int index) {
    const Arg* const arg = argument(call, index, Arg::Kind::kString);
    return arg != nullptr ? arg->characters : nullptr;
  }

  static int set_result(teletensor_call* call, int result, const int64_t* sizes, int64_t dim, int32_t dtype) {
    return guarded(call, 1, [&] {
      LibraryCall& self = call->call;
      check(self.call_ == nullptr, "the library sets a result's sizes outside of a rule");
      check(result >= 0 && result < self.op_.num_outputs, "the library's rule sets the result ", result, " of ",
            static_cast<int>(self.op_.num_outputs));
      check(dim >= 0 && dim <= kMaxDims && (sizes != nullptr || dim == 0), "the library's rule sets a result of ", dim,
            " dimensions; there are at most ", kMaxDims);
      check(is_valid(dtype), "the library's rule sets the unknown dtype ", dtype);
      TensorMeta meta;
      meta.dtype = static_cast<DType>(dtype);
      meta.sizes.assign(sizes, sizes + dim);
      int64_t elements = 1;
      for (int64_t size : meta.sizes) {
        check(size >= 0, "the library's rule sets a negative size: ", meta.sizes);
        check(!__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements),
              "the library's rule sets sizes that are too large: ", meta.sizes);
      }
      meta.strides = contiguous_strides(meta.sizes);
      self.results_.resize(static_cast<size_t>(self.op_.num_outputs));
      self.results_[static_cast<size_t>(result)] = std::move(meta);
      return 0;
    });
  }
  static const teletensor_tensor* result(teletensor_call* call, int result) {
    LibraryCall& self = call->call;
    if (self.call_ == nullptr || result < 0 || static_cast<size_t>(result) >= self.call_->outputs.size())
      return nullptr;
    return guarded<const teletensor_tensor*>(call, nullptr, [&] {
      const Tensor& tensor = self.call_->outputs[static_cast<size_t>(result)];
      const teletensor_tensor*& described = self.described_[&tensor];
      if (described == nullptr) described = self.add(tensor.meta(), tensor.data());
      return described;
    });
  }
  static void* allocate(teletensor_call* call, int64_t bytes) {
    LibraryCall& self = call->call;
    return guarded<void*>(call, nullptr, [&] {
      check(self.call_ != nullptr, "the library allocates memory in a rule");
      check(bytes >= 0, "the library allocates ", bytes, " bytes");
      const Device device = self.call_->inferred.device;
      self.kept_.push_back(empty({std::max<int64_t>(bytes, 1)}, DType::kUInt8, device));
      return self.kept_.back().data();
    });
  }
  static int parallel_for(teletensor_call* call, int64_t n, int64_t grain, teletensor_loop loop, void* context) {
    return guarded(call, 1, [&] {
      check(n >= 0 && loop != nullptr, "the library runs a parallel loop over ", n, " steps",
            loop == nullptr ? " without a function" : "");
      tt::parallel_for(n, std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) { loop(context, begin, end); });
      return 0;
    });
  }
  // A kernel that asks also lets others have the processor, as the engine's do in long loops. Turns are not given away
  // within a loop that runs on several threads.
  static int cancelled(teletensor_call* call) {
    if (Turn* const turn = Turn::current(); turn != nullptr && call->call.call_ != nullptr) turn->offer();
    return call->cancellation != nullptr && call->cancellation->requested();
  }
  static void* stream(teletensor_call* call) {
    LibraryCall& self = call->call;
    if (self.call_ == nullptr || self.call_->inferred.device.type != DeviceType::kCUDA) return nullptr;
    return guarded<void*>(call, nullptr,
                          [&] { return native_stream(CallScope::current().stream(self.call_->inferred.device)); });
  }
  static int fail(teletensor_call* call, const char* message) {
    return guarded(call, 1, [&] {
      const std::string_view text = message == nullptr ? "the library reports no reason" : message;
      call->call.message_ = text.substr(0, kMaxMessage);
      return 1;
    });
  }

 private:
  // Keeps an exception for LibraryCall::run().
  template <typename T, typename F>
  static T guarded(teletensor_call* call, T otherwise, F f) {
    try {
      return f();
    } catch (...) {
      if (!call->call.failure_) call->call.failure_ = std::current_exception();
      return otherwise;
    }
  }
};

const teletensor_host& host() {
  static const teletensor_host table = [] {
    teletensor_host t{};
    t.abi = TELETENSOR_OPERATOR_ABI;
    t.size = sizeof(teletensor_host);
    t.is_none = &HostFunctions::is_none;
    t.tensor = &HostFunctions::tensor;
    t.integer = &HostFunctions::integer;
    t.number = &HostFunctions::number;
    t.length = &HostFunctions::length;
    t.list_tensor = &HostFunctions::list_tensor;
    t.integers = &HostFunctions::integers;
    t.numbers = &HostFunctions::numbers;
    t.text = &HostFunctions::text;
    t.set_result = &HostFunctions::set_result;
    t.result = &HostFunctions::result;
    t.allocate = &HostFunctions::allocate;
    t.parallel_for = &HostFunctions::parallel_for;
    t.cancelled = &HostFunctions::cancelled;
    t.stream = &HostFunctions::stream;
    t.fail = &HostFunctions::fail;
    return t;
  }();
  return table;
}

const Arg* LibraryCall::argument(int index) const {
  return index >= 0 && static_cast<size_t>(index) < args_.size() ? &args_[static_cast<size_t>(index)] : nullptr;
}

const teletensor_tensor* LibraryCall::add(const TensorMeta& meta, void* data) {
  const TensorMeta& kept = metas_.emplace_back(meta);
  teletensor_tensor& t = tensors_.emplace_back();
  t.data = kept.numel() == 0 ? nullptr : data;
  t.sizes = kept.sizes.data();
  t.strides = kept.strides.data();
  t.dim = kept.dim();
  t.numel = kept.numel();
  t.dtype = static_cast<int32_t>(kept.dtype);
  t.device_type = static_cast<int32_t>(kept.device.type);
  t.device_index = kept.device.index;
  return &t;
}

const teletensor_tensor* LibraryCall::describe(const TensorMeta* meta) {
  return meta == nullptr ? nullptr : add(*meta, nullptr);
}

const teletensor_tensor* LibraryCall::describe_once(const void* key, const Arg& tensor) {
  if (const auto found = described_.find(key); found != described_.end()) return found->second;
  // to_tensor() moves a number in a zero-dim tensor of the CPU to the call's GPU.
  const teletensor_tensor* const described =
      call_ != nullptr ? describe(boxing::to_tensor(*call_, tensor)) : describe(tensor.tensor);
  described_.emplace(key, described);
  return described;
}

const teletensor_tensor* LibraryCall::describe(const Tensor& tensor) {
  if (!tensor) return nullptr;
  Tensor seen = tensor;
  if (!any_strides_ && !tensor.is_contiguous()) {
    seen = empty(tensor.sizes(), tensor.dtype(), tensor.device());
    copy_into(seen, tensor);
  }
  kept_.push_back(seen);
  return add(seen.meta(), seen.data());
}

void LibraryCall::run(teletensor_function function) {
  teletensor_call opaque{*this, Cancellation::current()};
  int failed = 0;
  try {
    failed = function(&host(), &opaque);
  } catch (const std::exception& error) {
    if (failure_) std::rethrow_exception(failure_);
    const std::string_view what = error.what();
    tt::fail(ErrorKind::kRuntime, "the library has thrown a C++ exception: ", what.substr(0, kMaxMessage));
  } catch (...) {
    if (failure_) std::rethrow_exception(failure_);
    tt::fail(ErrorKind::kRuntime, "the library has thrown an exception of an unknown type");
  }
  if (failure_) std::rethrow_exception(failure_);
  check_cancelled();  // a kernel that stopped early has no result
  if (!message_.empty()) tt::fail(ErrorKind::kRuntime, message_);
  check(failed == 0, "the library has returned the error ", failed, " without a message");
}

std::vector<TensorMeta> LibraryCall::take_results() {
  std::vector<TensorMeta> results;
  results_.resize(static_cast<size_t>(op_.num_outputs));
  for (size_t i = 0; i < results_.size(); ++i) {
    check(results_[i].has_value(), "the library's rule has not set the result ", i);
    results.push_back(*std::move(results_[i]));
  }
  return results;
}

}  // namespace tt::extension
