// FusedAttention by cuDNN 9. NVIDIA's header-only cudnn-frontend builds the graphs of operations, and rejects those
// that a version of cuDNN computes wrongly.
#if __has_include(<cudnn.h>) && __has_include(<cudnn_frontend.h>)

#include "kernels/cuda/libraries/cudnn_attention.h"

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "engine/session/context.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/runtime/library_status.h"

// The front end looks up cuDNN's functions in this library.
void* cudnn_frontend::cudnn_dlhandle = nullptr;

namespace tt::cuda {
namespace {

namespace fe = cudnn_frontend;

// Older versions compute gradients on Hopper from a workspace that they do not initialize
// (github.com/NVIDIA/TransformerEngine/issues/2186), or require the front end to fill it.
constexpr size_t kMinVersion = 91800;
constexpr int64_t kMaxWorkspace = int64_t{1} << 30;
// Plans are never destroyed, because captured graphs use their kernels. Shapes beyond this number are not supported.
constexpr size_t kMaxPlans = 1024;

enum TensorId : int64_t { kQuery = 1, kKey, kValue, kOutput, kLogsumexp, kGrad, kQueryGrad, kKeyGrad, kValueGrad };

struct Cudnn {
  Library library{"cuDNN", {"libcudnn.so.9"}};
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnGetErrorString) text;
  size_t version = 0;

  void find() {
    library.find(create, "cudnnCreate");
    library.find(set_stream, "cudnnSetStream");
    library.find(text, "cudnnGetErrorString");
    decltype(&cudnnGetVersion) get_version;
    library.find(get_version, "cudnnGetVersion");
    version = get_version();
    library.record_version(version);
    cudnn_frontend::cudnn_dlhandle = library.handle();
  }
  void must(const char* call, cudnnStatus_t status) const {
    check(status == CUDNN_STATUS_SUCCESS, "cuDNN error: ", text(status), " (from ", call, ")");
  }
};

using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::graph::Tensor_attributes tensor(TensorId id, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
  return fe::graph::Tensor_attributes().set_uid(id).set_dim(sizes).set_stride(strides);
}

// Makes the tensor a result.
void set_result(const TensorPtr& result, TensorId id, const FusedAttentionCall& c, int64_t rows, int64_t columns) {
  const fe::graph::Tensor_attributes like = tensor(id, {c.samples, c.heads, rows, columns});
  result->set_output(true).set_uid(id).set_dim(like.get_dim()).set_stride(like.get_stride());
}

fe::graph::Tensor_attributes logsumexp_of(const FusedAttentionCall& c) {
  return tensor(kLogsumexp, {c.samples, c.heads, c.rows, 1}).set_data_type(fe::DataType_t::FLOAT);
}

void add_forward(fe::graph::Graph& graph, const FusedAttentionCall& c, const std::array<TensorPtr, 3>& operands) {
  auto options = fe::graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(c.scale);
  if (c.causal) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  }
  auto [output, logsumexp] = graph.sdpa(operands[0], operands[1], operands[2], options);
  set_result(output, kOutput, c, c.rows, c.width);
  set_result(logsumexp, kLogsumexp, c, c.rows, 1);
  logsumexp->set_data_type(fe::DataType_t::FLOAT);
}

void add_backward(fe::graph::Graph& graph, const FusedAttentionCall& c, const std::array<TensorPtr, 3>& operands) {
  auto options = fe::graph::SDPA_backward_attributes().set_attn_scale(c.scale);
  if (c.causal) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  }
  const TensorPtr output = graph.tensor(tensor(kOutput, {c.samples, c.heads, c.rows, c.width})),
                  grad = graph.tensor(tensor(kGrad, {c.samples, c.heads, c.rows, c.width})),
                  logsumexp = graph.tensor(logsumexp_of(c));
  auto [dq, dk, dv] = graph.sdpa_backward(operands[0], operands[1], operands[2], output, grad, logsumexp, options);
  set_result(dq, kQueryGrad, c, c.rows, c.depth);
  set_result(dk, kKeyGrad, c, c.columns, c.depth);
  set_result(dv, kValueGrad, c, c.columns, c.width);
}

