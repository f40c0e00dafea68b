// Gathering and scattering compared with plain loops; no index causes an out-of-bounds access.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "engine/dispatch/ops.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"
#include "kernels/cpu/kernels.h"
#include "tests/kernels/backend.h"
#include "tests/kernels/samples.h"

namespace tt::cpu {
namespace {

using ::testing::HasSubstr;

Tensor ints(SizesView sizes, const std::vector<double>& values) { return tensor_of(sizes, values, DType::kInt64); }
Tensor mask(SizesView sizes, const std::vector<double>& values) { return tensor_of(sizes, values, DType::kBool); }

// The element of `t` at `index`.
double at(const Tensor& t, const std::vector<int64_t>& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * t.strides()[d];
  return values_of(view_of(t, Geometry{{}, {}, t->offset + offset}))[0];
}

// Calls f(index) for every position of a tensor of these sizes, in order.
void for_each_place(SizesView sizes, const std::function<void(const std::vector<int64_t>&)>& f) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> index(sizes.size());
    int64_t rest = i;
    for (size_t d = sizes.size(); d-- > 0;) {
      index[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    f(index);
  }
}

template <typename F>
void expect_index_error(F f, const std::string& message) {
  try {
    f();
    FAIL() << "expected an error with the message " << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIndex);
    EXPECT_THAT(e.message(), HasSubstr(message));
  }
}

struct GatherCase {
  Tensor input;
  Sizes index_sizes;
  int64_t dim;
};

std::vector<GatherCase> gather_cases(DType dtype) {
  const Tensor x = random_tensor({5, 6, 7}, dtype);
  return {{x, {5, 6, 3}, 2},
          {x, {2, 6, 7}, 0},
          {x, {3, 9, 2}, -2},
          {transpose(x, 0, 2), {7, 6, 4}, 2},
          {every_second(x, 1), {5, 8, 7}, 1},
          {random_tensor({}, dtype), {}, 0},
          {random_tensor({4000}, dtype), {9000}, 0}};
}

Tensor random_index(SizesView sizes, int64_t below) { return random_tensor(sizes, DType::kInt64, 0, below, 7); }

TEST(Gather, GathersAlongDimension) {
  for (DType dtype : kAllDTypes) {
    for (const GatherCase& c : gather_cases(dtype)) {
      const int64_t dim = c.dim < 0 ? c.dim + c.input.dim() : c.dim;
      const Tensor index = random_index(c.index_sizes, c.input.dim() ? c.input.size(dim) : 1);
      Tensor out = empty(c.index_sizes, dtype, Device{});
      gather(c.input, c.dim, index, false, out);
      for_each_place(c.index_sizes, [&](std::vector<int64_t> place) {
        const double got = at(out, place);
        if (!place.empty()) place[dim] = static_cast<int64_t>(at(index, place));
        ASSERT_EQ(got, at(c.input, place)) << name(dtype);
      });
    }
  }
}

TEST(Gather, AcceptsIndexOfAnyLayout) {
  const Tensor x = random_tensor({6, 6}, DType::kFloat32);
  const Tensor index = transpose(random_index({6, 6}, 6), 0, 1);
  Tensor out = empty({6, 6}, DType::kFloat32, Device{});
  gather(x, 1, index, false, out);
  for_each_place({6, 6}, [&](const std::vector<int64_t>& p) {
    ASSERT_EQ(at(out, p), at(x, {p[0], static_cast<int64_t>(at(index, p))}));
  });
}

TEST(Gather, RejectsIndexOutOfRange) {
  const Tensor x = random_tensor({3, 4}, DType::kFloat32);
  for (double bad : {-1.0, 4.0, 1e18, -9e18}) {
    Tensor out = empty({3, 2}, DType::kFloat32, Device{});
    expect_index_error(
        [&] {
          gather(x, 1, ints({3, 2}, {0, 1, 2, bad, 0, 0}), false, out);
        },
        "is out of bounds for dimension 1 with size 4");
  }
  Tensor out = empty({1}, DType::kFloat32, Device{});
  expect_index_error([&] { gather(empty({0}, DType::kFloat32, Device{}), 0, ints({1}, {0}), false, out); },
                     "out of bounds for dimension 0 with size 0");
}

TEST(Scatter, WritesAndAddsInOrder) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32, DType::kInt64, DType::kFloat64}) {
    for (int64_t dim : {0, 1, 2}) {
      const Tensor input = transpose(random_tensor({4, 6, 5}, dtype), 0, 2);
      const Tensor index = random_index({4, 5, 3}, input.size(dim) - 1);  // has duplicates
      const Tensor src = every_second(random_tensor({4, 5, 8}, dtype, -4, 5, 3), 2);
      Tensor replaced = empty(input.sizes(), dtype, Device{}), added = empty(input.sizes(), dtype, Device{});
      Tensor filled = empty(input.sizes(), dtype, Device{});
      scatter(input, dim, index, src, replaced);
      scatter_add(input, dim, index, src, added);
      scatter_value(input, dim, index, Scalar(3), filled);
      Tensor want_replaced = tensor_of(input.sizes(), values_of(input), dtype);
      // Sums of 16-bit floats are rounded once.
      const DType wide = dtype == DType::kFloat16 ? DType::kFloat32 : dtype;
      Tensor want_added = tensor_of(input.sizes(), values_of(input), wide);
      Tensor want_filled = tensor_of(input.sizes(), values_of(input), dtype);
      for_each_place(index.sizes(), [&](std::vector<int64_t> place) {
        const double value = at(src, place);
        place[dim] = static_cast<int64_t>(at(index, place));
        auto element = [&](const Tensor& t) {
          return view_of(t, Geometry{{}, {}, place[0] * t.stride(0) + place[1] * t.stride(1) + place[2] * t.stride(2)});
        };
        set_values(element(want_replaced), {value});
        set_values(element(want_added), {at(want_added, place) + value});
        set_values(element(want_filled), {3});
      });
      EXPECT_EQ(values_of(replaced), values_of(want_replaced)) << name(dtype) << dim;
      const Tensor rounded = tensor_of(input.sizes(), values_of(want_added), dtype);
      EXPECT_EQ(values_of(added), values_of(rounded)) << name(dtype) << dim;
      EXPECT_EQ(values_of(filled), values_of(want_filled)) << name(dtype) << dim;
    }
  }
}

