// Dnn by cuDNN 9. A convolution's descriptors and its algorithm are created once per shape.
#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <limits>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/runtime/dnn.h"

namespace tt::cuda {
namespace {

constexpr size_t kMaxWorkspace = size_t{1} << 30;
constexpr size_t kMaxPlans = 1024;  // cache size; beyond it, shapes are assumed not to repeat and the cache is cleared
constexpr int kMaxAlgorithms = 8;

enum class Direction { kForward, kInput, kWeight };

struct Cudnn {
  Library library{"cuDNN", {"libcudnn.so.9"}};
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnGetErrorString) text;
  decltype(&cudnnCreateTensorDescriptor) create_tensor;
  decltype(&cudnnSetTensorNdDescriptor) set_tensor;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor;
  decltype(&cudnnCreateFilterDescriptor) create_filter;
  decltype(&cudnnSetFilterNdDescriptor) set_filter;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution;
  decltype(&cudnnSetConvolutionNdDescriptor) set_convolution;
  decltype(&cudnnSetConvolutionGroupCount) set_groups;
  decltype(&cudnnSetConvolutionMathType) set_math;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution;
  decltype(&cudnnGetConvolutionForwardAlgorithm_v7) choose_forward;
  decltype(&cudnnGetConvolutionBackwardDataAlgorithm_v7) choose_input;
  decltype(&cudnnGetConvolutionBackwardFilterAlgorithm_v7) choose_weight;
  decltype(&cudnnConvolutionForward) forward;
  decltype(&cudnnConvolutionBackwardData) input;
  decltype(&cudnnConvolutionBackwardFilter) weight;

  void find() {
    library.find(create, "cudnnCreate");
    library.find(set_stream, "cudnnSetStream");
    library.find(text, "cudnnGetErrorString");
    library.find(create_tensor, "cudnnCreateTensorDescriptor");
    library.find(set_tensor, "cudnnSetTensorNdDescriptor");
    library.find(destroy_tensor, "cudnnDestroyTensorDescriptor");
    library.find(create_filter, "cudnnCreateFilterDescriptor");
    library.find(set_filter, "cudnnSetFilterNdDescriptor");
    library.find(destroy_filter, "cudnnDestroyFilterDescriptor");
    library.find(create_convolution, "cudnnCreateConvolutionDescriptor");
    library.find(set_convolution, "cudnnSetConvolutionNdDescriptor");
    library.find(set_groups, "cudnnSetConvolutionGroupCount");
    library.find(set_math, "cudnnSetConvolutionMathType");
    library.find(destroy_convolution, "cudnnDestroyConvolutionDescriptor");
    library.find(choose_forward, "cudnnGetConvolutionForwardAlgorithm_v7");
    library.find(choose_input, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
    library.find(choose_weight, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
    library.find(forward, "cudnnConvolutionForward");
    library.find(input, "cudnnConvolutionBackwardData");
    library.find(weight, "cudnnConvolutionBackwardFilter");
    decltype(&cudnnGetVersion) version;
    library.find(version, "cudnnGetVersion");
    library.record_version(version());
  }
  void must(const char* call, cudnnStatus_t status) const {
    check(status == CUDNN_STATUS_SUCCESS, "cuDNN error: ", text(status), " (from ", call, ")");
  }
};

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return CUDNN_DATA_HALF;
    case DType::kBFloat16: return CUDNN_DATA_BFLOAT16;
    case DType::kFloat64: return CUDNN_DATA_DOUBLE;
    default: return CUDNN_DATA_FLOAT;
  }
}

// The values of the spatial dimensions: all three, or the last two. One-dimensional convolutions are passed as
// two-dimensional ones, for which the library has most algorithms; it has none for one dimension.
struct Spatial {
  std::vector<int> values;

