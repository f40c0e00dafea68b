// LaunchGraph as a CUDA graph. A launch of our own kernels becomes a kernel node, whose parameters can be changed. A
// library call is captured as a child graph.
#include "kernels/cuda/libraries/launch_graph.h"

#include <cuda_runtime.h>

#include <vector>

#include "engine/schema/error.h"

namespace tt::cuda {
namespace {

void must(const char* call, cudaError_t code) {
  if (code == cudaSuccess) return;
  cudaGetLastError();
  fail(ErrorKind::kRuntime, "CUDA error: ", cudaGetErrorString(code), " (from ", call, ")");
}

struct GraphDeleter {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using GraphPointer = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, GraphDeleter>;

// A kernel's parameters in the form that the CUDA runtime requires; points into `launch`.
class KernelNode {
 public:
  explicit KernelNode(const KernelLaunch& launch) {
    auto* first = static_cast<std::byte*>(const_cast<void*>(launch.parameters()));  // not written by the API
    pointers_[0] = first;
    pointers_[1] = first + launch.second;
    parameters_.func = const_cast<void*>(launch.kernel);
    parameters_.gridDim = dim3(launch.blocks);
    parameters_.blockDim = dim3(launch.threads);
    parameters_.kernelParams = pointers_;
  }
  const cudaKernelNodeParams* get() const { return &parameters_; }

 private:
  void* pointers_[2];
  cudaKernelNodeParams parameters_{};
};

class CudaLaunchGraph final : public LaunchGraph {
 public:
  explicit CudaLaunchGraph(absl::Span<const KernelLaunch* const> launches) {
    must("cudaStreamCreate", cudaStreamCreateWithFlags(&capture_stream_, cudaStreamNonBlocking));
    try {
      build(launches);
    } catch (...) {
      cudaStreamDestroy(capture_stream_);
      throw;
    }
  }
  ~CudaLaunchGraph() override {
    cudaGraphExecDestroy(ready_);
    cudaStreamDestroy(capture_stream_);
  }

  bool change(size_t place, const KernelLaunch& launch) override try {
    if (launch.kernel) {
      return succeeded(cudaGraphExecKernelNodeSetParams(ready_, nodes_[place], KernelNode(launch).get()));
    }
    return succeeded(cudaGraphExecChildGraphNodeSetParams(ready_, nodes_[place], captured(launch).get()));
  } catch (const Error&) {
    return false;
  }

  void launch(StreamHandle stream) override {
    must("cudaGraphLaunch", cudaGraphLaunch(ready_, static_cast<cudaStream_t>(stream)));
  }

 private:
  void build(absl::Span<const KernelLaunch* const> launches) {
    cudaGraph_t made = nullptr;
    must("cudaGraphCreate", cudaGraphCreate(&made, 0));
    graph_ = GraphPointer(made);
    for (const KernelLaunch* launch : launches) {
      const cudaGraphNode_t* before = nodes_.empty() ? nullptr : &nodes_.back();
      const size_t depends = nodes_.empty() ? 0 : 1;
      cudaGraphNode_t node = nullptr;
      if (launch->kernel) {
        must("cudaGraphAddKernelNode", cudaGraphAddKernelNode(&node, made, before, depends, KernelNode(*launch).get()));
      } else {
        must("cudaGraphAddChildGraphNode",
             cudaGraphAddChildGraphNode(&node, made, before, depends, captured(*launch).get()));
      }
      nodes_.push_back(node);
    }
    must("cudaGraphInstantiate", cudaGraphInstantiate(&ready_, made, 0));
  }

  // Captures a library call, in a separate stream.
  GraphPointer captured(const KernelLaunch& launch) {
    must("cudaStreamBeginCapture", cudaStreamBeginCapture(capture_stream_, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      launch.issue(launch, capture_stream_);
    } catch (...) {
      cudaStreamEndCapture(capture_stream_, &graph);
      if (graph) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    must("cudaStreamEndCapture", cudaStreamEndCapture(capture_stream_, &graph));
    return GraphPointer(graph);
  }

  static bool succeeded(cudaError_t code) {
    if (code != cudaSuccess) cudaGetLastError();
    return code == cudaSuccess;
  }

  cudaStream_t capture_stream_ = nullptr;  // the stream in which library calls are captured
  GraphPointer graph_;                     // its nodes identify the nodes of ready_ in updates
  std::vector<cudaGraphNode_t> nodes_;
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace

std::unique_ptr<LaunchGraph> make_cuda_graph(absl::Span<const KernelLaunch* const> launches) {
  return std::make_unique<CudaLaunchGraph>(launches);
}

}  // namespace tt::cuda
