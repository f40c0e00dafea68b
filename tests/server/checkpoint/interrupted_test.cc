// A save that is killed, or whose disk is full, at each of its system calls: the previous checkpoint or the new one is
// whole, and the next save succeeds.
//
// The functions of the C library that change files are replaced by functions that count their calls, and kill the
// process or fail at one of them.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/checkpoint/chunked_file.h"
#include "server/checkpoint/replacement_file.h"
#include "server/checkpoint/tensor_file.h"
#include "tests/server/checkpoint/files.h"
#include "tests/server/engine_memory.h"

namespace {

enum class Interruption : uint8_t { kNone, kKill, kFullDisk };

Interruption interruption = Interruption::kNone;
std::atomic<int> call_number = 0;  // of the next call
int interrupted_at = 0;            // call
std::string call_names;            // of all calls so far, one letter each

// Counts a call. Returns true if it must fail.
bool fails(char name, bool needs_space) {
  if (interruption == Interruption::kNone) return false;
  call_names.push_back(name);
  const bool is_reached = call_number++ >= interrupted_at;
  if (is_reached && interruption == Interruption::kKill) {
    kill(getpid(), SIGKILL);
    pause();
  }
  if (!is_reached || !needs_space) return false;
  errno = ENOSPC;
  return true;
}

template <typename... Args>
long call_system(bool failed, long number, Args... args) {
  return failed ? -1 : syscall(number, args...);
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t size) {
  return call_system(fails('w', true), SYS_write, file, data, size);
}
ssize_t pwrite(int file, const void* data, size_t size, off_t offset) {
  return call_system(fails('p', true), SYS_pwrite64, file, data, size, offset);
}
int fallocate(int file, int mode, off_t offset, off_t size) {
  return static_cast<int>(call_system(fails('a', true), SYS_fallocate, file, mode, offset, size));
}
int fsync(int) { return fails('s', true) ? -1 : 0; }  // the disk is not what is tested
int mkdirat(int folder, const char* name, mode_t mode) {
  return static_cast<int>(call_system(fails('m', true), SYS_mkdirat, folder, name, mode));
}
int unlinkat(int folder, const char* name, int flags) {
  return static_cast<int>(call_system(fails('u', false), SYS_unlinkat, folder, name, flags));
}
int renameat(int folder, const char* name, int to, const char* new_name) {
  return static_cast<int>(call_system(fails('r', true), SYS_renameat, folder, name, to, new_name));
}
int renameat2(int folder, const char* name, int to, const char* new_name, unsigned flags) {
  return static_cast<int>(call_system(fails('r', true), SYS_renameat2, folder, name, to, new_name, flags));
}
int openat(int folder, const char* name, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(list, unsigned) : 0;
  va_end(list);
  const bool failed = (flags & O_CREAT) != 0 && fails('o', true);
  return static_cast<int>(call_system(failed, SYS_openat, folder, name, flags, mode));
}

}  // extern "C"

namespace tt::server {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;  // path below the folder: contents

constexpr char kHeader[] = R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";

class InterruptedTest : public ::testing::Test {
 protected:
  InterruptedTest() {
    testing::start_engine();
    fs::create_directory(folder_ / "root");
  }

  static std::shared_ptr<TensorSnapshot> tensor(float value, int64_t count = 4) {
    Tensor x = empty({count}, DType::kFloat32, Device{});
    std::fill_n(x.data_as<float>(), count, value);
    return std::make_shared<TensorSnapshot>(x);
  }
  void save_file(float value) const {
    CheckpointJob job(notifier_, false);
    write_tensors(root_, "a/x.safetensors", kHeader, {tensor(value)}, job);
  }
  // Two full buffers, which a foreground task writes on another thread, whole blocks, and less than a block.
  void save_large_file(float value) const {
    CheckpointJob job(notifier_, false);
    constexpr int64_t kCount = (16 << 18) + 5000;
    const std::string header =
        absl::StrCat(R"({"x":{"dtype":"F32","shape":[)", kCount, R"(],"data_offsets":[0,)", 4 * kCount, "]}}");
    write_tensors(root_, "large.safetensors", header, {tensor(value, kCount)}, job);
  }
  // With a checksum before the tensor, which is written at the end.
  void save_parts(float value) const {
    CheckpointJob job(notifier_, false);
    FileParts parts;
    parts.bytes = "checksum: 12345678, end";
    parts.tensors = {tensor(value)};
    parts.positions = {20};
    parts.places = {0, 10};
    parts.is_hexadecimal = true;
    write_parts(root_, "x.pt", parts, job);
  }
  // As checkpoint.py saves shards.
  void save_folder(float value) const {
    root_.remove(".m.saving");
    CheckpointJob job(notifier_, false);
    write_tensors(root_, ".m.saving/1.safetensors", kHeader, {tensor(value)}, job);
    write_tensors(root_, ".m.saving/2.safetensors", kHeader, {tensor(value + 1)}, job);
    ReplacementFile index(root_.find(".m.saving/index.json", true));
    const std::string text = std::to_string(value);
    index.append(text.data(), text.size());
    index.commit();
    root_.rename(".m.saving", "m");
  }

