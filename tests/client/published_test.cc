// Published tensors between sessions of the C++ client, with a real teletensord.
#include "client/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/schema/error.h"
#include "tests/client/daemon.h"
#include "tests/client/daemon_session.h"

namespace tt::client::testing {
namespace {

using ::testing::HasSubstr;

// Returns the message of the error that `body` throws, or "" if it throws none.
template <typename Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Published, ASessionUsesAnothersTensors) {
  Daemon daemon;
  Ref<Session> publisher = connect_to(daemon), reader = connect_to(daemon);
  const Tensor weight = upload(*publisher, {1, 2, 3, 4, 5, 6}), bias = upload(*publisher, {7});
  const int64_t size[] = {3, 2}, stride[] = {1, 3};
  const Arg turned[] = {weight.get(), SizesView(size), SizesView(stride), Arg(0)};
  const Tensor tensors[] = {weight, publisher->call(op("as_strided"), turned)[0], bias};
  const std::vector<std::string> keys = {"weight", "turned", "bias"};
  EXPECT_EQ(publish("model", keys, tensors), 28u);

  OpenedTensors opened = open_published(*reader, "model");
  EXPECT_EQ(opened.keys, keys);
  ASSERT_EQ(opened.tensors.size(), 3u);
  EXPECT_EQ(read(*reader, opened.tensors[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read(*reader, opened.tensors[1]), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(read(*reader, opened.tensors[2]), (std::vector<float>{7}));
  EXPECT_EQ(opened.tensors[0]->storage_number(), opened.tensors[1]->storage_number());
  EXPECT_TRUE(opened.tensors[1]->is_leaf());
  EXPECT_THAT(list_published(*reader), HasSubstr(R"("name":"model","bytes":28,"tensors":3,"sessions":2)"));

  // Both sides refuse writes before they send anything.
  for (const Tensor& tensor : {weight, opened.tensors[0], opened.tensors[1]}) {
    const Tensor into[] = {tensor};
    const auto write = [&] { add(*tensor->session, tensor, tensor.get(), {.into = into}); };
    EXPECT_THAT(message_of(write), HasSubstr("a published tensor is read-only"));
  }
  EXPECT_EQ(read(*reader, opened.tensors[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));

  publisher->close();
  EXPECT_THAT(message_of([&] { open_published(*reader, "model"); }), HasSubstr("has published nothing as \"model\""));
  EXPECT_EQ(read(*reader, opened.tensors[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Published, OneTensorThatMayBeWritten) {
  Daemon daemon;
  Ref<Session> publisher = connect_to(daemon), reader = connect_to(daemon);
  const Tensor tensor = upload(*publisher, {1, 2});
  publish("shared", std::nullopt, {&tensor, 1}, {.read_only = false, .persist = true});
  OpenedTensors opened = open_published(*reader, "shared");
  EXPECT_FALSE(opened.keys);
  const Tensor into[] = {opened.tensors.at(0)};
  add(*reader, into[0], Arg(10.0), {.into = into});
  EXPECT_EQ(read(*reader, into[0]), (std::vector<float>{11, 12}));
  EXPECT_EQ(read(*publisher, tensor), (std::vector<float>{11, 12}));
  publisher->close();
  unpublish(*reader, "shared");
  EXPECT_EQ(list_published(*reader), "[]");
}

}  // namespace
}  // namespace tt::client::testing
