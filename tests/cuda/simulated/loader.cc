#include "tests/cuda/simulated/loader.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/cuda/libraries/loader.h"

namespace tt::cuda {
namespace {

// Keyed by the part of the file name that all versions share.
const std::map<std::string, const LibraryFunctions*>& tables() {
  static const std::map<std::string, const LibraryFunctions*> tables = {
      {"cufft", &simulated_cufft()}, {"cupti", &simulated_cupti()}, {"cusolver", &simulated_cusolver()}};
  return tables;
}

bool is_table(const void* library) {
  for (const auto& [name, table] : tables()) {
    if (table == library) return true;
  }
  return false;
}

}  // namespace

bool is_hidden_library(const std::string& name) {
  const char* without = std::getenv("TELETENSOR_SIMULATED_WITHOUT");
  for (const absl::string_view hidden : absl::StrSplit(without ? without : "", ',')) {
    if (hidden == absl::string_view(name)) return true;
  }
  return false;
}

bool has_simulated_library(const std::string& name) { return !is_hidden_library(name) && !tables().at(name)->empty(); }

void* open_library(const std::string& file, std::string* why) {
  for (const auto& [name, table] : tables()) {
    if (!absl::StrContains(file, absl::StrCat("lib", name, ".so"))) continue;
    if (has_simulated_library(name)) return const_cast<LibraryFunctions*>(table);
    *why = "simulated devices have none";
    return nullptr;
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) *why = dlerror();
  return library;
}

void* find_function(void* library, const char* name) {
  if (!is_table(library)) return dlsym(library, name);
  const auto& functions = *static_cast<const LibraryFunctions*>(library);
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace tt::cuda
