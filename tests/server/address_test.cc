// Address: spellings, and claiming a place to listen.
#include "server/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(AddressTest, Spellings) {
  EXPECT_EQ(parse_address("unix:/run/a.sock")->path, "/run/a.sock");
  EXPECT_EQ(parse_address("127.0.0.1:7070")->to_string(), "127.0.0.1:7070");
  EXPECT_EQ(parse_address("[::1]:80")->host, "::1");
  EXPECT_EQ(parse_address("[::1]:80")->to_string(), "[::1]:80");
  for (const char* wrong : {"", "unix:", "host", ":80", "host:", "host:x", "host:70000", "[::1:80"}) {
    EXPECT_FALSE(parse_address(wrong).ok()) << wrong;
  }
}

TEST(AddressTest, WhatIsLocal) {
  EXPECT_TRUE(parse_address("127.0.0.1:1")->is_local());
  EXPECT_TRUE(parse_address("unix:/x")->is_local());
  EXPECT_FALSE(parse_address("0.0.0.0:1")->is_local());
}

class ClaimTest : public ::testing::Test {
 protected:
  ClaimTest() {
    std::string pattern = (fs::temp_directory_path() / "claim-test-XXXXXX").native();
    folder_ = mkdtemp(pattern.data());
    socket_.path = (folder_ / "deep" / "engine.sock").native();
  }
  ~ClaimTest() override {
    if (fd_ >= 0) close(fd_);
    fs::remove_all(folder_);
  }
  void listen_on_socket() {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strcpy(name.sun_path, socket_.path.c_str());
    fd_ = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    ASSERT_EQ(listen(fd_, 1), 0);
  }
  fs::path folder_;
  Address socket_;
  int fd_ = -1;
};

TEST_F(ClaimTest, MakesItsFolderForItsOwnerOnly) {
  ASSERT_TRUE(claim(socket_).ok());
  struct stat info {};
  stat((folder_ / "deep").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(ClaimTest, ASocketInUseIsOneClearLine) {
  ASSERT_TRUE(claim(socket_).ok());
  listen_on_socket();
  EXPECT_THAT(std::string(claim(socket_).message()), HasSubstr("another engine listens there"));
}

TEST_F(ClaimTest, AStaleSocketIsRemoved) {
  ASSERT_TRUE(claim(socket_).ok());
  listen_on_socket();
  close(fd_);
  fd_ = -1;
  EXPECT_TRUE(claim(socket_).ok());
  EXPECT_FALSE(fs::exists(socket_.path));
}

TEST_F(ClaimTest, AFileIsLeftAlone) {
  ASSERT_TRUE(claim(socket_).ok());
  std::ofstream(socket_.path) << "mine";
  EXPECT_FALSE(claim(socket_).ok());
  EXPECT_TRUE(fs::exists(socket_.path));
}

TEST_F(ClaimTest, APortInUseIsOneClearLine) {
  fd_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  ASSERT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(listen(fd_, 1), 0);
  getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &size);
  Address port{"", "127.0.0.1", std::to_string(ntohs(name.sin_port))};
  EXPECT_THAT(std::string(claim(port).message()), HasSubstr("the port is in use"));
  close(fd_);
  fd_ = -1;
  EXPECT_TRUE(claim(port).ok());
}

}  // namespace
}  // namespace tt::server
