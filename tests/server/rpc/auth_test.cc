// Auth: the token and its file.
#include "server/rpc/auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AuthTest : public ::testing::Test {
 protected:
  AuthTest() {
    std::string pattern = (fs::temp_directory_path() / "auth-test-XXXXXX").native();
    folder_ = mkdtemp(pattern.data());
  }
  ~AuthTest() override { fs::remove_all(folder_); }

  static mode_t mode(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  }
  fs::path folder_;
};

TEST_F(AuthTest, CreatesTokensReadableByOwnerOnly) {
  fs::path user = folder_ / "config" / "token", admin = folder_ / "config" / "admin-token";
  ASSERT_TRUE(Auth::from_files(user, admin).ok());
  EXPECT_EQ(mode(user), 0600u);
  EXPECT_EQ(mode(admin), 0600u);
  EXPECT_EQ(mode(user.parent_path()), 0700u);
  EXPECT_EQ(std::distance(fs::directory_iterator(user.parent_path()), fs::directory_iterator()), 2);
}

std::string word_of(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

TEST_F(AuthTest, KeepsExistingTokens) {
  fs::path user = folder_ / "token", admin = folder_ / "admin-token";
  ASSERT_TRUE(Auth::from_files(user, admin).ok());
  auto auth = Auth::from_files(user, admin);
  ASSERT_TRUE(auth.ok());
  EXPECT_TRUE(auth->check({"Bearer " + word_of(user)}).ok());
  EXPECT_TRUE(auth->check({"Bearer " + word_of(admin)}, Role::kOperator).ok());
}

TEST_F(AuthTest, RejectsOtherTokens) {
  Auth auth = Auth::with_tokens("0123456789abcdef", "fedcba9876543210");
  EXPECT_TRUE(auth.check({"Bearer 0123456789abcdef"}).ok());
  for (const char* wrong : {"", "Bearer ", "Bearer 0123456789abcdee", "Bearer 0123456789abcdef0", "0123456789abcdef"}) {
    EXPECT_EQ(auth.check({wrong}).code(), absl::StatusCode::kUnauthenticated) << wrong;
    EXPECT_EQ(auth.check({wrong}, Role::kOperator).code(), absl::StatusCode::kUnauthenticated) << wrong;
  }
}

TEST_F(AuthTest, AdminTokenGrantsAllAndUserTokenDoesNot) {
  Auth auth = Auth::with_tokens("0123456789abcdef", "fedcba9876543210");
  EXPECT_TRUE(auth.check({"Bearer fedcba9876543210"}).ok());
  EXPECT_TRUE(auth.check({"Bearer fedcba9876543210"}, Role::kOperator).ok());
  EXPECT_EQ(auth.check({"Bearer 0123456789abcdef"}, Role::kOperator).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(AuthTest, RejectsTokenFilesReadableByOthers) {
  for (const char* name : {"token", "admin-token"}) {
    std::ofstream(folder_ / name) << "0123456789abcdef0123456789abcdef\n";
    chmod((folder_ / name).c_str(), 0644);
    auto auth = Auth::from_files(folder_ / "token", folder_ / "admin-token");
    EXPECT_THAT(std::string(auth.status().message()), HasSubstr("chmod 600"));
    fs::remove(folder_ / name);
  }
}

TEST_F(AuthTest, RejectsTokenFilesThatAreNotRegular) {
  fs::create_directory(folder_ / "token");
  const std::string message = "the token file " + (folder_ / "token").native() + " is not a regular file";
  EXPECT_EQ(Auth::from_files(folder_ / "token", folder_ / "admin-token").status().message(), message);
  fs::remove(folder_ / "token");
  ASSERT_EQ(mkfifo((folder_ / "token").c_str(), 0600), 0);
  EXPECT_EQ(Auth::from_files(folder_ / "token", folder_ / "admin-token").status().message(), message);
}

TEST_F(AuthTest, RejectsSameTokenForBothRoles) {
  for (const char* name : {"token", "admin-token"}) {
    std::ofstream(folder_ / name) << "0123456789abcdef0123456789abcdef\n";
    chmod((folder_ / name).c_str(), 0600);
  }
  auto auth = Auth::from_files(folder_ / "token", folder_ / "admin-token");
  EXPECT_THAT(std::string(auth.status().message()), HasSubstr("the same token"));
}

TEST_F(AuthTest, RejectsEmptyToken) {
  fs::path file = folder_ / "token";
  std::ofstream(file) << "\n";
  chmod(file.c_str(), 0600);
  EXPECT_FALSE(Auth::from_files(file, folder_ / "admin-token").ok());
}

TEST_F(AuthTest, WithoutAuthNoTokenIsRequired) {
  EXPECT_TRUE(Auth::disabled().check({""}).ok());
  EXPECT_TRUE(Auth::disabled().check({""}, Role::kOperator).ok());
}

}  // namespace
}  // namespace tt::server
