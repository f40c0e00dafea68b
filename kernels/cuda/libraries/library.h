// Library: a shared library of CUDA's that is opened when something first needs it, and stays open.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace tt::cuda {

class Library {
 public:
  // The first of `names` that is found: where the system looks, then in the toolkit's usual place. Empty where none is.
  explicit Library(std::initializer_list<const char*> names);

  explicit operator bool() const { return handle_ != nullptr; }
  // Why it is empty: what the loader said of the first name.
  const std::string& why() const { return why_; }
  // Throws Error (RuntimeError) where the library has no such function.
  template <typename Function>
  void find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(address(name));
  }

 private:
  void* address(const char* name) const;

  void* handle_ = nullptr;
  std::string name_;
  std::string why_;
};

}  // namespace tt::cuda
