// TensorSnapshot: the values at the time of the snapshot, whatever writes to the storage, and copies only for writes.
#include "server/checkpoint/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "engine/dispatch/dispatcher.h"
#include "engine/dispatch/ops.h"
#include "server/checkpoint/checksum.h"
#include "tests/server/engine_memory.h"

namespace tt::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Values = std::vector<float>;

class SnapshotTest : public ::testing::Test {
 protected:
  SnapshotTest() : scope_((testing::start_engine(), &context_)), bytes_before_(testing::engine_bytes()) {}
  ~SnapshotTest() override {
    context_.set_write_observer(nullptr);
    EXPECT_EQ(testing::engine_bytes(), bytes_before_);
  }

  static Tensor range(int64_t rows, int64_t columns) {
    Tensor x = empty({rows, columns}, DType::kFloat32, Device{});
    for (int64_t i = 0; i < rows * columns; ++i) x.data_as<float>()[i] = static_cast<float>(i);
    return x;
  }
  std::shared_ptr<TensorSnapshot> take(const Tensor& tensor) {
    auto snapshot = std::make_shared<TensorSnapshot>(detach(tensor));
    snapshots_.add(tensor, snapshot);
    return snapshot;
  }
  // Reads the rest in pieces of `piece` bytes.
  static Values rest(TensorSnapshot& snapshot, size_t piece = 20) {
    std::string bytes;
    uint32_t checksum = 0;
    std::string buffer(piece, '\0');
    while (const size_t got = snapshot.read(absl::MakeSpan(buffer), &checksum)) bytes.append(buffer, 0, got);
    EXPECT_EQ(checksum, update_checksum(0, bytes.data(), bytes.size()));
    Values values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  static void call(const char* name, std::vector<Arg> args, std::vector<Tensor> targets = {}) {
    Call call;
    call.op = find_op(name);
    call.args = args;
    for (Tensor& target : targets) call.outputs.push_back(std::move(target));
    call.into = !call.outputs.empty();
    Dispatcher::instance().dispatch(call);
  }

  Context context_;
  ContextScope scope_;
  const uint64_t bytes_before_;
  TensorSnapshots snapshots_;
};

TEST_F(SnapshotTest, ReadsTheStorageUntilItIsWritten) {
  const Tensor x = range(2, 3);
  const uint64_t bytes = testing::engine_bytes();
  const auto snapshot = take(x);
  ops::add(x, x);
  EXPECT_THAT(rest(*snapshot), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(testing::engine_bytes(), bytes);
}

TEST_F(SnapshotTest, EveryWayOfWriting) {
  struct Row {
    const char* description;
    std::function<void(const Tensor&)> write;
  };
  const std::vector<Row> rows = {
      {"out tensor",
       [](const Tensor& x) {
         call("add", {Arg(x.get()), Arg(x.get()), Arg(1)}, {x});
       }},
      {"fill", [](const Tensor& x) { copy_into(x, scalar_tensor(Scalar(7.0), DType::kFloat32, Device{})); }},
      {"view", [](const Tensor& x) { copy_into(ops::narrow(x, 0, 1, 1), ops::narrow(x, 0, 0, 1)); }},
  };
  const Values expected = {0, 1, 2, 3, 4, 5};
  for (const Row& row : rows) {
    const Tensor x = range(2, 3);
    const auto first = take(x), second = take(ops::transpose(x, 0, 1));
    row.write(x);
    const Values now(x.data_as<float>(), x.data_as<float>() + 6);
    EXPECT_NE(now, expected) << row.description;
    EXPECT_EQ(rest(*first), expected) << row.description;
    EXPECT_THAT(rest(*second), ElementsAre(0, 3, 1, 4, 2, 5)) << row.description;
    EXPECT_FALSE(context_.observes_kernels()) << row.description;
  }
}

TEST_F(SnapshotTest, AWriteBetweenTwoReads) {
  for (const bool is_transposed : {false, true}) {
    const Tensor x = range(300, 1000);
    const Tensor stored = is_transposed ? ops::transpose(x, 0, 1) : x;
    const Tensor same = host_copy(stored);
    const Values expected(same.data_as<float>(), same.data_as<float>() + same.numel());
    const auto snapshot = take(stored);
    Values found(1000);
    uint32_t checksum = 0;
    char* bytes = reinterpret_cast<char*>(found.data());
    ASSERT_EQ(snapshot->read({bytes, 4000}, &checksum), 4000u);
    copy_into(x, scalar_tensor(Scalar(-1.0), DType::kFloat32, Device{}));
    const Values more = rest(*snapshot, 777);
    found.insert(found.end(), more.begin(), more.end());
    EXPECT_TRUE(found == expected) << is_transposed;
  }
}

TEST_F(SnapshotTest, WritesAfterwardsCopyNothing) {
  const Tensor x = range(2, 3), other = range(2, 3);
  auto snapshot = take(x);
  const uint64_t bytes = testing::engine_bytes();
  copy_into(other, scalar_tensor(Scalar(1.0), DType::kFloat32, Device{}));
  EXPECT_TRUE(context_.observes_kernels());
  rest(*snapshot);
  snapshot->release();
  copy_into(x, other);
  EXPECT_EQ(testing::engine_bytes(), bytes);
  EXPECT_FALSE(context_.observes_kernels());
  snapshot = take(x);
  snapshot.reset();
  copy_into(x, other);
  EXPECT_EQ(testing::engine_bytes(), bytes);
}

TEST_F(SnapshotTest, KeepsTheElementsOfAFreedTensor) {
  Tensor x = range(1, 2);
  const auto snapshot = take(x);
  x = Tensor();
  EXPECT_THAT(rest(*snapshot), ElementsAre(0, 1));
}

TEST_F(SnapshotTest, WithoutMemoryForACopyTheWriteSucceedsAndTheReadFails) {
  context_.account = std::make_shared<Account>("session 1", 30'000);
  {
    const Tensor x = range(10, 500);
    const auto snapshot = take(x);
    const Tensor number = scalar_tensor(Scalar(1.0), DType::kFloat32, Device{});
    copy_into(x, number);
    EXPECT_EQ(x.data_as<float>()[4999], 1);
    uint32_t checksum = 0;
    std::string buffer(10, '\0');
    try {
      snapshot->read(absl::MakeSpan(buffer), &checksum);
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("out of memory on cpu"));
    }
  }
  context_.account = nullptr;
}

}  // namespace
}  // namespace tt::server