TEST(Scatter, RejectsIndexOutOfRange) {
  const Tensor x = random_tensor({3}, DType::kFloat32);
  Tensor out = empty({3}, DType::kFloat32, Device{});
  for (double bad : {-1.0, 3.0, 4e18}) {
    expect_index_error([&] { scatter(x, 0, ints({1}, {bad}), random_tensor({1}, DType::kFloat32), out); },
                       "is out of bounds for dimension 0 with size 3");
    expect_index_error([&] { scatter_add(x, 0, ints({1}, {bad}), random_tensor({1}, DType::kFloat32), out); },
                       "is out of bounds for dimension 0 with size 3");
  }
}

Tensor indexed(const Tensor& x, const Tensors& indices) {
  Tensor out;
  index_masked(x, indices, out);
  return out;
}

TEST(Index, BroadcastsIntegers) {
  const Tensor x = random_tensor({4, 5, 6}, DType::kFloat32);
  const Tensor rows = ints({3, 1}, {0, -1, 2}), cols = ints({2}, {-5, 4});
  const Tensor out = indexed(x, {rows, cols});
  EXPECT_EQ(out.sizes(), (Sizes{3, 2, 6}));
  for_each_place(out.sizes(), [&](const std::vector<int64_t>& p) {
    const int64_t r = std::vector<int64_t>{0, 3, 2}[p[0]], c = std::vector<int64_t>{0, 4}[p[1]];
    ASSERT_EQ(at(out, p), at(x, {r, c, p[2]}));
  });
}

