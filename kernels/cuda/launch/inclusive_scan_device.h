// inclusive_scan.h for nvcc: CUB's scan, which reads and writes each element once ("Single-pass parallel prefix scan
// with decoupled look-back", Merrill and Garland, 2016).
#pragma once

#include <cub/device/device_scan.cuh>
#include <iterator>

#include "engine/tensor/tensor.h"
#include "kernels/cuda/launch/launch.h"

namespace tt::cuda {

// An input iterator that calls `f` with an index.
template <typename F>
struct FunctionInputIterator {
  using value_type = decltype(std::declval<F>()(int64_t{0}));
  using reference = value_type;
  using pointer = const value_type*;
  using difference_type = int64_t;
  using iterator_category = std::random_access_iterator_tag;
  F f;
  int64_t at;

  TT_FUNCTION value_type operator[](int64_t i) const { return f(at + i); }
  TT_FUNCTION value_type operator*() const { return f(at); }
  TT_FUNCTION FunctionInputIterator operator+(int64_t n) const { return {f, at + n}; }
  TT_FUNCTION FunctionInputIterator& operator+=(int64_t n) {
    at += n;
    return *this;
  }
};

// An output iterator that calls `f` with an index and a value.
template <typename F, typename T>
struct FunctionOutputIterator {
  struct Slot {
    F f;
    int64_t at;
    TT_FUNCTION void operator=(const T& value) const { f(at, value); }
  };
  using value_type = T;
  using reference = Slot;
  using pointer = void;
  using difference_type = int64_t;
  using iterator_category = std::random_access_iterator_tag;
  F f;
  int64_t at;

  TT_FUNCTION Slot operator[](int64_t i) const { return {f, at + i}; }
  TT_FUNCTION Slot operator*() const { return {f, at}; }
  TT_FUNCTION FunctionOutputIterator operator+(int64_t n) const { return {f, at + n}; }
  TT_FUNCTION FunctionOutputIterator& operator+=(int64_t n) {
    at += n;
    return *this;
  }
};

// Calls CUB's scan with the stored arguments.
template <typename In, typename Out, typename Op>
struct Scan {
  In in;
  Out out;
  Op op;
  int64_t n;
  void* temp_storage;
  size_t bytes;  // size of `temp_storage`
  void operator()(StreamHandle stream) const {
    size_t held = bytes;
    cub::DeviceScan::InclusiveScan(temp_storage, held, in, out, op, n, static_cast<cudaStream_t>(stream));
    runtime().check_launch();
  }
};

template <typename Load, typename Op, typename Store>
void inclusive_scan(const Queue& queue, int64_t n, Load load, Op op, Store store) {
  if (n <= 0) return;
  using T = decltype(load(int64_t{0}));
  const FunctionInputIterator<Load> in{load, 0};
  const FunctionOutputIterator<Store, T> out{store, 0};
  size_t bytes = 0;
  cub::DeviceScan::InclusiveScan(nullptr, bytes, in, out, op, n);
  const Tensor temp_storage = empty({static_cast<int64_t>(bytes)}, DType::kUInt8, queue.device());
  queue.add(Scan<decltype(in), decltype(out), Op>{in, out, op, n, temp_storage.data(), bytes});
}

}  // namespace tt::cuda
