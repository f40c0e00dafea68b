// Address: parsing, and claiming an address to listen on.
#include "server/rpc/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/default_socket.h"
#include "server/rpc/socket_folder.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(AddressTest, ParsesAndFormatsAddresses) {
  EXPECT_EQ(parse_address("unix:/run/a.sock")->path, "/run/a.sock");
  EXPECT_EQ(parse_address("127.0.0.1:7070")->to_string(), "127.0.0.1:7070");
  EXPECT_EQ(parse_address("[::1]:80")->host, "::1");
  EXPECT_EQ(parse_address("[::1]:80")->to_string(), "[::1]:80");
  for (const char* wrong : {"", "unix:", "host", ":80", "host:", "host:x", "host:70000", "[::1:80"}) {
    EXPECT_FALSE(parse_address(wrong).ok()) << wrong;
  }
}

TEST(AddressTest, DetectsLocalAddresses) {
  EXPECT_TRUE(parse_address("127.0.0.1:1")->is_local());
  EXPECT_TRUE(parse_address("unix:/x")->is_local());
  EXPECT_FALSE(parse_address("0.0.0.0:1")->is_local());
  EXPECT_FALSE(parse_address("127.0.0.1.example.org:1")->is_local());
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

TEST_F(ClaimTest, CreatesFolderForOwnerOnly) {
  ASSERT_TRUE(claim(socket_).ok());
  struct stat info {};
  stat((folder_ / "deep").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(ClaimTest, ReportsSocketInUse) {
  ASSERT_TRUE(claim(socket_).ok());
  listen_on_socket();
  EXPECT_THAT(std::string(claim(socket_).message()), HasSubstr("another engine is listening on it"));
}

TEST_F(ClaimTest, RemovesStaleSocket) {
  ASSERT_TRUE(claim(socket_).ok());
  listen_on_socket();
  close(fd_);
  fd_ = -1;
  EXPECT_TRUE(claim(socket_).ok());
  EXPECT_FALSE(fs::exists(socket_.path));
}

TEST_F(ClaimTest, KeepsRegularFile) {
  ASSERT_TRUE(claim(socket_).ok());
  std::ofstream(socket_.path) << "mine";
  EXPECT_FALSE(claim(socket_).ok());
  EXPECT_TRUE(fs::exists(socket_.path));
}

TEST_F(ClaimTest, RejectsFolderWritableByOthers) {
  const fs::path shared = folder_ / "shared";
  fs::create_directory(shared);
  for (const fs::path& below : {shared, shared / "teletensor"}) {
    socket_.path = (below / "engine.sock").native();
    chmod(shared.c_str(), 0777);
    EXPECT_THAT(std::string(claim(socket_).message()), HasSubstr("is writable by other users")) << below;
    chmod(shared.c_str(), 0770);
    EXPECT_THAT(std::string(claim(socket_).message()), HasSubstr("is writable by other users")) << below;
    chmod(shared.c_str(), 01777);  // like /tmp: the sticky bit protects existing files
    EXPECT_TRUE(claim(socket_).ok()) << below;
  }
}

TEST_F(ClaimTest, RejectsFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "requires root to change a folder's owner";
  // In a folder like /tmp an attacker has created the folder first.
  chmod(folder_.c_str(), 01777);
  const fs::path attackers = folder_ / "teletensor-0";
  fs::create_directories(attackers / "deep");
  ASSERT_EQ(chown(attackers.c_str(), 65534, 65534), 0);
  for (const fs::path& below : {attackers, attackers / "deep"}) {
    socket_.path = (below / "engine.sock").native();
    EXPECT_THAT(std::string(claim(socket_).message()), HasSubstr("belongs to")) << below;
  }
}

TEST_F(ClaimTest, FollowsAndChecksSymbolicLinks) {
  fs::create_directories(folder_ / "mine");
  fs::create_directory_symlink("mine", folder_ / "link");
  socket_.path = (folder_ / "link" / "engine.sock").native();
  EXPECT_TRUE(claim(socket_).ok());
  chmod((folder_ / "mine").c_str(), 0777);
  EXPECT_THAT(std::string(claim(socket_).message()), HasSubstr("is writable by other users"));
  chmod((folder_ / "mine").c_str(), 0700);
  fs::create_directory_symlink("loop", folder_ / "loop");
  EXPECT_FALSE(check_private_path(folder_ / "loop").ok());
  if (geteuid() != 0) GTEST_SKIP() << "requires root to change a link's owner";
  ASSERT_EQ(lchown((folder_ / "link").c_str(), 65534, 65534), 0);
  EXPECT_THAT(std::string(claim(socket_).message()), HasSubstr("belongs to"));
}

// Sets environment variables, and restores them.
class Variables {
 public:
  void set(const char* name, const char* value) {
    const char* old = std::getenv(name);
    before_.emplace_back(name, old ? std::optional<std::string>(old) : std::nullopt);
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variables() {
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
      it->second ? setenv(it->first, it->second->c_str(), 1) : unsetenv(it->first);
    }
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST(DefaultSocketTest, IsInFolderOfUser) {
  Variables variables;
  variables.set("XDG_RUNTIME_DIR", "/run/user/7");
  EXPECT_EQ(default_socket(), "/run/user/7/teletensor/engine.sock");
  variables.set("XDG_RUNTIME_DIR", nullptr);
  variables.set("XDG_STATE_HOME", nullptr);
  variables.set("HOME", "/home/me");
  EXPECT_THAT(default_socket(), StartsWith("/home/me/.local/state/teletensor/run-"));
  variables.set("XDG_STATE_HOME", "/state");
  EXPECT_THAT(default_socket(), StartsWith("/state/teletensor/run-"));
  variables.set("XDG_STATE_HOME", std::string(100, 'x').insert(0, "/").c_str());
  EXPECT_EQ(default_socket(), "/tmp/teletensor-" + std::to_string(getuid()) + "/engine.sock");
  variables.set("XDG_STATE_HOME", nullptr);
  variables.set("HOME", nullptr);
  EXPECT_THAT(default_socket(), HasSubstr("/.local/state/teletensor/run-"));
}

TEST_F(ClaimTest, ReportsPortInUse) {
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
  // All addresses of the name are checked, also if the name has an IPv6 address before this one.
  Address by_name{"", "localhost", port.port};
  EXPECT_THAT(std::string(claim(by_name).message()), HasSubstr("the port is in use"));
  close(fd_);
  fd_ = -1;
  EXPECT_TRUE(claim(port).ok());
}

TEST_F(ClaimTest, ReportsAddressOfAnotherHost) {
  const Address elsewhere{"", "192.0.2.1", "0"};  // reserved for documentation
  EXPECT_THAT(std::string(claim(elsewhere).message()), HasSubstr("Cannot assign requested address"));
}

}  // namespace
}  // namespace tt::server