// The graph of a call: scores in float32, the scale as a constant.
void describe(fe::graph::Graph& graph, const FusedAttentionCall& c, bool backward, int capability) {
  graph.set_io_data_type(c.dtype == DType::kFloat16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(capability)
      .set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);  // plans outlive captured graphs
  const std::array<TensorPtr, 3> operands{graph.tensor(tensor(kQuery, {c.samples, c.heads, c.rows, c.depth})),
                                          graph.tensor(tensor(kKey, {c.samples, c.heads, c.columns, c.depth})),
                                          graph.tensor(tensor(kValue, {c.samples, c.heads, c.columns, c.width}))};
  backward ? add_backward(graph, c, operands) : add_forward(graph, c, operands);
}

// Launches the plan of a graph. `scratch` is its workspace.
fe::error_t execute(const fe::graph::Graph& graph, cudnnHandle_t handle, const FusedAttentionCall& c, bool backward,
                    void* scratch) {
  std::unordered_map<int64_t, void*> pointers = {{kQuery, const_cast<void*>(c.query)},
                                                 {kKey, const_cast<void*>(c.key)},
                                                 {kValue, const_cast<void*>(c.value)},
                                                 {kOutput, c.output},
                                                 {kLogsumexp, c.logsumexp}};
  if (backward) {
    pointers.insert({{kGrad, const_cast<void*>(c.grad)},
                     {kQueryGrad, c.query_grad},
                     {kKeyGrad, c.key_grad},
                     {kValueGrad, c.value_grad}});
  }
  return graph.execute(handle, pointers, scratch);
}

using Key = std::vector<int64_t>;

// Returns all properties that a plan depends on.
Key key_of(const FusedAttentionCall& c, int device, bool backward) {
  return {device,  backward, static_cast<int64_t>(c.dtype),  c.samples, c.heads, c.rows, c.columns, c.depth,
          c.width, c.causal, std::bit_cast<int32_t>(c.scale)};
}

// cuDNN supports 64-bit strides, but its kernels use 32-bit indices within a tensor in some versions.
bool fits_int(const FusedAttentionCall& c) {
  constexpr int64_t kMaxInt = std::numeric_limits<int>::max();
  const int64_t rows = c.samples * c.heads * std::max(c.rows, c.columns);
  return rows <= kMaxInt / std::max(c.depth, c.width);
}

class CudnnAttention final : public FusedAttention {
 public:
  explicit CudnnAttention(std::unique_ptr<Cudnn> dnn) : dnn_(std::move(dnn)) {}

  bool forward(const Queue& queue, const FusedAttentionCall& c) override { return run(queue, c, false); }
  bool backward(const Queue& queue, const FusedAttentionCall& c) override { return run(queue, c, true); }

 private:
  struct Plan {
    fe::graph::Graph graph;
    int64_t workspace = 0;
  };

  bool run(const Queue& queue, const FusedAttentionCall& c, bool backward) {
    if (!fits_int(c)) return false;
    const int device = queue.device().index;
    int64_t bytes = 0;
    {
      MutexLock lock(mutex_);
      const Plan* plan = plan_of(device, c, backward);
      if (!plan) return false;
      bytes = plan->workspace;
    }
    // Allocated without the lock: if memory is short, held launches are issued, and attentions among them acquire the
    // lock.
    Tensor workspace;
    if (bytes > 0) workspace = empty(Sizes{bytes}, DType::kUInt8, queue.device());
    void* const scratch = workspace ? workspace.data() : nullptr;
    // Locked until the launch: a handle is not thread-safe, and its stream is set for each call.
    queue.add([this, device, c, backward, scratch](StreamHandle stream) {
      MutexLock lock(mutex_);
      cudnnHandle_t handle = handle_of(device);
      dnn_->must("cudnnSetStream", dnn_->set_stream(handle, static_cast<cudaStream_t>(stream)));
      fe::error_t status = execute(plan_of(device, c, backward)->graph, handle, c, backward, scratch);
      check(status.is_good(), "cuDNN error: ", status.get_message(), " (from attention)");
    });
    return true;
  }

