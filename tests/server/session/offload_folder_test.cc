#include "server/session/offload_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "engine/schema/error.h"
#include "engine/session/context.h"
#include "server/session/session_offload.h"
#include "tests/server/engine_memory.h"

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

class OffloadFolderTest : public ::testing::Test {
 protected:
  OffloadFolderTest() {
    std::string name = (fs::temp_directory_path() / "offload_test_XXXXXX").native();
    base_ = mkdtemp(name.data());
  }
  ~OffloadFolderTest() override { fs::remove_all(base_); }
  std::shared_ptr<OffloadFolder> open(OffloadFolder::Limits limits = {}) {
    auto folder = OffloadFolder::open(base_, limits);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return *folder;
  }
  // The files of all processes' folders.
  std::vector<fs::path> files() {
    std::vector<fs::path> found;
    for (const auto& each : fs::recursive_directory_iterator(base_)) {
      if (each.is_regular_file()) found.push_back(each.path());
    }
    return found;
  }
  fs::path base_;
};

TEST_F(OffloadFolderTest, FilesKeepBytesForTheUserOnly) {
  const auto folder = open();
  auto file = folder->create("alice", 3000);
  const std::string first(1000, 'a'), second(2000, 'b');
  file->append(first.data(), first.size());
  file->append(second.data(), second.size());
  file->close();
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(fs::status(files()[0]).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(folder->path()).permissions(), fs::perms::owner_all);
  std::string got(1500, ' ');
  file->read(500, got.data(), got.size());
  EXPECT_EQ(got, std::string(500, 'a') + std::string(1000, 'b'));
  EXPECT_EQ(folder->bytes(), 3000u);
  file = nullptr;
  EXPECT_EQ(folder->bytes(), 0u);
  EXPECT_TRUE(files().empty());
}

TEST_F(OffloadFolderTest, LimitsHoldForAllAndForEachPrincipal) {
  const auto folder = open({.total = 1000, .per_principal = 600});
  EXPECT_EQ(folder->room("alice"), 600u);
  auto first = folder->create("alice", 500);
  EXPECT_EQ(folder->room("alice"), 100u);
  EXPECT_THAT(error_of([&] { folder->create("alice", 101); }), HasSubstr("has room for 100 B of alice"));
  auto second = folder->create("bob", 450);
  EXPECT_EQ(folder->room("bob"), 50u);
  EXPECT_THAT(error_of([&] { folder->create("carol", 51); }), HasSubstr("has room for 50 B of carol"));
  EXPECT_EQ(files().size(), 2u);
  first = nullptr;
  EXPECT_EQ(folder->room("carol"), 550u);
  const char byte = 0;
  second->append(std::string(450, 'x').data(), 450);
  EXPECT_THAT(error_of([&] { second->append(&byte, 1); }), HasSubstr("expected at most 0 more bytes"));
}

TEST_F(OffloadFolderTest, DamageIsAnError) {
  const auto folder = open();
  auto file = folder->create("", 1000);
  file->append(std::string(1000, 'x').data(), 1000);
  file->close();
  std::string got(1000, ' ');
  fs::resize_file(files()[0], 900);
  EXPECT_THAT(error_of([&] { file->read(0, got.data(), got.size()); }), HasSubstr("it ends early"));
  file->close();
  const fs::path path = files()[0];
  fs::remove(path);
  EXPECT_THAT(error_of([&] { file->read(0, got.data(), 10); }), HasSubstr("No such file"));
  // A link to another file is not followed.
  std::ofstream(base_ / "other") << "secret";
  fs::create_symlink(base_ / "other", path);
  EXPECT_THAT(error_of([&] { file->read(0, got.data(), 6); }), HasSubstr("cannot open"));
}

