// Sha256: the digest of bytes that arrive in pieces, by OpenSSL. Identifies the content of an upload (docs/wire.md).
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <new>
#include <string>

#include "absl/types/span.h"

namespace tt {

// Used by one thread at a time.
class Sha256 {
 public:
  static constexpr size_t kBytes = 32;

  Sha256() : context_(EVP_MD_CTX_new()) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  }
  void update(absl::Span<const char> bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  // Returns the digest of all bytes. Must be the last call.
  std::string finish() {
    std::string digest(kBytes, '\0');
    EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    return digest;
  }
  static std::string of(absl::Span<const char> bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace tt
