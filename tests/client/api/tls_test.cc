// Sessions over TLS by the C++ client's interface: fingerprints, authorities and certificates of the client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "proto/certificate.h"
#include "teletensor/teletensor.h"
#include "tests/client/daemon.h"

namespace teletensor {
namespace {

using ::testing::HasSubstr;
using tt::client::testing::Daemon;

std::string free_place() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(probe, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(probe);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

class Tls : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/tls-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder_.data()));
    setenv("TELETENSOR_KNOWN_ENGINES", (folder_ + "/known_engines").c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string fingerprint() const { return *tt::fingerprint_of(*tt::read_pem(folder_ + "/tls-cert.pem")); }
  // The sum of three ones, or the error.
  static std::string computed(const ConnectOptions& options) {
    try {
      const Session session = connect(options);
      const SessionGuard guard(session);
      const std::string sum = std::to_string(ones({3}).sum().item<float>());
      session.close();
      return sum;
    } catch (const Error& error) {
      return error.what();
    }
  }

  std::string folder_;
  const std::string place_ = free_place();
};

TEST_F(Tls, RecognisesAnEngineByItsFingerprint) {
  const Daemon daemon({"--listen", place_, "--tls-self-signed", "--tls-dir", folder_});
  ConnectOptions options;
  options.address = "teletensors://" + place_;
  options.token = daemon.token();
  EXPECT_THAT(computed(options), HasSubstr("could not be verified"));
  options.fingerprint = std::string(64, '0');
  EXPECT_THAT(computed(options), HasSubstr("got " + fingerprint()));
  options.fingerprint = fingerprint();
  EXPECT_EQ(computed(options), "3.000000");
  options.fingerprint.clear();  // remembered
  EXPECT_EQ(computed(options), "3.000000");
  options.address = place_;
  EXPECT_THAT(computed(options), HasSubstr("use teletensors://" + place_ + " instead"));
}

TEST_F(Tls, PresentsACertificateToAnEngineThatRequiresOne) {
  const std::string other = folder_ + "/other";
  std::filesystem::create_directory(other);
  ASSERT_TRUE(tt::create_self_signed(other + "/cert.pem", other + "/key.pem").ok());
  // A certificate that signed itself is its own authority.
  const Daemon daemon(
      {"--listen", place_, "--tls-self-signed", "--tls-dir", folder_, "--tls-client-ca", other + "/cert.pem"});
  ConnectOptions options;
  options.address = "teletensors://" + place_;
  options.token = daemon.token();
  options.ca = folder_ + "/tls-cert.pem";
  EXPECT_THAT(computed(options), HasSubstr("requires a certificate of the client"));
  options.certificate = other + "/cert.pem";
  EXPECT_THAT(computed(options), HasSubstr("expected both certificate and key"));
  options.key = other + "/key.pem";
  EXPECT_EQ(computed(options), "3.000000");
}

TEST_F(Tls, SetsATraceContext) {
  const Daemon daemon;
  ConnectOptions options;
  options.address = daemon.address();
  options.token = daemon.token();
  options.traceparent = "nonsense";
  EXPECT_THAT(computed(options), HasSubstr("traceparent"));
  options.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(computed(options), "3.000000");
  const Session session = connect(options);
  session.set_trace_context("");
  EXPECT_THROW(session.set_trace_context("nonsense"), ValueError);
  session.close();
}

}  // namespace
}  // namespace teletensor