TEST(Index, PutsSeparatedIndicesInFront) {
  const Tensor x = transpose(random_tensor({6, 5, 4}, DType::kInt16), 0, 2);  // [4, 5, 6]
  const Tensor out = indexed(x, {ints({2}, {1, 3}), Tensor(), ints({2}, {0, 5})});
  EXPECT_EQ(out.sizes(), (Sizes{2, 5}));
  for_each_place(out.sizes(), [&](const std::vector<int64_t>& p) {
    ASSERT_EQ(at(out, p), at(x, {p[0] ? 3 : 1, p[1], p[0] ? 5 : 0}));
  });
  EXPECT_EQ(indexed(x, {Tensor(), ints({2, 3}, {0, 1, 2, 3, 4, 0})}).sizes(), (Sizes{4, 2, 3, 6}));
  EXPECT_EQ(indexed(x, {Tensor(), ints({0}, {}), ints({1}, {0})}).sizes(), (Sizes{4, 0}));
}

TEST(Index, AcceptsMasks) {
  const Tensor x = random_tensor({2, 3, 4}, DType::kFloat32);
  const Tensor both = mask({2, 3}, {0, 1, 0, 1, 1, 0});
  const Tensor out = indexed(x, {both});
  ASSERT_EQ(out.sizes(), (Sizes{3, 4}));
  const int64_t where[3][2] = {{0, 1}, {1, 0}, {1, 1}};
  for_each_place(out.sizes(), [&](const std::vector<int64_t>& p) {
    ASSERT_EQ(at(out, p), at(x, {where[p[0]][0], where[p[0]][1], p[1]}));
  });
  // A mask and integers: the integers broadcast with the mask's positions.
  const Tensor mixed = indexed(x, {ints({1}, {1}), mask({3}, {1, 0, 1})});
  ASSERT_EQ(mixed.sizes(), (Sizes{2, 4}));
  for_each_place(mixed.sizes(), [&](const std::vector<int64_t>& p) {
    ASSERT_EQ(at(mixed, p), at(x, {1, p[0] * 2, p[1]}));
  });
  EXPECT_EQ(indexed(x, {mask({}, {1})}).sizes(), (Sizes{1, 2, 3, 4}));
  EXPECT_EQ(indexed(x, {mask({}, {0})}).sizes(), (Sizes{0, 2, 3, 4}));
  EXPECT_EQ(indexed(x, {mask({2}, {0, 0})}).sizes(), (Sizes{0, 3, 4}));
}

TEST(Index, NonzeroMaskByteIsTrue) {
  const Tensor x = tensor_of({4}, {1, 2, 3, 4});
  Tensor m = empty({4}, DType::kBool, Device{});
  const uint8_t bytes[] = {0, 2, 255, 0};
  std::copy_n(bytes, 4, m.data_as<uint8_t>());
  EXPECT_EQ(values_of(indexed(x, {m})), (std::vector<double>{2, 3}));
}

TEST(Index, AcceptsBytesAsMasks) {
  const Tensor x = tensor_of({3}, {1, 2, 3});
  EXPECT_EQ(values_of(indexed(x, {tensor_of({3}, {1, 0, 1}, DType::kUInt8)})), (std::vector<double>{1, 3}));
}

TEST(Index, RejectsOversizedResult) {
  // One element expanded to 2^61: each selected row has that size.
  const Tensor x = expand(tensor_of({1}, {1}), 1, int64_t{1} << 61);
  EXPECT_THROW(indexed(x, {ints({2}, {0, 0})}), Error);
  EXPECT_THROW(indexed(tensor_of({1}, {1}), {expand(ints({1}, {0}), 1, int64_t{1} << 61)}), Error);
}

