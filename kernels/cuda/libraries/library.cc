#include "kernels/cuda/libraries/library.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"
#include "kernels/cuda/libraries/loader.h"
#include "kernels/cuda/runtime/library_status.h"

namespace tt::cuda {

Library::Library(std::string name, std::initializer_list<const char*> files) : name_(std::move(name)) {
  for (const std::string directory : {"", "/usr/local/cuda/lib64/"}) {
    for (const char* file : files) {
      std::string why;
      handle_ = open_library(directory + file, &why);
      if (handle_) {
        file_ = file;
        return;
      }
      if (why_.empty()) why_ = std::move(why);
    }
  }
  record_library_status({name_, "", why_});
}

void Library::record_version(size_t number) const {
  record_version(absl::StrCat(number / 10000, ".", number / 100 % 100, ".", number % 100));
}

void Library::record_version(std::string version) const { record_library_status({name_, std::move(version), ""}); }

void* Library::address(const char* name) const {
  void* found = find_function(handle_, name);
  check(found != nullptr, file_, " has no function ", name);
  return found;
}

void* Library::optional_address(const char* name) const { return find_function(handle_, name); }

}  // namespace tt::cuda
