// Fixture of the tests of the C++ client's interface: a daemon for all tests of the program, and its session as the
// default one.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "teletensor/teletensor.h"
#include "tests/client/daemon.h"

namespace teletensor::testing {

inline Session connect_to(const tt::client::testing::Daemon& daemon) {
  ConnectOptions options;
  options.address = daemon.address();
  options.token = daemon.token();
  return connect(options);
}

class Api : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (daemon_ == nullptr) {
      daemon_ = new tt::client::testing::Daemon();
      set_default_session(connect_to(*daemon_));
      std::atexit([] {
        default_session().close();
        delete daemon_;
      });
    }
  }
  void SetUp() override { manual_seed(0); }
  static const tt::client::testing::Daemon& daemon() { return *daemon_; }

  static std::string text(const Tensor& tensor) {
    std::ostringstream out;
    out << tensor;
    return out.str();
  }
  static std::vector<float> floats(const Tensor& tensor) { return tensor.data<float>(); }

 private:
  inline static tt::client::testing::Daemon* daemon_ = nullptr;
};

template <typename E, typename Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const E& error) {
    return error.message();
  }
  return "";
}

}  // namespace teletensor::testing
