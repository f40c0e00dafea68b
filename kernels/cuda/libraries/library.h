// Library: one of CUDA's shared libraries, opened on first use; it stays open until the process ends. Records its
// version, or why it could not be opened (runtime/library_status.h).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace tt::cuda {

class Library {
 public:
  // Opens the first of `files` that the system's loader finds, in its search path or in the toolkit's usual folder. The
  // object is empty if none is found.
  Library(std::string name, std::initializer_list<const char*> files);

  explicit operator bool() const { return handle_ != nullptr; }
  // For code that looks up functions itself.
  void* handle() const { return handle_; }
  // Why the object is empty: the loader's message for the first file.
  const std::string& why() const { return why_; }
  // Accepts the numbering of cuBLAS and cuDNN: 91300 is 9.13.0.
  void record_version(size_t number) const;
  void record_version(std::string version) const;
  // Throws Error (RuntimeError) if the library has no such function.
  template <typename Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address(name));
  }
  // Stores null if the library has no such function. Used for functions that older versions lack.
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
