// HostReader: reads any layout in logical order, in chunks of any size.
#include "server/transfer/host_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/server/engine_memory.h"

namespace tt::server {
namespace {

class HostReaderTest : public ::testing::TestWithParam<size_t> {  // elements per chunk
 protected:
  HostReaderTest() { testing::start_engine(); }

  static Tensor counting(Sizes sizes) {
    Tensor t = empty(sizes, DType::kInt32, Device{});
    std::iota(t.data_as<int32_t>(), t.data_as<int32_t>() + t.numel(), 0);
    return t;
  }
  static std::vector<int32_t> all_of(const Tensor& t, size_t piece) {
    HostReader reader(t);
    std::vector<int32_t> values(static_cast<size_t>(t.numel()));
    char* at = reinterpret_cast<char*>(values.data());
    while (size_t got = reader.read(at, piece * sizeof(int32_t))) at += got;
    EXPECT_EQ(reader.left(), 0u);
    for (size_t first = 0; first <= values.size(); ++first) expect_rest(t, piece, values, first);
    return values;
  }
  // Expects all elements but the first `first`.
  static void expect_rest(const Tensor& t, size_t piece, const std::vector<int32_t>& values, size_t first) {
    HostReader reader(t);
    reader.skip(first * sizeof(int32_t));
    std::vector<int32_t> rest(values.size() - first);
    EXPECT_EQ(reader.left(), rest.size() * sizeof(int32_t));
    char* at = reinterpret_cast<char*>(rest.data());
    while (size_t got = reader.read(at, piece * sizeof(int32_t))) at += got;
    EXPECT_EQ(rest, std::vector<int32_t>(values.begin() + static_cast<int64_t>(first), values.end())) << first;
  }
};

TEST_P(HostReaderTest, Contiguous) { EXPECT_EQ(all_of(counting({2, 3}), GetParam()), (std::vector{0, 1, 2, 3, 4, 5})); }

TEST_P(HostReaderTest, Transposed) {
  Tensor t = view_of(counting({2, 3}), Geometry{{3, 2}, {1, 3}, 0, true});
  EXPECT_EQ(all_of(t, GetParam()), (std::vector{0, 3, 1, 4, 2, 5}));
}

TEST_P(HostReaderTest, StepsWithAnOffset) {
  Tensor t = view_of(counting({4, 4}), Geometry{{2, 2}, {8, 2}, 1, true});
  EXPECT_EQ(all_of(t, GetParam()), (std::vector{1, 3, 9, 11}));
}

TEST_P(HostReaderTest, Expanded) {
  Tensor t = view_of(counting({2}), Geometry{{2, 3}, {1, 0}, 0, true});
  EXPECT_EQ(all_of(t, GetParam()), (std::vector{0, 0, 0, 1, 1, 1}));
}

TEST_P(HostReaderTest, EmptyAndScalar) {
  EXPECT_TRUE(all_of(counting({0, 3}), GetParam()).empty());
  EXPECT_EQ(all_of(counting({}), GetParam()), std::vector{0});
}

INSTANTIATE_TEST_SUITE_P(Pieces, HostReaderTest, ::testing::Values(1, 2, 5, 100));

}  // namespace
}  // namespace tt::server
