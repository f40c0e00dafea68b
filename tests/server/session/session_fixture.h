// SessionFixture: a session of this process's engine, and the frames sent to it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/session/session.h"
#include "tests/server/engine_memory.h"
#include "tests/server/frames.h"

namespace tt::server::testing {

inline Session::Options session_options() {
  Session::Options options;
  options.id = 1;
  options.transfer_timeouts = {std::chrono::milliseconds(300), std::chrono::milliseconds(100)};
  return options;
}

class SessionFixture : public ::testing::Test {
 protected:
  SessionFixture() {
    start_engine();
    bytes_before_ = engine_bytes();
    session_ = std::make_unique<Session>(session_options());
  }
  void restart(Session::Options options) { session_ = std::make_unique<Session>(std::move(options)); }

  v1::Reply run(v1::Frame frame) {
    frame.set_sequence(++sequence_);
    return run_as_is(frame);
  }
  v1::Reply run_as_is(const v1::Frame& frame) {
    v1::Reply reply;
    session_->execute(frame, &reply);
    return reply;
  }
  std::vector<float> value(uint64_t handle) {
    v1::Frame frame;
    read(&frame, 1, handle);
    v1::Reply reply = run(frame);
    EXPECT_FALSE(reply.has_fault()) << reply.fault().message();
    EXPECT_EQ(reply.reads_size(), 1);
    EXPECT_FALSE(reply.reads(0).has_error()) << reply.reads(0).error().message();
    return floats_of(reply.reads(0).data());
  }
  v1::Error error(uint64_t handle) {
    v1::Frame frame;
    read(&frame, 1, handle);
    v1::Reply reply = run(frame);
    EXPECT_TRUE(reply.reads(0).has_error());
    return reply.reads(0).error();
  }

  uint64_t bytes_before_;
  std::unique_ptr<Session> session_;
  uint64_t sequence_ = 0;
};

}  // namespace tt::server::testing
