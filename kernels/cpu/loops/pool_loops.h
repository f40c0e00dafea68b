// Pooling loops over one plane (height x width) at a time.
#pragma once

#include "kernels/common/nn/pool_window.h"

namespace tt::cpu {

// `y` receives the maximum of each window, or NaN if the window contains NaN. `index` receives the position of this
// element in the plane.
template <typename T>
void max_plane(const Window& w, const T* x, T* y, int64_t* index);
// The same without the positions, for windows of few elements: takes a step for each of them.
template <typename T>
void max_values(const Window& w, const T* x, T* y);
// The same for one row of outputs of an image whose channels are neighbours: row `row` of w.out[0].
template <typename T>
void max_row_of_channels(const Window& w, int64_t channels, int64_t row, const T* x, T* y, int64_t* index);
// dx[index] += g. Requires that every index is inside the plane.
template <typename T>
void max_plane_backward(const Window& w, const T* g, const int64_t* index, T* dx);
template <typename T>
void average_plane(const Window& w, const Divisor& divisor, const T* x, T* y);
// Adds each window's gradient to dx, distributed over the window.
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
