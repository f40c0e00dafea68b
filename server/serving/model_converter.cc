#include "server/serving/model_converter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file_descriptor.h"
#include "base/text.h"
#include "engine/device/cancellation.h"
#include "engine/schema/error.h"
#include "proto/sha256.h"
#include "server/serving/network_filter.h"
#include "server/serving/served_model.h"
#include "server/version.h"

namespace tt::server {
namespace {

constexpr size_t kMaxOutput = 4096;  // last bytes of the output, for messages
constexpr rlim_t kMaxDescriptors = 256;
constexpr size_t kNameBytes = 64;  // of an entry of the cache: hexadecimal digits
constexpr int kCannotConfine = 126;

std::string digest_of(const std::filesystem::path& file) {
  const FileDescriptor in(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  check(ErrorKind::kFileNotFound, static_cast<bool>(in), "[convert] cannot open ", file.filename().native(), ": ",
        std::strerror(errno));
  Sha256 digest;
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    check_cancelled();
    const ssize_t count = read(in.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    check(count >= 0, "[convert] cannot read ", file.filename().native(), ": ", std::strerror(errno));
    if (count == 0) break;
    digest.update({buffer.data(), static_cast<size_t>(count)});
  }
  std::string hexadecimal;
  for (const char byte : digest.finish()) {
    absl::StrAppend(&hexadecimal, absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
  }
  return hexadecimal;
}

void limit(int resource, rlim_t value) {
  rlimit now{};
  getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlim_t bound = std::min(value, now.rlim_max);
  const rlimit wanted{bound, bound};
  setrlimit(static_cast<__rlimit_resource>(resource), &wanted);
}

// The reasons in the report of `teletensor convert`, without the lines about files of the cache; of another command,
// all that it has printed.
std::string reasons_in(const std::string& printed) {
  constexpr absl::string_view kReason = "not convertible: ";
  std::vector<absl::string_view> reasons;
  for (absl::string_view line : absl::StrSplit(printed, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, kReason)) reasons.push_back(line);
  }
  return reasons.empty() ? printed : absl::StrJoin(reasons, "; ");
}

}  // namespace

std::filesystem::path ModelConverter::find_source(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator each(folder, error), end; !error && each != end; each.increment(error)) {
    const std::filesystem::path& path = each->path();
    const bool is_model = path.extension() == ".onnx" || path.extension() == ".pt2";
    if (!is_model || !each->is_regular_file(error)) continue;
    if (path.stem() == "model") return path;
    found.push_back(path);
  }
  return found.size() == 1 ? found[0] : std::filesystem::path();
}

std::filesystem::path ModelConverter::convert(const std::filesystem::path& source) const {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(options_.cache, error);
  check(!error, "[convert] cannot create the cache ", options_.cache.native(), ": ", error.message());
  // External data of ONNX files are beside them, so that the digest of the file alone is not enough.
  std::string key = absl::StrCat(kVersion, source.extension().native(), digest_of(source));
  for (fs::directory_iterator each(source.parent_path(), error), end; !error && each != end; each.increment(error)) {
    struct stat status {};
    if (stat(each->path().c_str(), &status) != 0) continue;
    absl::StrAppend(&key, "/", each->path().filename().native(), ":", status.st_size, ":", status.st_mtim.tv_sec, ".",
                    status.st_mtim.tv_nsec);
  }
  std::string name;
  for (const char byte : Sha256::of(key)) {
    absl::StrAppend(&name, absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
  }
  const fs::path target = options_.cache / name;
  if (fs::exists(target / ServedModel::kDescription, error)) {
    use(target);
    return target;
  }
  static std::atomic<uint64_t> conversions{0};  // models of equal files are converted at the same time
  const fs::path partial = options_.cache / absl::StrCat(name, ".", getpid(), "-", ++conversions, ".partial");
  fs::remove_all(partial, error);
  fs::create_directory(partial, error);
  check(!error, "[convert] cannot write to the cache ", options_.cache.native(), ": ", error.message());
  try {
    run(source, partial);
  } catch (...) {
    fs::remove_all(partial, error);
    throw;
  }
  fs::rename(partial, target, error);
  if (error) fs::remove_all(partial, error);  // another one was faster
  check(fs::exists(target / ServedModel::kDescription, error), "[convert] the command has succeeded without writing ",
        ServedModel::kDescription);
  use(target);
  return target;
}

void ModelConverter::use(const std::filesystem::path& entry) const {
  namespace fs = std::filesystem;
  using Clock = fs::file_time_type::clock;
  constexpr std::chrono::minutes kInUse{1}, kAbandoned{60};
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::error_code error;
  const auto now = Clock::now();
  fs::last_write_time(entry, now, error);
  std::vector<Entry> entries;
  uint64_t bytes = 0;
  for (fs::directory_iterator each(options_.cache, error), end; !error && each != end; each.increment(error)) {
    std::error_code ignored;  // another process may remove entries, too
    if (!each->is_directory(ignored) || each->is_symlink(ignored)) continue;
    Entry found{fs::last_write_time(each->path(), ignored), 0, each->path()};
    if (ignored) continue;
    const std::string name = found.path.filename().native();
    if (name.ends_with(".partial") && now - found.used > kAbandoned) fs::remove_all(found.path, ignored);
    if (name.size() != kNameBytes || name.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    for (fs::directory_iterator file(found.path, ignored); !ignored && file != end; file.increment(ignored)) {
      std::error_code missing;
      const uint64_t size = file->is_regular_file(missing) ? file->file_size(missing) : 0;
      if (!missing) found.bytes += size;
    }
    bytes += found.bytes;
    entries.push_back(std::move(found));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  size_t count = entries.size();
  for (const Entry& each : entries) {
    if (count <= options_.cache_entries && bytes <= options_.cache_bytes) return;
    if (now - each.used < kInUse) return;  // and so are the later ones
    fs::remove_all(each.path, error);
    --count;
    bytes -= each.bytes;
  }
}

void ModelConverter::run(const std::filesystem::path& source, const std::filesystem::path& target) const {
  std::vector<std::string> words = options_.command;
  words.push_back(std::filesystem::absolute(source).native());
  words.push_back(std::filesystem::absolute(target).native());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // Variables that the command needs to be found and to run; others may be secrets.
  std::vector<char*> environment;
  for (char** each = environ; *each != nullptr; ++each) {
    const absl::string_view name(*each, std::strcspn(*each, "="));
    for (const char* kept : {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV"}) {
      if (name == kept) environment.push_back(*each);
    }
  }
  environment.push_back(nullptr);
  int ends[2];
  check(pipe2(ends, O_CLOEXEC) == 0, "[convert] no file descriptors: ", std::strerror(errno));
  FileDescriptor out(ends[0]), in(ends[1]);
  const FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t child = fork();
  check(child >= 0, "[convert] cannot start a process: ", std::strerror(errno));
  if (child == 0) {  // only async-signal-safe calls
    setpgid(0, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    limit(RLIMIT_AS, options_.memory);
    limit(RLIMIT_CPU, static_cast<rlim_t>(options_.processor_time.count()));
    limit(RLIMIT_FSIZE, options_.file_bytes);
    limit(RLIMIT_NOFILE, kMaxDescriptors);
    limit(RLIMIT_CORE, 0);
    if (!refuse_network()) _exit(kCannotConfine);
    dup2(null.get(), STDIN_FILENO);
    dup2(in.get(), STDOUT_FILENO);
    dup2(in.get(), STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    execvpe(arguments[0], arguments.data(), environment.data());
    _exit(127);
  }
  setpgid(child, child);
  in.reset();
  std::string printed;
  bool in_time = true, has_ended = false, is_open = true;
  int status = 0;
  for (const auto end = std::chrono::steady_clock::now() + options_.timeout;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    in_time = left.count() > 0;
    if (!in_time || cancel_requested()) break;
    // The child may end with its output open in a process that it has started, or close it and continue.
    constexpr int64_t kPollMs = 100;
    pollfd ready{is_open ? out.get() : -1, POLLIN, 0};
    const int polled = poll(&ready, 1, static_cast<int>(std::min(left.count(), kPollMs)));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) {
      has_ended = waitpid(child, &status, WNOHANG) == child;
      if (has_ended) break;
      continue;
    }
    char buffer[4096];
    const ssize_t count = read(out.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      is_open = false;
      has_ended = waitpid(child, &status, WNOHANG) == child;
      if (has_ended) break;
      continue;
    }
    printed.append(buffer, static_cast<size_t>(count));
    if (printed.size() > 2 * kMaxOutput) printed.erase(0, printed.size() - kMaxOutput);
  }
  if (!has_ended) kill(-child, SIGKILL);
  while (!has_ended && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  kill(-child, SIGKILL);  // what it has started
  check_cancelled();
  if (printed.size() > kMaxOutput) printed.erase(0, printed.size() - kMaxOutput);
  check(ErrorKind::kValue, in_time, "[convert] expected ", words[0], " to convert ", source.filename().native(),
        " within ", options_.timeout.count(), " s");
  const bool started = !(WIFEXITED(status) && WEXITSTATUS(status) == 127);
  check(ErrorKind::kValue, started, "[convert] cannot run '", words[0],
        "', which converts ONNX and .pt2 files; install the Python package, or set --model-converter");
  check(ErrorKind::kValue, !(WIFEXITED(status) && WEXITSTATUS(status) == kCannotConfine && printed.empty()),
        "[convert] cannot take the network from the process that would convert ", source.filename().native(),
        ", because the kernel has no seccomp filters; run 'teletensor convert' yourself");
  check(ErrorKind::kValue, WIFEXITED(status) && WEXITSTATUS(status) == 0, "[convert] ", words[0], " could not convert ",
        source.filename().native(), WIFSIGNALED(status) ? absl::StrCat(" (signal ", WTERMSIG(status), ")") : "", ": ",
        printable(reasons_in(printed), kMaxOutput));
}

}  // namespace tt::server