TEST(Index, RejectsIncompatibleSizes) {
  const Tensor x = random_tensor({3, 4}, DType::kFloat32);
  expect_index_error([&] { indexed(x, {ints({1}, {3})}); }, "index 3 is out of bounds for dimension 0 with size 3");
  expect_index_error(
      [&] {
        indexed(x, {Tensor(), ints({1}, {-5})});
      },
      "index -5 is out of bounds for dimension 1 with size 4");
  expect_index_error([&] { indexed(x, {ints({2}, {0, 0}), ints({3}, {0, 0, 0})}); }, "could not be broadcast");
  expect_index_error([&] { indexed(x, {mask({4}, {0, 0, 0, 0})}); }, "The shape of the mask [4]");
  expect_index_error([&] { indexed(x, {Tensor(), Tensor(), ints({1}, {0})}); }, "too many indices");
  expect_index_error([&] { indexed(x, {random_tensor({1}, DType::kFloat32)}); }, "tensors used as indices must be");
  expect_index_error([&] { indexed(empty({0}, DType::kFloat32, Device{}), {ints({1}, {0})}); }, "with size 0");
}

TEST(IndexPut, WritesAddsAndBroadcasts) {
  const Tensor x = tensor_of({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor out = empty({2, 3}, DType::kFloat32, Device{});
  index_put(x, {ints({2}, {1, 1}), ints({2}, {0, 0})}, tensor_of({2}, {10, 20}), true, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2, 3, 34, 5, 6}));
  index_put(x, {ints({2}, {1, 1}), ints({2}, {0, 0})}, tensor_of({2}, {10, 20}), false, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2, 3, 20, 5, 6}));
  index_put(x, {Tensor(), ints({1}, {-1})}, tensor_of({}, {9}, DType::kInt64), false, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2, 9, 4, 5, 9}));
  index_put(x, {mask({2, 3}, {1, 0, 0, 0, 0, 1})}, tensor_of({2}, {7, 8}), false, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{7, 2, 3, 4, 5, 8}));
  index_put(x, {mask({2}, {0, 1})}, tensor_of({1, 3}, {7, 8, 9}), false, out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2, 3, 7, 8, 9}));
  EXPECT_THROW(index_put(x, {mask({2}, {0, 1})}, tensor_of({1, 1, 3}, {7, 8, 9}), false, out), Error);
  EXPECT_THROW(index_put(x, {ints({2}, {0, 1})}, tensor_of({2}, {7, 8}), false, out), Error);
  expect_index_error([&] { index_put(x, {ints({1}, {2})}, tensor_of({}, {0}), false, out); },
                     "index 2 is out of bounds for dimension 0 with size 2");
}

TEST(IndexSelect, SelectsFillsAndAdds) {
  const Tensor x = transpose(tensor_of({3, 2}, {1, 4, 2, 5, 3, 6}), 0, 1);  // [[1, 2, 3], [4, 5, 6]]
  Tensor out = empty({2, 2}, DType::kFloat32, Device{});
  index_select(x, 1, ints({2}, {2, 0}), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{3, 1, 6, 4}));
  out = empty({2, 3}, DType::kFloat32, Device{});
  index_add(x, 1, ints({2}, {2, 2}), tensor_of({2, 2}, {1, 2, 3, 4}), Scalar(1), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2, 6, 4, 5, 13}));
  index_add(x, 0, ints({1}, {1}), tensor_of({1, 3}, {1, 1, 1}), Scalar(0.5), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 2, 3, 4.5, 5.5, 6.5}));
  index_fill(x, 0, ints({1}, {0}), Scalar(7), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{7, 7, 7, 4, 5, 6}));
  index_fill(x, 1, ints({2}, {-1, 0}), Scalar(7), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{7, 2, 7, 7, 5, 7}));
  expect_index_error([&] { index_fill(x, 1, ints({1}, {-4}), Scalar(7), out); }, "index -4 is out of bounds");
  for (double bad : {-1.0, 3.0}) {
    Tensor one = empty({2, 1}, DType::kFloat32, Device{});
    expect_index_error([&] { index_select(x, 1, ints({1}, {bad}), one); }, "index out of range in self");
  }
}

// Reference for index_add and index_copy (the last value wins), element by element.
void add_one_by_one(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source, const Tensor& out) {
  set_values(out, values_of(x));
  for_each_place(source.sizes(), [&](std::vector<int64_t> place) {
    const auto added = static_cast<float>(at(source, place));
    place[dim] = static_cast<int64_t>(at(index, {place[dim]}));
    int64_t offset = 0;
    for (size_t d = 0; d < place.size(); ++d) offset += place[d] * out.stride(d);
    out.data_as<float>()[offset] += added;
  });
}