  cudnnHandle_t handle_of(int device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    cudnnHandle_t& handle = handles_[device];
    if (!handle) dnn_->must("cudnnCreate", dnn_->create(&handle));
    return handle;
  }
  // Null if cuDNN does not support the case.
  Plan* plan_of(int device, const FusedAttentionCall& c, bool backward) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Key key = key_of(c, device, backward);
    auto found = plans_.find(key);
    if (found == plans_.end()) {
      // Building a plan loads kernels, which is not permitted while a stream is capturing.
      if (plans_.size() >= kMaxPlans || Context::current().capturing()) return nullptr;
      found = plans_.emplace(key, make_plan(device, c, backward)).first;
    }
    return found->second.get();
  }
  std::unique_ptr<Plan> make_plan(int device, const FusedAttentionCall& c, bool backward)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto plan = std::make_unique<Plan>();
    std::string why;
    try {
      describe(plan->graph, c, backward, compute_capability(device));
      fe::error_t status = plan->graph.build(handle_of(device), {fe::HeurMode_t::A});
      if (status.is_good()) status = plan->graph.get_workspace_size(plan->workspace);
      if (status.is_bad()) why = status.get_message();
    } catch (const std::runtime_error& error) {  // this version of cuDNN lacks a function
      why = error.what();
    }
    if (why.empty() && plan->workspace > kMaxWorkspace) why = "the workspace is too large";
    record(why);
    return why.empty() ? std::move(plan) : nullptr;
  }
  // Shows in `teletensor status` whether cuDNN is used.
  void record(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++(why.empty() ? built_ : rejected_);
    std::string counts = absl::StrCat(built_, " plans");
    if (rejected_ > 0) absl::StrAppend(&counts, ", ", rejected_, " rejected");
    if (!why.empty()) absl::StrAppend(&counts, " (", why, ")");
    record_library_status({"cuDNN attention", std::move(counts), ""});
  }

  const std::unique_ptr<Cudnn> dnn_;
  Mutex mutex_;
  std::map<int, cudnnHandle_t> handles_ ABSL_GUARDED_BY(mutex_);        // per device
  std::map<Key, std::unique_ptr<Plan>> plans_ ABSL_GUARDED_BY(mutex_);  // null: not supported by the library
  int built_ ABSL_GUARDED_BY(mutex_) = 0, rejected_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<FusedAttention> make_fused_attention() {
  auto library = std::make_unique<Cudnn>();
  if (!library->library) return nullptr;
  library->find();
  if (library->version < kMinVersion) return nullptr;
  return std::make_unique<CudnnAttention>(std::move(library));
}

std::string why_attention_is_rejected(const FusedAttentionCall& call, bool backward, const std::string& device,
                                      int capability) {
  auto properties = std::make_shared<fe::DeviceProperties>();
  fe::error_t status = properties->deserialize(std::vector<uint8_t>(device.begin(), device.end()));
  if (status.is_bad()) return status.get_message();
  fe::graph::Graph graph;
  describe(graph, call, backward, capability);
  graph.set_device_properties(properties);
  status = graph.build({fe::HeurMode_t::A});
  if (status.is_bad()) return status.get_message() + " (rejected)";
  // Without a handle, this fails where the launches would start, after a check of the addresses.
  alignas(kAttentionAlignment) static char workspace[1];
  status = execute(graph, nullptr, call, backward, workspace);
  return status.get_code() == fe::error_code_t::INVALID_VARIANT_PACK ? status.get_message() : "";
}

}  // namespace tt::cuda

#else  // without the headers of cuDNN and its front end, attention uses our own kernels

#include "kernels/cuda/runtime/fused_attention.h"

namespace tt::cuda {

std::unique_ptr<FusedAttention> make_fused_attention() { return nullptr; }

}  // namespace tt::cuda

#endif
