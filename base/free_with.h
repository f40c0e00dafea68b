// FreeWith: the deleter of a C library's objects, for std::unique_ptr: std::unique_ptr<BIO, FreeWith<BIO_free_all>>.
#pragma once

namespace tt {

template <auto Free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

}  // namespace tt
