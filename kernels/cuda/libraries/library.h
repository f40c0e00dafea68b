// Library: one of CUDA's shared libraries, opened when something first needs it; it stays open until the process ends.
// Its version, or why it could not be opened, is noted (runtime/library_notes.h).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace tt::cuda {

class Library {
 public:
  // Opens the first of `files` that is found where the system's loader looks, then in the toolkit's usual folder. Empty
  // where none is found.
  Library(std::string name, std::initializer_list<const char*> files);

  explicit operator bool() const { return handle_ != nullptr; }
  // Why it is empty: the loader's message for the first name.
  const std::string& why() const { return why_; }
  // As cuBLAS and cuDNN number them: 91300 is 9.13.0.
  void note_version(size_t number) const;
  void note_version(std::string version) const;
  // Throws Error (RuntimeError) where the library has no such function.
  template <typename Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address(name));
  }
  // Stores null where the library has no such function, as older versions may.
  template <typename Function>
  void find_optional(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(optional_address(name));
  }

 private:
  void* address(const char* name) const;
  void* optional_address(const char* name) const;

  void* handle_ = nullptr;
  std::string name_;
  std::string file_;
  std::string why_;
};

}  // namespace tt::cuda
