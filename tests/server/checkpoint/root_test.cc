// CheckpointRoot: no path leaves the root; replacement is atomic; only checkpoints are removed.
#include "server/checkpoint/root.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "base/file_descriptor.h"
#include "server/checkpoint/replacement_file.h"
#include "tests/server/checkpoint/files.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_file;

class CheckpointRootTest : public ::testing::Test {
 protected:
  CheckpointRootTest() {
    fs::create_directory(outside_ / "root");
    write_file(outside_ / "secret.json", "secret");
  }
  fs::path path(const std::string& name) const { return outside_ / "root" / name; }
  void replace(const std::string& name, const std::string& contents) const {
    ReplacementFile file(root_.find(name, true));
    file.append(contents.data(), contents.size());
    file.commit();
  }

  TemporaryFolder outside_;
  CheckpointRoot root_{outside_.string() + "/root"};
};

TEST_F(CheckpointRootTest, RefusesPathsThatLeaveIt) {
  for (const std::string& bad : {"../secret.json", "a/../../secret.json", "..", "a/.."}) {
    EXPECT_THAT(error_of([&] { root_.open_file(bad); }), HasSubstr("without '..'")) << bad;
    EXPECT_THAT(error_of([&] { root_.find(bad, true); }), HasSubstr("without '..'")) << bad;
    EXPECT_THAT(error_of([&] { root_.list(bad); }), HasSubstr("without '..'")) << bad;
    EXPECT_THAT(error_of([&] { root_.remove(bad); }), HasSubstr("without '..'")) << bad;
  }
  EXPECT_THAT(error_of([&] { root_.open_file((outside_ / "secret.json").string()); }),
              HasSubstr("below the checkpoint root"));
  EXPECT_THAT(error_of([&] { root_.open_file(outside_.string() + "/rootless"); }),
              HasSubstr("below the checkpoint root"));
  EXPECT_THAT(error_of([&] { root_.open_file(""); }), HasSubstr("expected a path"));
  EXPECT_THAT(error_of([&] { root_.open_file(std::string("a\0b", 3)); }), HasSubstr("without zero bytes"));
  EXPECT_THAT(error_of([&] { root_.open_file(std::string(5000, 'a')); }), HasSubstr("expected a path"));
  EXPECT_THAT(error_of([&] { root_.find("/", true); }), HasSubstr("below the"));
}

TEST_F(CheckpointRootTest, AcceptsAbsolutePathsBelowIt) {
  replace("a/b.json", "text");
  EXPECT_TRUE(root_.open_file(path("a/b.json").string()));
  EXPECT_TRUE(root_.open_file("./a//b.json"));
  EXPECT_EQ(root_.list(path("").string()).size(), 1u);
}

TEST_F(CheckpointRootTest, DoesNotFollowSymbolicLinks) {
  fs::create_symlink(outside_ / "secret.json", path("file.json"));
  fs::create_directory_symlink(outside_.string(), path("folder"));
  EXPECT_THAT(error_of([&] { root_.open_file("file.json"); }), HasSubstr("symbolic link"));
  EXPECT_THAT(error_of([&] { root_.open_file("folder/secret.json"); }), HasSubstr("symbolic link"));
  EXPECT_THAT(error_of([&] { root_.list("folder"); }), HasSubstr("symbolic link"));
  EXPECT_THAT(error_of([&] { replace("folder/new.json", "x"); }), HasSubstr("symbolic link"));
  EXPECT_FALSE(fs::exists(outside_ / "new.json"));
  replace("file.json", "new");  // replaces the link, not the file to which it leads
  EXPECT_EQ(read_file(outside_ / "secret.json"), "secret");
  EXPECT_EQ(root_.remove("folder"), 1);  // removes the link
  EXPECT_TRUE(fs::exists(outside_ / "secret.json"));
}

TEST_F(CheckpointRootTest, ReadsOnlyRegularFiles) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { root_.open_file("fifo"); }), HasSubstr("neither a file nor a folder"));
  fs::create_directory(path("folder"));
  EXPECT_THAT(error_of([&] { root_.open_file("folder"); }), HasSubstr("Is a directory"));
  EXPECT_THAT(error_of([&] { root_.open_file("missing"); }), HasSubstr("No such file or directory"));
}

ErrorKind kind_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "expected an error";
  return ErrorKind::kRuntime;
}