TEST_F(OffloadFolderTest, RemovesWhatAKilledProcessLeftAndNothingElse) {
  const auto alive = open();
  const auto kept = alive->create("", 100);
  const pid_t child = fork();
  if (child == 0) {
    auto folder = OffloadFolder::open(base_, {});
    auto file = (*folder)->create("", 100);
    file->append(std::string(100, 'x').data(), 100);
    _exit(0);  // without destructors, as if it were killed
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  fs::create_directory(base_ / "other");
  std::ofstream(base_ / "other" / "1.tensors") << "x";
  EXPECT_EQ(files().size(), 3u);
  const auto next = open();
  EXPECT_EQ(files().size(), 2u);
  EXPECT_TRUE(fs::exists(alive->path()));
  EXPECT_NE(next->path(), alive->path());
}

TEST_F(OffloadFolderTest, RemovesItselfAtTheEnd) {
  {
    const auto folder = open();
    const auto file = folder->create("", 10);
    folder->remove();
    EXPECT_TRUE(fs::is_empty(base_));
    EXPECT_EQ(folder->room(""), 0u);
    EXPECT_THAT(error_of([&] { folder->create("", 1); }), HasSubstr("has room for 0 B"));
  }
  { const auto folder = open(); }
  EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(OffloadFolderTest, RefusesAFolderThatOtherUsersCanAccess) {
  fs::permissions(base_, fs::perms::others_read, fs::perm_options::add);
  EXPECT_THAT(std::string(OffloadFolder::open(base_, {}).status().message()), HasSubstr("chmod 700"));
}

// Storages of a session on the CPU.
class SessionOffloadTest : public OffloadFolderTest {
 protected:
  SessionOffloadTest() {
    testing::start_engine();
    context_.account = account_;
  }
  Ref<Storage> storage(size_t bytes, char value) {
    auto made = make_ref<Storage>(Device{}, bytes);
    for (size_t i = 0; i < bytes; ++i) static_cast<char*>(made->data())[i] = static_cast<char>(value + i % 7);
    return made;
  }
  static bool has(const Storage& storage, char value) {
    for (size_t i = 0; i < storage.bytes(); ++i) {
      if (static_cast<const char*>(storage.data())[i] != static_cast<char>(value + i % 7)) return false;
    }
    return true;
  }
  const std::shared_ptr<Account> account_ = std::make_shared<Account>("session 3");
  Context context_;
  ContextScope scope_{&context_};
  const std::shared_ptr<OffloadPlace> place_ = std::make_shared<OffloadPlace>(open({.total = 5 << 20}));
  SessionOffload offload_{place_, "alice", account_};
};

TEST_F(SessionOffloadTest, LargestLeaveFirstAndAllReturn) {
  const Ref<Storage> small = storage(1 << 20, 1), large = storage(3 << 20, 2), middle = storage(2 << 20, 3);
  const uint64_t before = testing::engine_bytes(), held = account_->held();
  EXPECT_EQ(offload_.move_out({small, large, middle}, 4 << 20), 5u << 20);
  EXPECT_EQ(small->data() == nullptr, false);
  EXPECT_EQ(large->data(), nullptr);
  EXPECT_EQ(middle->data(), nullptr);
  EXPECT_EQ(testing::engine_bytes(), before - (5 << 20));
  EXPECT_EQ(account_->held(), held) << "the session stays charged";
  EXPECT_EQ(place_->bytes, 5u << 20);
  EXPECT_EQ(offload_.move_out({small}, 1 << 20), 0u) << "the folder is full";
  std::string read;
  offload_.read(*middle, [&](const char* data, size_t size) { read.append(data, size); });
  offload_.bring_back();
  EXPECT_TRUE(has(*large, 2) && has(*middle, 3) && has(*small, 1));
  EXPECT_EQ(std::string(static_cast<const char*>(middle->data()), middle->bytes()), read);
  EXPECT_EQ(testing::engine_bytes(), before);
  EXPECT_EQ(place_->bytes, 0u);
  EXPECT_TRUE(files().empty());
}

TEST_F(SessionOffloadTest, DamageReturnsNothingAndIsTriedAgain) {
  const Ref<Storage> first = storage(2 << 20, 1), second = storage(1 << 20, 2);
  EXPECT_EQ(offload_.move_out({first, second}, UINT64_MAX), 3u << 20);
  const uint64_t before = testing::engine_bytes();
  std::fstream file(files()[0], std::ios::in | std::ios::out | std::ios::binary);
  file.seekg((2 << 20) + 77);
  const char right = static_cast<char>(file.get());
  const auto write = [&](char value) {
    file.seekp((2 << 20) + 77);
    file.put(value).flush();
  };
  write(static_cast<char>(right ^ 1));
  EXPECT_THAT(error_of([&] { offload_.bring_back(); }), HasSubstr("a checksum differs"));
  EXPECT_THAT(error_of([&] { offload_.read(*second, [](const char*, size_t) {}); }), HasSubstr("a checksum differs"));
  EXPECT_EQ(first->data(), nullptr);
  EXPECT_EQ(second->data(), nullptr);
  EXPECT_EQ(testing::engine_bytes(), before);
  EXPECT_EQ(place_->failures, 1u);
  write(right);
  offload_.bring_back();
  EXPECT_TRUE(has(*first, 1) && has(*second, 2));
}

TEST_F(SessionOffloadTest, UnusedStoragesAreDropped) {
  Ref<Storage> kept = storage(1 << 20, 1), dropped = storage(2 << 20, 2);
  EXPECT_EQ(offload_.move_out({kept, dropped}, UINT64_MAX), 3u << 20);
  EXPECT_EQ(account_->held(), 3u << 20);
  dropped = nullptr;
  offload_.bring_back();
  EXPECT_EQ(account_->held(), 1u << 20);
  EXPECT_TRUE(has(*kept, 1));
  EXPECT_EQ(offload_.move_out({kept}, UINT64_MAX), 1u << 20);
  offload_.clear();
  kept = nullptr;
  EXPECT_EQ(account_->held(), 0u);
  EXPECT_TRUE(files().empty());
}

TEST_F(SessionOffloadTest, WithoutAFolderTensorsOfTheHostStay) {
  const SessionOffload host(std::make_shared<OffloadPlace>(nullptr), "alice", account_);
  EXPECT_FALSE(host.accepts(Device{}));
  EXPECT_TRUE(host.accepts({DeviceType::kCUDA, 1}));
}

}  // namespace
}  // namespace tt::server
