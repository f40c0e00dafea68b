// ChannelShape: the shape outer x channels x inner of a tensor; sum_channels(): sums over each channel.
//
// A long channel is summed in two steps: the elements of each part of the channel, then the sums of the parts. The
// order of additions is fixed.
#pragma once

#include <algorithm>

#include "kernels/cuda/launch/floating.h"
#include "kernels/cuda/launch/index_divider.h"

namespace tt::cuda {

struct ChannelShape {
  int64_t outer = 1, channels = 1, inner = 1;

  ChannelShape(int64_t outer, int64_t channels, int64_t inner) : outer(outer), channels(channels), inner(inner) {}
  // Requires a tensor of shape N x C x space, where space is any number of dimensions.
  explicit ChannelShape(const Tensor& t) : outer(t.size(0)), channels(t.size(1)) {
    for (int64_t d = 2; d < t.dim(); ++d) inner *= t.size(d);
  }
  TT_FUNCTION int64_t count() const { return outer * inner; }  // elements per channel
  TT_FUNCTION int64_t run(int64_t o, int64_t c) const { return (o * channels + c) * inner; }
};

// Two sums computed together.
template <typename C>
struct TwoSums {
  C first = 0, second = 0;

  TT_FUNCTION TwoSums operator+(const TwoSums& other) const { return {first + other.first, second + other.second}; }
  TT_FUNCTION void operator+=(const TwoSums& other) {
    first += other.first;
    second += other.second;
  }
};
using Sums = TwoSums<double>;

// Returns the thread's part of the sums over elements [begin, end) of channel c. term(outer index, channel, offset)
// returns the two summands of an element.
template <typename C, typename Term, typename G>
TT_DEVICE Sums sum_run(const G& group, const ChannelShape& shape, const IndexDivider& by_inner, int64_t c,
                       int64_t begin, int64_t end, const Term& term) {
  constexpr int kAhead = 4;  // elements loaded at the same time
  TwoSums<C> sums;
  const auto take = [&](int64_t e) {
    const int64_t o = by_inner.quotient(e);
    sums += term(o, c, shape.run(o, c) + e - o * shape.inner);
  };
  const int64_t step = group.size();
  int64_t e = begin + group.rank();
  TT_ROLLED
  for (; e + (kAhead - 1) * step < end; e += kAhead * step) {
    TT_UNROLL
    for (int a = 0; a < kAhead; ++a) take(e + a * step);
  }
  TT_ROLLED
  for (; e < end; e += step) take(e);
  return {static_cast<double>(sums.first), static_cast<double>(sums.second)};
}

// Returns the number of parts that each channel is divided into.
inline int64_t parts_of(const ChannelShape& shape) {
  constexpr int64_t kThreads = 1 << 17, kTermsOfThread = 16;  // one part of a channel per thread
  constexpr int64_t kGroups = 1 << 10, kTermsOfGroup = 4096;  // one part of a channel per group
  const bool threads = shape.inner == 1;
  const int64_t wanted = (threads ? kThreads : kGroups) / std::max<int64_t>(shape.channels, 1);
  return std::max<int64_t>(1, std::min(wanted, shape.count() / (threads ? kTermsOfThread : kTermsOfGroup)));
}

template <typename C, typename Term, typename Finish>
void sum_channels_at_once(const Queue& queue, ChannelShape shape, Term term, Finish finish) {
  const IndexDivider by_inner(shape.inner, shape.count());
  for_each_group(queue, shape.channels, shape.count(), [=] TT_DEVICE(Group & group) {
    const int64_t c = group.index();
    const Sums sums = group.reduce(sum_run<C>(group, shape, by_inner, c, 0, shape.count(), term), Add());
    if (group.rank() == 0) finish(c, sums);
  });
}

template <typename C, typename Term>
void sum_parts(const Queue& queue, ChannelShape shape, int64_t parts, Term term, Sums* partial) {
  const int64_t channels = shape.channels, count = shape.count();
  if (shape.inner == 1) {  // adjacent threads read adjacent channels, which are adjacent in memory
    for_each(queue, parts * channels, [=] TT_DEVICE(int64_t i) {
      const int64_t part = i / channels, c = i % channels;
      const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
      TwoSums<C> sums;
      for (int64_t o = begin; o < end; ++o) sums += term(o, c, o * channels + c);
      partial[c * parts + part] = {static_cast<double>(sums.first), static_cast<double>(sums.second)};
    });
  } else {
    const IndexDivider by_inner(shape.inner, count);
    for_each_group(queue, parts * channels, count / parts, [=] TT_DEVICE(Group & group) {
      const int64_t part = group.index() % parts, c = group.index() / parts;
      const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
      const Sums sums = group.reduce(sum_run<C>(group, shape, by_inner, c, begin, end, term), Add());
      if (group.rank() == 0) partial[group.index()] = sums;
    });
  }
}

// Calls finish(channel, sums of the channel) in one thread per channel.
template <typename C, typename Term, typename Finish>
void sum_channels(const Queue& queue, const ChannelShape& shape, Term term, Finish finish) {
  const int64_t parts = parts_of(shape), channels = shape.channels;
  if (parts == 1) return sum_channels_at_once<C>(queue, shape, term, finish);
  const Tensor scratch = empty(Sizes{channels * parts, 2}, DType::kFloat64, queue.device());
  Sums* partial = scratch.data_as<Sums>();
  sum_parts<C>(queue, shape, parts, term, partial);
  for_each_group(queue, channels, parts, [=] TT_DEVICE(Group & group) {
    const int64_t c = group.index();
    Sums sums;
    for (int64_t i = group.rank(); i < parts; i += group.size()) sums += partial[c * parts + i];
    sums = group.reduce(sums, Add());
    if (group.rank() == 0) finish(c, sums);
  });
}

// Calls f(channel, offset) for every element.
template <typename F>
void for_each_in_channels(const Queue& queue, ChannelShape shape, F f) {
  constexpr int64_t kMinGroupRun = 256;
  const int64_t channels = shape.channels, inner = shape.inner;
  if (inner >= kMinGroupRun) {
    for_each_group(queue, shape.outer * channels, inner, [=] TT_DEVICE(Group & group) {
      const int64_t c = group.index() % channels, start = group.index() * inner;
      for (int64_t i = group.rank(); i < inner; i += group.size()) f(c, start + i);
    });
  } else {
    const int64_t n = shape.outer * channels * inner;
    const IndexDivider by_inner(inner, n), by_channels(channels, n);
    for_each(queue, n, [=] TT_DEVICE(int64_t i) {
      const int64_t run = by_inner.quotient(i);
      f(run - by_channels.quotient(run) * channels, i);
    });
  }
}

}  // namespace tt::cuda
