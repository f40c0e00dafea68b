// The loops of pooling: one plane (height x width) at a time.
#pragma once

#include <array>
#include <cstdint>

namespace tt::cpu {

using Pair = std::array<int64_t, 2>;  // height, width

// A window that slides over planes; the same for all of them.
struct Window {
  Pair in;
  Pair out;
  Pair kernel;
  Pair stride;
  Pair padding{0, 0};
  Pair dilation{1, 1};  // max only
};

// What an average divides by.
struct Divisor {
  bool count_padding = true;
  int64_t override = 0;  // 0: the window's size
};

// y: the largest of each window, NaN if there is one; index: where in the plane it was.
template <typename T>
void max_plane(const Window& w, const T* x, T* y, int64_t* index);
// dx[index] += g. Requires that every index is inside the plane.
template <typename T>
void max_plane_backward(const Window& w, const T* g, const int64_t* index, T* dx);
template <typename T>
void average_plane(const Window& w, const Divisor& divisor, const T* x, T* y);
// dx += each window's gradient spread over it.
template <typename T>
void average_plane_backward(const Window& w, const Divisor& divisor, const T* g, T* dx);

// Adaptive windows: output i covers inputs [i * in / out, ceil((i + 1) * in / out)).
template <typename T>
void adaptive_max_plane(Pair in, Pair out, const T* x, T* y, int64_t* index);
template <typename T>
void adaptive_average_plane(Pair in, Pair out, const T* x, T* y);
template <typename T>
void adaptive_average_plane_backward(Pair in, Pair out, const T* g, T* dx);

}  // namespace tt::cpu