  Spatial(const ConvolutionShape::Triple& triple, bool three) {
    for (size_t d = three ? 0 : 1; d < 3; ++d) values.push_back(static_cast<int>(triple[d]));
  }
};

class Plan {
 public:
  Plan(const Cudnn& dnn, const DnnConvolution& c) : dnn_(dnn) {
    const ConvolutionShape& s = c.shape;
    const bool three = s.kernel[0] != 1 || s.in[0] != 1 || s.out[0] != 1;
    const cudnnDataType_t type = type_of(c.dtype);
    dnn.must("cudnnCreateTensorDescriptor", dnn.create_tensor(&x_));
    dnn.must("cudnnCreateTensorDescriptor", dnn.create_tensor(&y_));
    dnn.must("cudnnCreateFilterDescriptor", dnn.create_filter(&w_));
    dnn.must("cudnnCreateConvolutionDescriptor", dnn.create_convolution(&convolution_));
    set_tensor(x_, type, s.images, s.groups * s.in_channels, Spatial(s.in, three).values);
    set_tensor(y_, type, s.images, s.groups * s.out_channels, Spatial(s.out, three).values);
    std::vector<int> kernel = {static_cast<int>(s.groups * s.out_channels), static_cast<int>(s.in_channels)};
    for (int size : Spatial(s.kernel, three).values) kernel.push_back(size);
    dnn.must("cudnnSetFilterNdDescriptor",
             dnn.set_filter(w_, type, CUDNN_TENSOR_NCHW, static_cast<int>(kernel.size()), kernel.data()));
    const Spatial padding(s.padding, three), stride(s.stride, three), dilation(s.dilation, three);
    dnn.must("cudnnSetConvolutionNdDescriptor",
             dnn.set_convolution(convolution_, static_cast<int>(padding.values.size()), padding.values.data(),
                                 stride.values.data(), dilation.values.data(), CUDNN_CROSS_CORRELATION,
                                 c.dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
    dnn.must("cudnnSetConvolutionGroupCount", dnn.set_groups(convolution_, static_cast<int>(s.groups)));
    dnn.must("cudnnSetConvolutionMathType", dnn.set_math(convolution_, math_of(c)));
  }
  ~Plan() {
    if (x_) dnn_.destroy_tensor(x_);
    if (y_) dnn_.destroy_tensor(y_);
    if (w_) dnn_.destroy_filter(w_);
    if (convolution_) dnn_.destroy_convolution(convolution_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Chooses an algorithm. Returns false if the library has none.
  bool choose(cudnnHandle_t handle, Direction direction) {
    switch (direction) {
      case Direction::kForward: return choose_with(dnn_.choose_forward, forward_, handle, x_, w_, convolution_, y_);
      case Direction::kInput: return choose_with(dnn_.choose_input, input_, handle, w_, y_, convolution_, x_);
      default: return choose_with(dnn_.choose_weight, weight_, handle, x_, y_, convolution_, w_);
    }
  }
  size_t workspace() const { return workspace_; }
  // `scratch` has workspace() bytes.
  void run(cudnnHandle_t handle, Direction direction, void* scratch, const DnnConvolution& c) const {
    const double one = 1, zero = 0;
    const float one_f = 1, zero_f = 0;
    const bool wide = c.dtype == DType::kFloat64;
    const void *alpha = wide ? static_cast<const void*>(&one) : &one_f,
               *beta = wide ? static_cast<const void*>(&zero) : &zero_f;
    switch (direction) {
      case Direction::kForward:
        return dnn_.must("cudnnConvolutionForward", dnn_.forward(handle, alpha, x_, c.first, w_, c.second, convolution_,
                                                                 forward_, scratch, workspace_, beta, y_, c.result));
      case Direction::kInput:
        return dnn_.must("cudnnConvolutionBackwardData",
                         dnn_.input(handle, alpha, w_, c.second, y_, c.first, convolution_, input_, scratch, workspace_,
                                    beta, x_, c.result));
      case Direction::kWeight:
        return dnn_.must("cudnnConvolutionBackwardFilter",
                         dnn_.weight(handle, alpha, x_, c.second, y_, c.first, convolution_, weight_, scratch,
                                     workspace_, beta, w_, c.result));
    }
  }

 private:
  static cudnnMathType_t math_of(const DnnConvolution& c) {
    if (item_size(c.dtype) == 2) return CUDNN_TENSOR_OP_MATH;
    return c.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  }
  void set_tensor(cudnnTensorDescriptor_t t, cudnnDataType_t type, int64_t images, int64_t channels,
                  const std::vector<int>& space) {
    std::vector<int> sizes = {static_cast<int>(images), static_cast<int>(channels)};
    sizes.insert(sizes.end(), space.begin(), space.end());
    std::vector<int> strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
    dnn_.must("cudnnSetTensorNdDescriptor",
              dnn_.set_tensor(t, type, static_cast<int>(sizes.size()), sizes.data(), strides.data()));
  }
  // Chooses the algorithm that the library estimates to be the fastest among those within the memory limit.
  template <typename Choose, typename Algorithm, typename... Descriptors>
  bool choose_with(Choose choose, Algorithm& chosen, cudnnHandle_t handle, Descriptors... descriptors) {
    using Result =
        std::conditional_t<std::is_same_v<Algorithm, cudnnConvolutionFwdAlgo_t>, cudnnConvolutionFwdAlgoPerf_t,
                           std::conditional_t<std::is_same_v<Algorithm, cudnnConvolutionBwdDataAlgo_t>,
                                              cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdFilterAlgoPerf_t>>;
    Result results[kMaxAlgorithms];
    int found = 0;
    if (choose(handle, descriptors..., kMaxAlgorithms, &found, results) != CUDNN_STATUS_SUCCESS) return false;
    for (int i = 0; i < found; ++i) {
      if (results[i].status != CUDNN_STATUS_SUCCESS || results[i].memory > kMaxWorkspace) continue;
      chosen = results[i].algo;
      workspace_ = results[i].memory;
      return true;
    }
    return false;
  }

  const Cudnn& dnn_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdDataAlgo_t input_{};
  cudnnConvolutionBwdFilterAlgo_t weight_{};
  size_t workspace_ = 0;
};

using Key = std::vector<int64_t>;

// Returns all properties that a plan depends on.
Key key_of(const DnnConvolution& c, int device, Direction direction) {
  const ConvolutionShape& s = c.shape;
  Key key{device,
          static_cast<int64_t>(direction),
          static_cast<int64_t>(c.dtype),
          c.tf32,
          s.images,
          s.groups,
          s.in_channels,
          s.out_channels};
  for (const auto* triple : {&s.in, &s.out, &s.kernel, &s.stride, &s.padding, &s.dilation}) {
    key.insert(key.end(), triple->begin(), triple->end());
  }
  return key;
}

// Whether all sizes fit in an int, which the library uses.
bool fits_int(const ConvolutionShape& s) {
  constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
  bool fits = true;
  for (const auto* triple : {&s.in, &s.out, &s.kernel, &s.stride, &s.padding, &s.dilation}) {
    for (int64_t n : *triple) fits = fits && n >= 0 && n <= kMaxInt;
  }
  const int64_t x = s.images * s.groups * s.in_channels * ConvolutionShape::product(s.in);
  const int64_t y = s.images * s.groups * s.out_channels * ConvolutionShape::product(s.out);
  return fits && x <= kMaxInt && y <= kMaxInt;
}

class CudnnConvolutions final : public Dnn {
 public:
  explicit CudnnConvolutions(std::unique_ptr<Cudnn> dnn) : dnn_(std::move(dnn)) {}

  bool forward(const Queue& queue, const DnnConvolution& c) override { return run(queue, c, Direction::kForward); }
  bool input(const Queue& queue, const DnnConvolution& c) override { return run(queue, c, Direction::kInput); }
  bool weight(const Queue& queue, const DnnConvolution& c) override { return run(queue, c, Direction::kWeight); }

 private:
  bool run(const Queue& queue, const DnnConvolution& c, Direction direction) {
    if (!fits_int(c.shape)) return false;
    const int device = queue.device().index;
    size_t bytes = 0;
    {
      MutexLock lock(mutex_);
      const Plan* plan = plan_of(device, c, direction);
      if (!plan) return false;
      bytes = plan->workspace();
    }
    // Allocated without the lock: if memory is short, held launches are issued, and convolutions among them acquire the
    // lock.
    Tensor workspace;
    if (bytes > 0) workspace = empty(Sizes{static_cast<int64_t>(bytes)}, DType::kUInt8, queue.device());
    void* const scratch = workspace ? workspace.data() : nullptr;
    // Locked until the launch: a handle is not thread-safe, and its stream is set for each call.
    queue.add([this, device, c, direction, scratch](StreamHandle stream) {
      MutexLock lock(mutex_);
      cudnnHandle_t handle = handle_of(device);
      dnn_->must("cudnnSetStream", dnn_->set_stream(handle, static_cast<cudaStream_t>(stream)));
      plan_of(device, c, direction)->run(handle, direction, scratch, c);
    });
    return true;
  }

  cudnnHandle_t handle_of(int device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    cudnnHandle_t& handle = handles_[device];
    if (!handle) dnn_->must("cudnnCreate", dnn_->create(&handle));
    return handle;
  }
  // Valid until the next call. Null if the library does not support the convolution.
  const Plan* plan_of(int device, const DnnConvolution& c, Direction direction) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Key key = key_of(c, device, direction);
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      if (plans_.size() >= kMaxPlans) plans_.clear();
      auto plan = std::make_unique<Plan>(*dnn_, c);
      if (!plan->choose(handle_of(device), direction)) plan = nullptr;
      found = plans_.emplace(key, std::move(plan)).first;
    }
    return found->second.get();
  }

  const std::unique_ptr<Cudnn> dnn_;
  Mutex mutex_;
  std::map<int, cudnnHandle_t> handles_ ABSL_GUARDED_BY(mutex_);        // per device
  std::map<Key, std::unique_ptr<Plan>> plans_ ABSL_GUARDED_BY(mutex_);  // null: not supported by the library
};

}  // namespace

std::unique_ptr<Dnn> make_dnn() {
  auto library = std::make_unique<Cudnn>();
  if (!library->library) return nullptr;
  library->find();
  return std::make_unique<CudnnConvolutions>(std::move(library));
}

}  // namespace tt::cuda

#else  // a toolkit without cuDNN: convolutions use our own kernels

#include "kernels/cuda/runtime/dnn.h"

namespace tt::cuda {

std::unique_ptr<Dnn> make_dnn() { return nullptr; }

}  // namespace tt::cuda

#endif
