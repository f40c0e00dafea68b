// A kernel of ours is a node whose parameters can be changed; what a library launches is captured as a graph within.
#include "kernels/cuda/libraries/work_graph.h"

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

// A kernel's parameters in cudart's terms; points into `work`.
class KernelNode {
 public:
  explicit KernelNode(const Work& work) {
    auto* first = static_cast<std::byte*>(const_cast<void*>(work.parameters()));  // read, as mutable
    pointers_[0] = first;
    pointers_[1] = first + work.second;
    parameters_.func = const_cast<void*>(work.kernel);
    parameters_.gridDim = dim3(work.blocks);
    parameters_.blockDim = dim3(work.threads);
    parameters_.kernelParams = pointers_;
  }
  const cudaKernelNodeParams* get() const { return &parameters_; }

 private:
  void* pointers_[2];
  cudaKernelNodeParams parameters_{};
};

class CudaWorkGraph final : public WorkGraph {
 public:
  explicit CudaWorkGraph(absl::Span<const Work* const> works) {
    must("cudaStreamCreate", cudaStreamCreateWithFlags(&aside_, cudaStreamNonBlocking));
    try {
      build(works);
    } catch (...) {
      cudaStreamDestroy(aside_);
      throw;
    }
  }
  ~CudaWorkGraph() override {
    cudaGraphExecDestroy(ready_);
    cudaStreamDestroy(aside_);
  }

  bool change(size_t place, const Work& work) override try {
    if (work.kernel) {
      return succeeded(cudaGraphExecKernelNodeSetParams(ready_, nodes_[place], KernelNode(work).get()));
    }
    return succeeded(cudaGraphExecChildGraphNodeSetParams(ready_, nodes_[place], captured(work).get()));
  } catch (const Error&) {
    return false;
  }

  void launch(StreamHandle stream) override {
    must("cudaGraphLaunch", cudaGraphLaunch(ready_, static_cast<cudaStream_t>(stream)));
  }

 private:
  void build(absl::Span<const Work* const> works) {
    cudaGraph_t made = nullptr;
    must("cudaGraphCreate", cudaGraphCreate(&made, 0));
    graph_ = GraphPointer(made);
    for (const Work* work : works) {
      const cudaGraphNode_t* before = nodes_.empty() ? nullptr : &nodes_.back();
      const size_t depends = nodes_.empty() ? 0 : 1;
      cudaGraphNode_t node = nullptr;
      if (work->kernel) {
        must("cudaGraphAddKernelNode", cudaGraphAddKernelNode(&node, made, before, depends, KernelNode(*work).get()));
      } else {
        must("cudaGraphAddChildGraphNode",
             cudaGraphAddChildGraphNode(&node, made, before, depends, captured(*work).get()));
      }
      nodes_.push_back(node);
    }
    must("cudaGraphInstantiate", cudaGraphInstantiate(&ready_, made, 0));
  }

  // What it launches, in a stream beside all others.
  GraphPointer captured(const Work& work) {
    must("cudaStreamBeginCapture", cudaStreamBeginCapture(aside_, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      work.issue(work, aside_);
    } catch (...) {
      cudaStreamEndCapture(aside_, &graph);
      if (graph) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    must("cudaStreamEndCapture", cudaStreamEndCapture(aside_, &graph));
    return GraphPointer(graph);
  }

  static bool succeeded(cudaError_t code) {
    if (code != cudaSuccess) cudaGetLastError();
    return code == cudaSuccess;
  }

  cudaStream_t aside_ = nullptr;  // where works are captured
  GraphPointer graph_;            // whose nodes name those of ready_
  std::vector<cudaGraphNode_t> nodes_;
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace

std::unique_ptr<WorkGraph> make_cuda_graph(absl::Span<const Work* const> works) {
  return std::make_unique<CudaWorkGraph>(works);
}

}  // namespace tt::cuda
