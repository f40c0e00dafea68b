#include "python/bindings/file_states.h"

#include <fcntl.h>
#include <pybind11/stl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_descriptor.h"
#include "engine/schema/error.h"
#include "python/bindings/tensor/gil.h"

namespace py = pybind11;

namespace tt::python {
namespace {

struct States {
  std::string rows;    // four int64 per file: size, time of the last write, time of the last change, number
  int64_t latest = 0;  // of the times, in nanoseconds since the epoch
};

int64_t nanoseconds(const timespec& time) { return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec; }

// `names`: relative to the folder, separated by newlines. Nothing if a file cannot be found.
std::optional<States> states_of(const std::string& folder, const std::string& lines) {
  std::string_view names = lines;
  const FileDescriptor root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) return std::nullopt;
  States states;
  while (!names.empty()) {
    const size_t end = std::min(names.find('\n'), names.size());
    const std::string name(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    struct stat found;
    if (::fstatat(root.get(), name.c_str(), &found, 0) != 0) return std::nullopt;
    const int64_t row[] = {found.st_size, nanoseconds(found.st_mtim), nanoseconds(found.st_ctim),
                           static_cast<int64_t>(found.st_ino)};
    states.rows.append(reinterpret_cast<const char*>(row), sizeof row);
    states.latest = std::max({states.latest, row[1], row[2]});
  }
  return states;
}

// The states of files, which a thread of its own looks up. The destructor waits for it. result() may be called once.
class FileStates {
 public:
  FileStates(const std::string& folder, const std::string& names) {
    try {
      states_ = std::async(std::launch::async, states_of, folder, names);
    } catch (const std::system_error&) {  // no more threads
      states_ = std::async(std::launch::deferred, states_of, folder, names);
    }
  }
  std::optional<std::pair<py::bytes, int64_t>> result() {
    check(ErrorKind::kValue, states_.valid(), "[FileStates] expected one call of result(), got another one");
    std::optional<States> states;
    {
      const ReleaseGil released;
      states = states_.get();
    }
    if (!states) return std::nullopt;
    return std::pair(py::bytes(states->rows), states->latest);
  }

 private:
  std::future<std::optional<States>> states_;
};

}  // namespace

void bind_file_states(py::module_& m) {
  py::class_<FileStates>(
      m, "FileStates",
      "Sizes, times and numbers of files in a folder, whose names are separated by newlines. Another "
      "thread looks them up.")
      .def(py::init<const std::string&, const std::string&>(), py::arg("folder"), py::arg("names"))
      .def("result", &FileStates::result,
           "Waits. The states as bytes, and the latest of the times in nanoseconds; None if a file cannot be found.");
}

}  // namespace tt::python
