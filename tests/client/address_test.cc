#include "client/connection/address.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/user_folder.h"
#include "client/connection/trust.h"
#include "engine/schema/error.h"

namespace tt::client {
namespace {

TEST(Address, ParsesHostsAndSockets) {
  EXPECT_EQ(parse_address("gpu-box:7070").target, "dns:///gpu-box:7070");
  EXPECT_EQ(parse_address("gpu-box").target, "dns:///gpu-box:7070");
  EXPECT_EQ(parse_address("[::1]:80").target, "dns:///[::1]:80");
  EXPECT_EQ(parse_address("[::1]").target, "dns:///[::1]:7070");
  EXPECT_EQ(parse_address("unix:/run/engine.sock").target, "unix:/run/engine.sock");
  EXPECT_EQ(parse_address("gpu-box:7070").text, "gpu-box:7070");
  EXPECT_FALSE(parse_address("teletensor://gpu-box").tls);
  const Address encrypted = parse_address("teletensors://[::1]:80/");
  EXPECT_TRUE(encrypted.tls);
  EXPECT_EQ(encrypted.target, "dns:///[::1]:80");
  EXPECT_EQ(encrypted.host, "::1");
  EXPECT_EQ(encrypted.port, 80);
}

TEST(Address, RejectsOtherAddresses) {
  for (const char* text : {"", ":7070", "box:", "box:port", "box:0", "box:70000", "unix:", "http://box:80", "a b:1",
                           "b\303\266x:1", "box\n:1", "bo\001x", "teletensors://box\t:1", "\n"}) {
    EXPECT_THROW(parse_address(text), Error) << text;
  }
  EXPECT_THROW(parse_address(std::string_view("unix:/run/a\0b", 13)), Error);
}

TEST(Address, IgnoresWhitespaceAtTheEnds) {
  EXPECT_EQ(parse_address(" gpu-box:7070\r\n").text, "gpu-box:7070");
  EXPECT_EQ(parse_address("gpu-box\n").host, "gpu-box");
  EXPECT_EQ(parse_address("unix:/run/engine.sock\n").socket, "/run/engine.sock");
}

TEST(Token, UsesFirstSource) {
  std::string file = testing::TempDir() + "/token";
  std::ofstream(file) << "from-file\n";
  setenv("TELETENSOR_TOKEN_FILE", file.c_str(), 1);
  unsetenv("TELETENSOR_TOKEN");
  EXPECT_EQ(find_token(""), "from-file");
  setenv("TELETENSOR_TOKEN", "from-environment", 1);
  EXPECT_EQ(find_token(""), "from-environment");
  EXPECT_EQ(find_token("given"), "given");
  unsetenv("TELETENSOR_TOKEN");
  std::filesystem::remove(file);
  EXPECT_EQ(find_token(""), "");
  unsetenv("TELETENSOR_TOKEN_FILE");
  setenv("XDG_CONFIG_HOME", "/config", 1);
  EXPECT_EQ(token_file(), "/config/teletensor/token");
  unsetenv("XDG_CONFIG_HOME");
}

TEST(UserFolder, IsAbsoluteOrNone) {
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  unsetenv("XDG_CONFIG_HOME");
  unsetenv("HOME");
  const passwd* const user = getpwuid(getuid());
  const std::string of_user = user == nullptr ? "" : user->pw_dir;
  EXPECT_EQ(user_folder(UserFolder::kConfig), of_user.empty() ? "" : of_user + "/.config");
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(user_folder(UserFolder::kState), "/home/me/.local/state");
  setenv("XDG_CONFIG_HOME", "relative", 1);
  EXPECT_EQ(user_folder(UserFolder::kConfig), "");
  EXPECT_EQ(token_file(), "");
  EXPECT_EQ(known_engines_file(), "");
  unsetenv("XDG_CONFIG_HOME");
  setenv("HOME", ".", 1);
  EXPECT_EQ(user_folder(UserFolder::kCache), "");
  EXPECT_EQ(token_file(), "");
  setenv("HOME", home.c_str(), 1);
}

// A tunnel to another host's engine has an address of this host.
TEST(Trust, RefusesPlainTcpIfAFingerprintIsKnown) {
  const std::string file = testing::TempDir() + "/known_engines";
  setenv("TELETENSOR_KNOWN_ENGINES", file.c_str(), 1);
  std::ofstream(file) << "localhost:7071 sha256:" << std::string(64, '0') << "\n";
  const auto is_refused = [](const char* text) {
    Address address = parse_address(text);
    try {
      choose_trust({}, &address);
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(is_refused("localhost:7071"));
  EXPECT_FALSE(is_refused("localhost:7072"));
  setenv("TELETENSOR_TLS_CA", "ca.pem", 1);
  EXPECT_FALSE(is_refused("localhost:7072"));
  EXPECT_TRUE(is_refused("gpu-box:7072"));
  unsetenv("TELETENSOR_TLS_CA");
  setenv("TELETENSOR_TLS_FINGERPRINT", ("sha256:" + std::string(64, '0')).c_str(), 1);
  for (const char* text : {"localhost:7072", "127.0.0.1:7072", "[::1]:7072"}) EXPECT_TRUE(is_refused(text)) << text;
  EXPECT_FALSE(is_refused("unix:/run/engine.sock"));
  unsetenv("TELETENSOR_TLS_FINGERPRINT");
  unsetenv("TELETENSOR_KNOWN_ENGINES");
}

// gRPC ends the process if such a character is in the metadata of a call.
TEST(Token, ContainsPrintableAsciiOnly) {
  const std::string file = testing::TempDir() + "/odd-token";
  setenv("TELETENSOR_TOKEN_FILE", file.c_str(), 1);
  const Address local = parse_address("unix:/run/engine.sock");
  for (const char* ends : {"", "\n", "\r\n", " ", "\t"}) {
    const std::string text = absl::StrCat(ends, "a-token", ends);
    EXPECT_EQ(find_token(text), "a-token");
    EXPECT_EQ(find_admin_token(text, local), "a-token");
    setenv("TELETENSOR_TOKEN", text.c_str(), 1);
    setenv("TELETENSOR_ADMIN_TOKEN", text.c_str(), 1);
    EXPECT_EQ(find_token(ends), "a-token");
    EXPECT_EQ(find_admin_token(ends, local), "a-token");
    unsetenv("TELETENSOR_TOKEN");
    unsetenv("TELETENSOR_ADMIN_TOKEN");
    std::ofstream(file) << text;
    EXPECT_EQ(find_token(""), "a-token");
  }
  for (const char* inside : {"\n", "\r", "\001", "\177", "\303\251"}) {
    const std::string text = absl::StrCat("a", inside, "token");
    EXPECT_THROW(find_token(text), Error) << inside;
    EXPECT_THROW(find_admin_token(text, local), Error) << inside;
    setenv("TELETENSOR_TOKEN", text.c_str(), 1);
    setenv("TELETENSOR_ADMIN_TOKEN", text.c_str(), 1);
    EXPECT_THROW(find_token(""), Error) << inside;
    EXPECT_THROW(find_admin_token("", local), Error) << inside;
    unsetenv("TELETENSOR_TOKEN");
    unsetenv("TELETENSOR_ADMIN_TOKEN");
  }
  for (const char* text : {"a\001token", "\303\251"}) {
    std::ofstream(file) << text;
    EXPECT_THROW(find_token(""), Error) << text;
  }
  unsetenv("TELETENSOR_TOKEN_FILE");
  std::filesystem::remove(file);
}

TEST(AdminToken, IsReadNextToTokenForLocalHostOnly) {
  const std::string folder = testing::TempDir() + "/admin-token-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/token") << "user\n";
  std::ofstream(folder + "/admin-token") << "beside\n";
  std::ofstream(folder + "/other") << "other\n";
  setenv("TELETENSOR_TOKEN_FILE", (folder + "/token").c_str(), 1);
  for (const char* local : {"unix:/run/engine.sock", "127.0.0.1:7070", "localhost", "[::1]:7070"}) {
    EXPECT_EQ(find_admin_token("", parse_address(local)), "beside") << local;
  }
  const Address remote = parse_address("gpu-box:7070");
  EXPECT_EQ(find_admin_token("", remote), "");
  EXPECT_EQ(find_admin_token("", parse_address("127.0.0.1.example.org")), "");
  setenv("TELETENSOR_ADMIN_TOKEN_FILE", (folder + "/other").c_str(), 1);
  EXPECT_EQ(find_admin_token("", remote), "other");
  setenv("TELETENSOR_ADMIN_TOKEN", "from-environment", 1);
  EXPECT_EQ(find_admin_token("", remote), "from-environment");
  EXPECT_EQ(find_admin_token("given", remote), "given");
  for (const char* name : {"TELETENSOR_TOKEN_FILE", "TELETENSOR_ADMIN_TOKEN_FILE", "TELETENSOR_ADMIN_TOKEN"}) {
    unsetenv(name);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tt::client
