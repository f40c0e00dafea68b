#include "kernels/cuda/runtime/library_status.h"

#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace tt::cuda {
namespace {

struct Notes {
  Mutex mutex;
  std::map<std::string, LibraryInfo> by_name ABSL_GUARDED_BY(mutex);
};

Notes& notes() {
  static Notes* const notes = new Notes;  // never destroyed, because libraries stay loaded
  return *notes;
}

}  // namespace

void record_library_status(LibraryInfo library) {
  MutexLock lock(notes().mutex);
  std::string name = library.name;
  notes().by_name.insert_or_assign(std::move(name), std::move(library));
}

std::vector<LibraryInfo> library_statuses() {
  MutexLock lock(notes().mutex);
  std::vector<LibraryInfo> all;
  for (const auto& [name, library] : notes().by_name) all.push_back(library);
  return all;
}

}  // namespace tt::cuda