  // The finished files.
  Files files() const {
    Files found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "root")) {
      const std::string path = fs::relative(entry.path(), folder_ / "root").string();
      if (entry.is_regular_file() && !is_temporary_name(entry.path().filename().string()) &&
          path.find(".m.saving") == std::string::npos) {
        found[path] = testing::read_file(entry.path());
      }
    }
    return found;
  }
  void age_temporary_files() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "root")) {
      if (!entry.is_regular_file()) continue;
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
  }
  size_t count() const {
    const auto all = fs::recursive_directory_iterator(folder_ / "root");
    return static_cast<size_t>(std::count_if(begin(all), end(all), [](const auto& e) { return e.is_regular_file(); }));
  }

  // Runs `save` in a process that is killed before its call number `at`. Returns whether it was killed.
  template <typename Save>
  static bool is_killed(Save save, int at) {
    const pid_t child = fork();
    if (child == 0) {
      interrupted_at = at;
      interruption = Interruption::kKill;
      save();
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return WIFSIGNALED(status);
  }
  // Runs `save` on a disk that is full from its call number `at`. Returns whether it failed.
  template <typename Save>
  static bool is_out_of_space(Save save, int at) {
    call_number = 0;
    interrupted_at = at;
    interruption = Interruption::kFullDisk;
    bool failed = false;
    try {
      save();
    } catch (const Error& error) {
      failed = true;
      EXPECT_NE(error.message().find("No space left on device"), std::string::npos) << error.message();
    }
    interruption = Interruption::kNone;
    return failed;
  }

  // `save(value)` replaces a checkpoint.
  template <typename Save>
  void check(Save save) {
    save(1);
    const Files old = files();
    save(2);
    const Files replaced = files();
    EXPECT_NE(old, replaced);
    for (const bool is_kill : {true, false}) {
      for (int at = 0;; ++at) {
        SCOPED_TRACE(::testing::Message() << (is_kill ? "killed" : "full") << " at call " << at);
        save(1);
        const auto write = [&] { save(2); };
        const bool interrupted = is_kill ? is_killed(write, at) : is_out_of_space(write, at);
        const Files found = files();
        if (!interrupted) {
          EXPECT_EQ(found, replaced);
          EXPECT_GE(at, 6);
          break;
        }
        EXPECT_TRUE(found == old || found == replaced);
        age_temporary_files();
        save(2);
        EXPECT_EQ(files(), replaced);
        EXPECT_EQ(count(), replaced.size());  // nothing else is left
      }
    }
  }

  testing::TemporaryFolder folder_;
  const CheckpointRoot root_{(folder_ / "root").string()};
  const std::shared_ptr<SuspensionNotifier> notifier_ = std::make_shared<SuspensionNotifier>();
};

TEST_F(InterruptedTest, SafetensorsFile) {
  check([this](float value) { save_file(value); });
}

TEST_F(InterruptedTest, LargeFile) {
  check([this](float value) { save_large_file(value); });
}

TEST_F(InterruptedTest, FileInPyTorchsFormat) {
  check([this](float value) { save_parts(value); });
}

TEST_F(InterruptedTest, FolderOfShards) {
  check([this](float value) { save_folder(value); });
}

// If the machine loses power, the file is complete before its name changes.
TEST_F(InterruptedTest, SyncsTheFileBeforeTheRenameAndTheFolderAfterwards) {
  save_file(1);
  call_names.clear();
  EXPECT_FALSE(is_out_of_space([&] { save_file(2); }, 1000));
  EXPECT_EQ(call_names, "oawsrs");
  call_names.clear();
  EXPECT_FALSE(is_out_of_space([&] { save_large_file(2); }, 1000));
  EXPECT_EQ(call_names, "oawwwwsrs");
}

}  // namespace
}  // namespace tt::server