// Large enough for several threads, which must keep the order of additions to one position; every kind of row.
TEST(IndexAdd, SumsInTheOrderOfTheIndex) {
  const Tensor x = random_tensor({30, 40, 50}, DType::kFloat32, -1, 1, 2);
  for (int64_t dim = 0; dim < 3; ++dim) {
    for (bool turned : {false, true}) {
      Sizes sizes = x.sizes();
      sizes[dim] = 97;
      const Tensor source = turned ? transpose(random_tensor({sizes[2], sizes[1], sizes[0]}, DType::kFloat32), 0, 2)
                                   : random_tensor(sizes, DType::kFloat32);
      const Tensor index = random_index({97}, 7);
      Tensor out = empty(x.sizes(), DType::kFloat32, Device{}), want = empty(x.sizes(), DType::kFloat32, Device{});
      index_add(x, dim, index, source, Scalar(1), out);
      add_one_by_one(x, dim, index, source, want);
      EXPECT_EQ(values_of(out), values_of(want)) << dim << turned;
    }
  }
}

TEST(Index, MovesAdjacentRowsTogether) {
  std::vector<double> places;  // descending, ascending, repeated, and out of order
  for (int64_t i = 0; i < 60; ++i) places.push_back(i < 3 ? 3 - i : i < 50 ? i - 3 : i == 50 ? 46 : i - 51);
  const Tensor index = ints({60}, places);
  const int64_t n = 60;
  for (DType dtype : {DType::kBool, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor whole = random_tensor({4, 5, 50}, dtype), turned = transpose(random_tensor({50, 5, 4}, dtype), 0, 2);
    for (const Tensor& x : {whole, turned}) {
      Tensor out = empty({4, 5, n}, dtype, Device{});
      index_select(x, 2, index, out);
      for_each_place(out.sizes(), [&](const std::vector<int64_t>& p) {
        ASSERT_EQ(at(out, p), at(x, {p[0], p[1], static_cast<int64_t>(places[p[2]])}));
      });
    }
  }
  const Tensor x = random_tensor({4, 5, 50}, DType::kFloat32), source = random_tensor({4, 5, n}, DType::kFloat32);
  Tensor out = empty(x.sizes(), DType::kFloat32, Device{}), want = empty(x.sizes(), DType::kFloat32, Device{});
  for (const Tensor& values : {source, expand(random_tensor({5, n}, DType::kFloat32), 0, 4)}) {
    index_add(x, 2, index, values, Scalar(1), out);
    add_one_by_one(x, 2, index, values, want);
    EXPECT_EQ(values_of(out), values_of(want));
  }
}

TEST(Index, HandlesRowsOfOneElement) {  // the rows have as many elements as the index
  const Tensor column = random_tensor({20}, DType::kFloat32), x = expand(column, 1, 16);
  std::vector<double> places(16);
  std::iota(places.begin(), places.end(), 2);
  const Tensor out = indexed(x, {ints({16}, places)});
  for_each_place(out.sizes(), [&](const std::vector<int64_t>& p) { ASSERT_EQ(at(out, p), at(column, {p[0] + 2})); });
}

TEST(Index, SplitsAcrossThreads) {
  const Tensor x = random_tensor({5000}, DType::kInt32, -1000, 1000),
               index = random_tensor({150001}, DType::kInt64, -5000, 5000);
  const Tensor out = indexed(x, {index});
  const std::vector<double> from = values_of(x), places = values_of(index), got = values_of(out);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], from[static_cast<size_t>(places[i] < 0 ? places[i] + 5000 : places[i])]);
  }
  index.data_as<int64_t>()[140000] = 5000;
  expect_index_error([&] { indexed(x, {index}); }, "index 5000 is out of bounds for dimension 0 with size 5000");
}