TEST_F(CheckpointRootTest, ErrorsOfPathsHaveTheirKinds) {
  fs::create_directory(path("folder.json"));
  write_file(path("file.json"), "x");
  EXPECT_EQ(kind_of([&] { root_.open_file("none.json"); }), ErrorKind::kFileNotFound);
  EXPECT_EQ(kind_of([&] { root_.open_file("none/x.json"); }), ErrorKind::kFileNotFound);
  EXPECT_EQ(kind_of([&] { root_.list("none"); }), ErrorKind::kFileNotFound);
  EXPECT_EQ(kind_of([&] { root_.rename("none.json", "x.json"); }), ErrorKind::kFileNotFound);
  EXPECT_EQ(kind_of([&] { root_.open_file("folder.json"); }), ErrorKind::kIsADirectory);
  EXPECT_EQ(kind_of([&] { replace("folder.json", "x"); }), ErrorKind::kIsADirectory);
  EXPECT_EQ(kind_of([&] { root_.list("file.json"); }), ErrorKind::kNotADirectory);
  EXPECT_EQ(kind_of([&] { replace("file.json/x.json", "x"); }), ErrorKind::kNotADirectory);
  EXPECT_EQ(kind_of([&] { root_.open_file("../x.json"); }), ErrorKind::kValue);

  fs::permissions(outside_.string(), fs::perms::all);
  fs::permissions(path("file.json"), fs::perms::none);
  const int user = setfsuid(65534);  // the superuser may open every file; another user may not
  EXPECT_EQ(kind_of([&] { root_.open_file("file.json"); }), ErrorKind::kPermission);
  if (geteuid() == 0) {
    EXPECT_EQ(kind_of([&] { replace("x.json", "x"); }), ErrorKind::kPermission);
  }
  setfsuid(static_cast<uid_t>(user));
}

TEST_F(CheckpointRootTest, PrincipalsHaveSubfolders) {
  const CheckpointRoot alice(path("").string(), "alice"), bob(path("").string(), "bob");
  {
    ReplacementFile file(alice.find("x.json", true));
    file.append("a", 1);
    file.commit();
  }
  EXPECT_EQ(read_file(path("alice/x.json")), "a");
  EXPECT_TRUE(alice.open_file(path("alice/x.json").string()));
  EXPECT_THAT(error_of([&] { bob.open_file("x.json"); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of([&] { bob.open_file(path("alice/x.json").string()); }), HasSubstr("below the checkpoint root"));
  EXPECT_THAT(error_of([&] { bob.open_file("../alice/x.json"); }), HasSubstr("without '..'"));
}

TEST_F(CheckpointRootTest, KeepsTheOldFileUntilCommit) {
  replace("a.json", "old");
  {
    ReplacementFile file(root_.find("a.json", true));
    file.append("new", 3);
    EXPECT_EQ(read_file(path("a.json")), "old");
    EXPECT_EQ(root_.list(".").size(), 1u);  // the unfinished file is hidden
  }
  EXPECT_EQ(read_file(path("a.json")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(path("")), fs::directory_iterator()), 1);
}

TEST_F(CheckpointRootTest, RemovesFilesOfDeadWriters) {
  const std::string dead = new_temporary_name(), alive = new_temporary_name();
  write_file(path(dead), "x");
  write_file(path(alive), "x");
  const FileDescriptor lock(open(path(alive).c_str(), O_WRONLY));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  replace("a.json", "1");
  EXPECT_TRUE(fs::exists(path(dead)));  // it may be that of a writer that has just created it
  for (const std::string& name : {dead, alive}) {
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  replace("a.json", "1");
  EXPECT_FALSE(fs::exists(path(dead)));
  EXPECT_TRUE(fs::exists(path(alive)));
  EXPECT_THAT(error_of([&] { root_.open_file(dead); }), HasSubstr("reserved"));
}

TEST_F(CheckpointRootTest, RenamesFolders) {
  replace("old/a.safetensors", "1");
  replace("old/index.json", "1");
  replace("new/index.json", "2");
  root_.rename("new", "old");
  EXPECT_EQ(read_file(path("old/index.json")), "2");
  EXPECT_FALSE(fs::exists(path("old/a.safetensors")));
  EXPECT_FALSE(fs::exists(path("new")));
  root_.rename("old", "other/place");
  EXPECT_EQ(read_file(path("other/place/index.json")), "2");
}

TEST_F(CheckpointRootTest, DoesNotReplaceAFolderWithOtherFiles) {
  replace("new/index.json", "2");
  fs::create_directory(path("home"));
  write_file(path("home/thesis.txt"), "text");
  EXPECT_THAT(error_of([&] { root_.rename("new", "home"); }), HasSubstr("thesis.txt"));
  EXPECT_THAT(error_of([&] { root_.remove("home"); }), HasSubstr("thesis.txt"));
  EXPECT_EQ(read_file(path("home/thesis.txt")), "text");
  fs::remove(path("home/thesis.txt"));
  fs::create_directory(path("home/nested"));
  EXPECT_THAT(error_of([&] { root_.rename("new", "home"); }), HasSubstr("nested"));
  fs::remove(path("home/nested"));
  fs::create_symlink(outside_ / "secret.json", path("home/link.json"));
  EXPECT_THAT(error_of([&] { root_.remove("home"); }), HasSubstr("link.json"));
  EXPECT_TRUE(fs::exists(path("home/link.json")));
}

TEST_F(CheckpointRootTest, RemovesCheckpoints) {
  replace("a/x.safetensors", "1");
  replace("a/y.json", "1");
  EXPECT_EQ(root_.remove("a"), 3);
  EXPECT_EQ(root_.remove("a"), 0);
  EXPECT_EQ(root_.remove("no/such/folder"), 0);
  EXPECT_FALSE(fs::exists(path("a")));
}

TEST_F(CheckpointRootTest, UnrestrictedRootFollowsLinks) {
  fs::create_symlink(outside_ / "secret.json", path("file.json"));
  EXPECT_TRUE(CheckpointRoot::unrestricted()->open_file(path("file.json").string()));
  EXPECT_THAT(error_of([&] { CheckpointRoot::unrestricted()->open_file("/tmp/../etc/passwd"); }),
              HasSubstr("without '..'"));
}

TEST_F(CheckpointRootTest, LimitsTheFilesOfAPrincipal) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.checkpoint_bytes = 100});
  const CheckpointRoot root(outside_.string() + "/root", "alice", quota);
  fs::create_directories(path("alice/a/b"));
  write_file(path("alice/a/b/c.json"), std::string(40, 'x'));
  write_file(path("alice/.checkpoint-0000000000000000.tmp"), std::string(900, 'x'));  // its writer has reserved room
  fs::create_symlink(outside_.string(), path("alice/link"));
  const std::string refusal = "the checkpoints of alice take 40 B of their limit of 100 B";
  EXPECT_THAT(error_of([&] { static_cast<void>(root.reserve("new.json", 61)); }), HasSubstr(refusal));
  {
    const CheckpointRoot::Room room = root.reserve("new.json", 50);
    EXPECT_THAT(error_of([&] { static_cast<void>(root.reserve("other.json", 11)); }), HasSubstr("take 90 B"));
    EXPECT_NO_THROW(static_cast<void>(root.reserve("a/b/c.json", 50)));  // replaces 40 of them
  }
  EXPECT_NO_THROW(static_cast<void>(root.reserve("new.json", 60)));
  EXPECT_NO_THROW(static_cast<void>(root_.reserve("alice/new.json", 1000)));  // without a quota
}

