// Fixture of the session tests: a session with a FakeEngine, and calls on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "client/session/session.h"
#include "engine/schema/op_ids.h"
#include "tests/client/fake_engine.h"

namespace tt::client::testing {

inline const Op& op(std::string_view name) { return *find_op(name); }

class FakeSession : public ::testing::Test {
 protected:
  void connect() { session = Session::connect(std::make_unique<FakeTransport>(engine), "test"); }

  // A new tensor of the session; the fake ignores how it was made.
  Tensor make(SizesView sizes = {}) {
    TensorMeta meta;
    meta.sizes.assign(sizes.begin(), sizes.end());
    meta.strides = contiguous_strides(meta.sizes);
    const Arg args[] = {Arg(1.0), Arg(2.0), Arg(1)};
    return session->call_with_metas(op("add"), args, {&meta, 1})[0];
  }
  Tensor add(const Tensor& a, const Tensor& b, const CallOptions& options = {}) {
    const Arg args[] = {a.get(), b.get(), Arg(1)};
    return session->call(op("add"), args, options)[0];
  }
  // The fake's value of a tensor that was never written: its handle.
  static float number(const Value& value) {
    float number;
    std::memcpy(&number, value.bytes.data(), sizeof(number));
    return number;
  }

  std::shared_ptr<FakeEngine> engine = std::make_shared<FakeEngine>();
  Ref<Session> session;
};

}  // namespace tt::client::testing
