// launch.h for nvcc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/runtime/queue.h"

#define TT_DEVICE __device__
#define TT_FUNCTION __host__ __device__ __forceinline__
#define TT_UNROLL _Pragma("unroll")    // before a loop of constant length
#define TT_ROLLED _Pragma("unroll 1")  // before a short loop whose length the compiler does not know

namespace tt::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kBlock = 256;
inline constexpr int kValueWords = 4;           // maximum size of a value that a group reduces, in 64-bit words
inline constexpr int64_t kMaxBlocks = 1 << 20;  // per launch; with more work, a block processes several parts of it

// A thread block of a whole number of warps.
class Group {
 public:
  __device__ Group(int64_t index, uint64_t* scratch) : index_(index), scratch_(scratch) {}
  __device__ int64_t index() const { return index_; }
  __device__ int rank() const { return static_cast<int>(threadIdx.x); }
  __device__ int size() const { return static_cast<int>(blockDim.x); }
  __device__ void sync() { __syncthreads(); }

  // Reduces the values of all threads with `op` and returns the result to all threads. All threads must call this.
  template <typename T, typename Op>
  __device__ T reduce(T value, Op op) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kValueWords * sizeof(uint64_t));
    T* scratch = reinterpret_cast<T*>(scratch_);
    value = reduce_warp(value, op);
    const int warps = size() / kWarp, warp = rank() / kWarp;
    if (warps == 1) return value;
    __syncthreads();  // all threads have read the result of the previous reduction
    if (rank() % kWarp == 0) scratch[warp] = value;
    __syncthreads();
    value = scratch[0];
    for (int i = 1; i < warps; ++i) value = op(value, scratch[i]);
    return value;
  }

 private:
  template <typename T, typename Op>
  __device__ static T reduce_warp(T value, Op op) {
    for (int offset = kWarp / 2; offset > 0; offset /= 2) value = op(value, exchange(value, offset));
    return value;
  }
  // Returns another lane's value, of any trivially copyable type.
  template <typename T>
  __device__ static T exchange(T value, int mask) {
    constexpr int kWords = (sizeof(T) + 3) / 4;
    union {
      T value;
      unsigned words[kWords];
    } piece{value};
    for (int i = 0; i < kWords; ++i) piece.words[i] = __shfl_xor_sync(0xffffffffu, piece.words[i], mask);
    return piece.value;
  }

  int64_t index_;
  uint64_t* scratch_;
};

// kBlocks: minimum number of blocks per multiprocessor; 0 lets the compiler choose. With a minimum, the compiler uses
// the registers that remain to load ahead. Without one, it prefers more threads with one load each.
template <int kBlocks, typename F>
__global__ void __launch_bounds__(kBlock, kBlocks) run_each(int64_t n, F f) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

template <typename F>
__global__ void __launch_bounds__(1024) run_groups(int64_t groups, F f) {
  __shared__ uint64_t scratch[kValueWords * kWarp];
  for (int64_t i = blockIdx.x; i < groups; i += gridDim.x) {
    Group group(i, scratch);
    f(group);
    __syncthreads();  // the next group reuses scratch
  }
}

// The two parameters of the kernels run_each and run_groups.
template <typename F>
struct CountAndBody {
  int64_t n;
  F f;
};

// Launches the kernel as `kernel<<<...>>>` does.
template <typename F>
void issue_kernel(const KernelLaunch& launch, StreamHandle stream) {
  auto& p = const_cast<CountAndBody<F>&>(parameters_of<CountAndBody<F>>(launch));  // read-only; CUDA takes void**
  void* parameters[] = {&p.n, &p.f};
  cudaLaunchKernel(launch.kernel, dim3(launch.blocks), dim3(launch.threads), parameters, 0,
                   static_cast<cudaStream_t>(stream));
  runtime().check_launch();
}

template <typename F>
void launch(const Queue& queue, void (*kernel)(int64_t, F), int64_t blocks, int64_t threads, int64_t n, const F& f) {
  KernelLaunchWith<CountAndBody<F>> deferred(&issue_kernel<F>, {n, f});
  deferred->kernel = reinterpret_cast<const void*>(kernel);
  deferred->blocks = static_cast<uint32_t>(blocks);
  deferred->threads = static_cast<uint32_t>(threads);
  deferred->second = offsetof(CountAndBody<F>, f);
  queue.add(*deferred);
}

template <int kBlocks = 0, typename F>
void for_each(const Queue& queue, int64_t n, F f) {
  if (n <= 0) return;
  launch(queue, &run_each<kBlocks, F>, std::min((n + kBlock - 1) / kBlock, kMaxBlocks), kBlock, n, f);
}

// Returns the number of threads per group for `work` elements.
inline int64_t threads_for(int64_t work) {
  return work <= 64 ? kWarp : work <= 512 ? 128 : work <= 4096 ? 256 : work <= 16384 ? 512 : 1024;
}

// Calls f(group) for each of `groups` groups of threads. `work` is the number of elements per group, which determines
// the number of threads.
template <typename F>
void for_each_group(const Queue& queue, int64_t groups, int64_t work, F f) {
  if (groups <= 0) return;
  launch(queue, &run_groups<F>, std::min(groups, kMaxBlocks), threads_for(work), groups, f);
}

}  // namespace tt::cuda