TEST_F(CheckpointRootTest, LimitsFilesAndFoldersOfAPrincipal) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.checkpoint_bytes = 100});
  const CheckpointRoot root(outside_.string() + "/root", "alice", quota);
  for (int i = 0; i < 999; ++i) fs::create_directories(path("alice/f" + std::to_string(i)));
  EXPECT_NO_THROW(root.find("last/new.json", true));
  const std::string refusal = "alice has 1000 files and folders, of at most 1000";
  EXPECT_THAT(error_of([&] { root.find("one/more.json", true); }), HasSubstr(refusal));
  EXPECT_THAT(error_of([&] { static_cast<void>(root.reserve("last/new.json", 0)); }), HasSubstr(refusal));
  EXPECT_NO_THROW(root.find("last/other.json", true)) << "exists already";
  root.remove("f0");
  EXPECT_NO_THROW(root.find("one/more.json", true));
}

TEST_F(CheckpointRootTest, ReservesNothingIfFilesCannotBeCounted) {
  const auto quota = std::make_shared<Quota>("alice", QuotaLimits{.checkpoint_bytes = 100});
  const CheckpointRoot root(outside_.string() + "/root", "alice", quota);
  std::string folder = "alice";
  for (int i = 0; i < 30; ++i) folder += "/f";
  fs::create_directories(path(folder));
  write_file(path(folder + "/a.json"), std::string(90, 'x'));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const FileDescriptor next(open("/dev/null", O_RDONLY));  // the lowest free descriptor
  const rlimit few{static_cast<rlim_t>(next.get()) + 16, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  const std::string error = error_of([&] { static_cast<void>(root.reserve("b.json", 50)); });
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(error, HasSubstr("Too many open files"));
  EXPECT_THAT(error_of([&] { static_cast<void>(root.reserve("b.json", 50)); }), HasSubstr("take 90 B"));
}

}  // namespace
}  // namespace tt::server
