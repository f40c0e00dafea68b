#include "kernels/cuda/libraries/library.h"

#include <dlfcn.h>

#include "engine/rules/error.h"

namespace tt::cuda {

Library::Library(std::initializer_list<const char*> names) {
  for (const std::string directory : {"", "/usr/local/cuda/lib64/"}) {
    for (const char* name : names) {
      handle_ = dlopen((directory + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) {
        name_ = name;
        return;
      }
      const char* why = dlerror();
      if (why_.empty() && why) why_ = why;
    }
  }
}

void* Library::address(const char* name) const {
  void* found = dlsym(handle_, name);
  check(found != nullptr, name_, " has no ", name);
  return found;
}

}  // namespace tt::cuda
