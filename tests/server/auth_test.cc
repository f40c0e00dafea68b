// Auth: the token and its file.
#include "server/auth.h"

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

TEST_F(AuthTest, MakesATokenThatOnlyItsOwnerReads) {
  fs::path file = folder_ / "config" / "token";
  ASSERT_TRUE(Auth::from_file(file).ok());
  EXPECT_EQ(mode(file), 0600u);
  EXPECT_EQ(mode(file.parent_path()), 0700u);
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator()), 1);
}

TEST_F(AuthTest, KeepsTheTokenThatIsThere) {
  fs::path file = folder_ / "token";
  ASSERT_TRUE(Auth::from_file(file).ok());
  std::string token;
  std::ifstream(file) >> token;
  auto auth = Auth::from_file(file);
  ASSERT_TRUE(auth.ok());
  EXPECT_TRUE(auth->check("Bearer " + token).ok());
}

TEST_F(AuthTest, RefusesWhatIsNotTheToken) {
  Auth auth = Auth::with_token("0123456789abcdef");
  EXPECT_TRUE(auth.check("Bearer 0123456789abcdef").ok());
  for (const char* wrong : {"", "Bearer ", "Bearer 0123456789abcdee", "Bearer 0123456789abcdef0", "0123456789abcdef"}) {
    EXPECT_EQ(auth.check(wrong).code(), absl::StatusCode::kUnauthenticated) << wrong;
  }
}

TEST_F(AuthTest, RefusesAFileThatIsOpenToOthers) {
  fs::path file = folder_ / "token";
  std::ofstream(file) << "0123456789abcdef0123456789abcdef\n";
  chmod(file.c_str(), 0644);
  EXPECT_THAT(std::string(Auth::from_file(file).status().message()), HasSubstr("chmod 600"));
}

TEST_F(AuthTest, RefusesATokenThatIsNone) {
  fs::path file = folder_ / "token";
  std::ofstream(file) << "\n";
  chmod(file.c_str(), 0600);
  EXPECT_FALSE(Auth::from_file(file).ok());
}

TEST_F(AuthTest, NobodyNeedsNoToken) { EXPECT_TRUE(Auth::nobody().check("").ok()); }

}  // namespace
}  // namespace tt::server
