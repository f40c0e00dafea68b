#include "kernels/cuda/libraries/loader.h"

#include <dlfcn.h>

namespace tt::cuda {

void* open_library(const std::string& file, std::string* why) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* text = dlerror();
    *why = text ? text : "";
  }
  return library;
}

void* find_function(void* library, const char* name) { return dlsym(library, name); }

}  // namespace tt::cuda
