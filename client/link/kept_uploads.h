// KeptUploads: the bytes of uploads that the engine's image of the session on its disk lacks, to be sent again if the
// engine ends and continues from the image. Owned by a Link, guarded by its mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/schema/device.h"

namespace tt::client {

class KeptUploads {
 public:
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  // An upload's bytes, which may outlive this object.
  struct Bytes {
    uint64_t transfer;
    Device device;
    std::shared_ptr<const std::string> data;
  };

  // Copies the bytes. Beyond kMaxBytes, remembers only that the upload cannot be repeated.
  void add(uint64_t transfer, Device device, absl::Span<const char> bytes);
  // The engine has received the upload. Until then its own call repeats it.
  void sent(uint64_t transfer);
  // The upload's instruction is in the frame `sequence` or an earlier one.
  void used_in(uint64_t transfer, uint64_t sequence);
  // Drops uploads whose instruction is in a frame up to `sequence`.
  void forget(uint64_t sequence);
  void clear() {
    uploads_.clear();
    bytes_ = 0;
  }
  // The uploads that were sent, and whose instruction is in a later frame than `sequence` or was not issued yet. Nothing
  // if the bytes of one of them are not here.
  std::optional<std::vector<Bytes>> after(uint64_t sequence) const;

 private:
  struct Upload {
    Device device;
    std::shared_ptr<const std::string> data;  // null: too large
    uint64_t frame = 0;                       // of its instruction; 0: not issued
    bool sent = false;
  };
  std::map<uint64_t, Upload> uploads_;  // by transfer
  size_t bytes_ = 0;
};

}  // namespace tt::client