TEST(Nonzero, HandlesLongRows) {
  const Tensor x = random_tensor({3, 1700}, DType::kInt8, -1, 2);
  Tensor out;
  nonzero(x, out);
  std::vector<double> want;
  for_each_place(x.sizes(), [&](const std::vector<int64_t>& p) {
    if (at(x, p) != 0) want.insert(want.end(), p.begin(), p.end());
  });
  EXPECT_EQ(values_of(out), want);
}
TEST(Nonzero, FindsNonzeroInEveryDType) {
  for (DType dtype : kAllDTypes) {
    for (const Tensor& x : {tensor_of({2, 3}, {0, 1, 0, 1, 1, 0}, dtype),
                            transpose(tensor_of({3, 2}, {0, 1, 1, 1, 0, 0}, dtype), 0, 1)}) {
      Tensor out;
      nonzero(x, out);
      EXPECT_EQ(out.sizes(), (Sizes{3, 2}));
      EXPECT_EQ(values_of(out), (std::vector<double>{0, 1, 1, 0, 1, 1})) << name(dtype);
    }
  }
  Tensor out;
  nonzero(tensor_of({}, {5}), out);
  EXPECT_EQ(out.sizes(), (Sizes{1, 0}));
  nonzero(empty({0, 4}, DType::kFloat32, Device{}), out);
  EXPECT_EQ(out.sizes(), (Sizes{0, 2}));
  nonzero(tensor_of({3}, {NAN, -0.0, 0.0}), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{0}));
}

TEST(MaskedSelect, BroadcastsBoth) {
  Tensor out;
  masked_select(tensor_of({2, 1}, {1, 2}), mask({3}, {1, 0, 1}), out);
  EXPECT_EQ(values_of(out), (std::vector<double>{1, 1, 2, 2}));
}

// Calls `op` in place on `x`, like `x.op_(...)`.
void in_place(uint16_t op, const Tensor& x, absl::Span<const Arg> rest) {
  std::vector<Arg> args = {Arg(x.get())};
  args.insert(args.end(), rest.begin(), rest.end());
  ops::call(op, args, {&x, 1});
}

TEST(InPlace, WritesToStridedTensor) {
  tt::testing::have_backend();
  const Tensor base = tensor_of({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Tensor x = every_second(base, 1);  // columns 1 and 3
  const Tensor rows = ints({2}, {2, 0}), value = tensor_of({}, {-1});
  const TensorMeta* list[] = {rows.get()};
  const Arg args[] = {Arg(absl::Span<const TensorMeta* const>(list)), Arg(value.get()), Arg(false)};
  in_place(op_id::kIndexPut, x, args);
  EXPECT_EQ(values_of(base), (std::vector<double>{0, -1, 2, -1, 4, 5, 6, 7, 8, -1, 10, -1}));
  const Tensor places = ints({1, 2}, {1, 1}), more = tensor_of({1, 2}, {10, 20});
  const Arg scatter_args[] = {Arg(0), Arg(places.get()), Arg(more.get())};
  in_place(op_id::kScatterAdd, x, scatter_args);
  EXPECT_EQ(values_of(base), (std::vector<double>{0, -1, 2, -1, 4, 15, 6, 27, 8, -1, 10, -1}));
}

TEST(InPlace, ReadsOverlappingValuesBeforeWrite) {
  tt::testing::have_backend();
  const Tensor x = tensor_of({4}, {1, 2, 3, 4}), reversed = ints({4}, {3, 2, 1, 0});
  const TensorMeta* list[] = {reversed.get()};
  const Arg args[] = {Arg(absl::Span<const TensorMeta* const>(list)), Arg(x.get()), Arg(false)};
  in_place(op_id::kIndexPut, x, args);
  EXPECT_EQ(values_of(x), (std::vector<double>{4, 3, 2, 1}));
  const Tensor index = ints({3}, {2, 1, 0});
  in_place(op_id::kScatterValue, index, std::vector<Arg>{Arg(0), Arg(index.get()), Arg(0)});
  EXPECT_EQ(values_of(index), (std::vector<double>{0, 0, 0}));
}

}  // namespace
}  // namespace tt::cpu
