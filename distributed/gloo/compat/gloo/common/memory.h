// Debian's libgloo-dev omits this header of Gloo, which gloo/transport/tcp/pair.h includes. It declares the parts that
// Gloo's headers use. None of these types is used here, and the members of Gloo's Pair that are used precede them.
#pragma once

#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr;
template <typename T>
class WeakNonOwningPtr final {
  std::weak_ptr<T> pointer_;
};

}  // namespace gloo
