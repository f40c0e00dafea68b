// Fft by cuFFT. A plan is created once per shape. Its workspace is allocated outside the library, so that a transform
// can be captured into a graph.
#if __has_include(<cufftXt.h>)

#include <cufftXt.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "engine/session/context.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/runtime/fft.h"

namespace tt::cuda {
namespace {

constexpr size_t kMaxPlans = 1024;  // per device

const char* text_of(cufftResult result) {
  switch (result) {
    case CUFFT_INVALID_PLAN: return "CUFFT_INVALID_PLAN";
    case CUFFT_ALLOC_FAILED: return "CUFFT_ALLOC_FAILED";
    case CUFFT_INVALID_TYPE: return "CUFFT_INVALID_TYPE";
    case CUFFT_INVALID_VALUE: return "CUFFT_INVALID_VALUE";
    case CUFFT_INTERNAL_ERROR: return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED: return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED: return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE: return "CUFFT_INVALID_SIZE";
    case CUFFT_UNALIGNED_DATA: return "CUFFT_UNALIGNED_DATA";
    case CUFFT_INVALID_DEVICE: return "CUFFT_INVALID_DEVICE";
    case CUFFT_NO_WORKSPACE: return "CUFFT_NO_WORKSPACE";
    case CUFFT_NOT_IMPLEMENTED: return "CUFFT_NOT_IMPLEMENTED";
    case CUFFT_NOT_SUPPORTED: return "CUFFT_NOT_SUPPORTED";
    default: return "an unknown status";
  }
}

struct Cufft {
  Library library{"cuFFT", {"libcufft.so.12", "libcufft.so.11"}};
  decltype(&cufftCreate) create;
  decltype(&cufftDestroy) destroy;
  decltype(&cufftSetAutoAllocation) set_auto_allocation;
  decltype(&cufftXtMakePlanMany) make_plan;
  decltype(&cufftSetStream) set_stream;
  decltype(&cufftSetWorkArea) set_work_area;
  decltype(&cufftXtExec) execute;

  void find() {
    library.find(create, "cufftCreate");
    library.find(destroy, "cufftDestroy");
    library.find(set_auto_allocation, "cufftSetAutoAllocation");
    library.find(make_plan, "cufftXtMakePlanMany");
    library.find(set_stream, "cufftSetStream");
    library.find(set_work_area, "cufftSetWorkArea");
    library.find(execute, "cufftXtExec");
    decltype(&cufftGetVersion) version;
    library.find(version, "cufftGetVersion");
    int number = 0;  // 12003 means 12.0.3
    must("cufftGetVersion", version(&number));
    library.record_version(absl::StrCat(number / 1000, ".", number / 100 % 10, ".", number % 100));
  }
  void must(const char* call, cufftResult result) const {
    check(result == CUFFT_SUCCESS, "cuFFT error: ", text_of(result), " (", static_cast<int>(result), ", from ", call,
          ")");
  }
};

// All properties that a plan depends on, except its device.
using Key = std::array<int64_t, 4 + kMaxFftDims + 2 * (2 + kMaxFftDims)>;

Key key_of(const FftTransform& t) {
  Key key{static_cast<int64_t>(t.kind), t.is_double, t.rank, t.batch};
  auto to = key.begin() + 4;
  to = std::copy_n(t.sizes.begin(), t.rank, to);
  for (const FftLayout* layout : {&t.from, &t.to}) {
    *to++ = layout->stride;
    *to++ = layout->distance;
    to = std::copy_n(layout->embed.begin(), t.rank, to);
  }
  return key;
}

// Converts to the integer type of the library, which also requires mutable arrays.
using Numbers = std::array<long long, kMaxFftDims>;
Numbers numbers(const std::array<int64_t, kMaxFftDims>& values) {
  Numbers copy;
  std::copy(values.begin(), values.end(), copy.begin());
  return copy;
}

class Plan {
 public:
  Plan(const Cufft& cufft, const FftTransform& t) : cufft_(cufft) {
    cufft.must("cufftCreate", cufft.create(&handle_));
    try {
      cufft.must("cufftSetAutoAllocation", cufft.set_auto_allocation(handle_, 0));
      make(t);
    } catch (...) {
      cufft.destroy(handle_);
      throw;
    }
  }
  ~Plan() { cufft_.destroy(handle_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Whether the library supports the transform.
  bool is_made() const { return made_; }
  size_t workspace() const { return workspace_; }
  // Whether a graph contains a transform of this plan. Each replay of the graph uses the plan's memory.
  bool is_captured() const { return captured_; }
  // `scratch` has workspace() bytes.
  void run(StreamHandle stream, bool forward, void* from, void* to, void* scratch) {
    captured_ = captured_ || runtime().is_capturing(stream);
    cufft_.must("cufftSetStream", cufft_.set_stream(handle_, static_cast<cudaStream_t>(stream)));
    if (workspace_ > 0) cufft_.must("cufftSetWorkArea", cufft_.set_work_area(handle_, scratch));
    cufft_.must("cufftXtExec", cufft_.execute(handle_, from, to, forward ? CUFFT_FORWARD : CUFFT_INVERSE));
  }

 private:
  void make(const FftTransform& t) {
    const cudaDataType complex = t.is_double ? CUDA_C_64F : CUDA_C_32F, real = t.is_double ? CUDA_R_64F : CUDA_R_32F;
    const cudaDataType from = t.kind == FftKind::kRealToComplex ? real : complex,
                       to = t.kind == FftKind::kComplexToReal ? real : complex;
    Numbers sizes = numbers(t.sizes), from_embed = numbers(t.from.embed), to_embed = numbers(t.to.embed);
    const cufftResult result =
        cufft_.make_plan(handle_, t.rank, sizes.data(), from_embed.data(), t.from.stride, t.from.distance, from,
                         to_embed.data(), t.to.stride, t.to.distance, to, t.batch, &workspace_, complex);
    made_ = result == CUFFT_SUCCESS;
    // The library reports unsupported sizes and types by one of these codes.
    const bool refused = result == CUFFT_INVALID_SIZE || result == CUFFT_INVALID_TYPE ||
                         result == CUFFT_NOT_SUPPORTED || result == CUFFT_NOT_IMPLEMENTED;
    if (!refused) cufft_.must("cufftXtMakePlanMany", result);
  }

  const Cufft& cufft_;
  cufftHandle handle_ = 0;
  bool made_ = false, captured_ = false;
  size_t workspace_ = 0;
};

class CufftTransforms final : public Fft {
 public:
  explicit CufftTransforms(std::unique_ptr<Cufft> cufft) : cufft_(std::move(cufft)) {}

  bool transform(const Queue& queue, const FftTransform& t, void* from, void* to) override {
    const std::optional<size_t> bytes = workspace_of(queue, t);
    if (!bytes) return false;
    // Allocated without the lock: if memory is short, held launches are issued, and transforms among them acquire the
    // lock.
    Tensor workspace;
    if (*bytes > 0) workspace = empty(Sizes{static_cast<int64_t>(*bytes)}, DType::kUInt8, queue.device());
    void* const scratch = workspace ? workspace.data() : nullptr;
    const int device = queue.device().index;
    queue.add([this, device, t, from, to, scratch](StreamHandle stream) {
      // Locked until the launch: a plan's stream and workspace are set for each call.
      MutexLock lock(mutex_);
      check_plan(device, t, stream);
      plan_of(device, t).run(stream, t.forward, from, to, scratch);
    });
    return true;
  }

 private:
  using Plans = std::map<Key, std::unique_ptr<Plan>>;

  // Returns nullopt if the library does not support the transform, or if no further plan can be created now.
  std::optional<size_t> workspace_of(const Queue& queue, const FftTransform& t) {
    MutexLock lock(mutex_);
    Plans& plans = plans_[queue.device().index];
    if (!plans.contains(key_of(t))) {
      // Creating a plan allocates memory, which is not permitted while a stream is capturing.
      if (Context::current().capturing()) return std::nullopt;
      if (plans.size() >= kMaxPlans) drop_plans(plans);
      if (plans.size() >= kMaxPlans) return std::nullopt;
    }
    const Plan& plan = plan_of(queue.device().index, t);
    return plan.is_made() ? std::optional(plan.workspace()) : std::nullopt;
  }
  Plan& plan_of(int device, const FftTransform& t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::unique_ptr<Plan>& plan = plans_[device][key_of(t)];
    if (!plan) plan = std::make_unique<Plan>(*cufft_, t);
    return *plan;
  }
  // Throws Error if the plan was dropped since workspace_of() and the stream is capturing: creating the plan again
  // would allocate memory.
  void check_plan(int device, const FftTransform& t, StreamHandle stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    check(plans_[device].contains(key_of(t)) || !runtime().is_capturing(stream),
          "operation not permitted when stream is capturing: a Fourier transform of a new shape");
  }
  // Waits for the current device and drops its plans that no graph uses. A launch that is still held creates its plan
  // again.
  void drop_plans(Plans& plans) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    runtime().synchronize_device();
    std::erase_if(plans, [](const auto& entry) { return !entry.second->is_captured(); });
  }

  const std::unique_ptr<Cufft> cufft_;
  Mutex mutex_;
  std::map<int, Plans> plans_ ABSL_GUARDED_BY(mutex_);  // per device
};

}  // namespace

std::unique_ptr<Fft> make_fft() {
  auto cufft = std::make_unique<Cufft>();
  if (!cufft->library) return nullptr;
  cufft->find();
  return std::make_unique<CufftTransforms>(std::move(cufft));
}

}  // namespace tt::cuda

#else  // a toolkit without cuFFT: transforms use our own kernels

#include "kernels/cuda/runtime/fft.h"

namespace tt::cuda {

std::unique_ptr<Fft> make_fft() { return nullptr; }

}  // namespace tt::cuda

#endif
