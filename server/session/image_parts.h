// The parts of images (session_image.h): integers, texts with their checksums, and the contents of storages.
//
// Functions throw Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/tensor/storage.h"
#include "server/session/session_image.h"
#include "server/transfer/copy_stream.h"

namespace tt::server {

// The largest structure of an image: more than the bookkeeping that a session may have (Account::kMaxHost).
inline constexpr uint64_t kMaxStructureBytes = uint64_t{8} << 30;
// Bytes of a part that are not those of its text.
inline constexpr uint64_t kPartBytes = sizeof(uint64_t) + sizeof(uint32_t);

// Little-endian.
void write_checksum(uint32_t checksum, ImageSink* sink);
void check_checksum(uint32_t checksum, ImageSource* source);

// A part is the size of a text, the text, and its CRC-32.
void write_part(const std::string& bytes, ImageSink* sink);
std::string read_part(uint64_t max_bytes, ImageSource* source);

// A storage's bytes. `copies` copies from and to devices; `checksum` is updated. Bytes that other sessions may change
// are copied before their checksum is computed.
void write_contents(const Ref<Storage>& storage, const std::shared_ptr<CopyStream>& copies, uint32_t* checksum,
                    ImageSink* sink);
void read_contents(const Ref<Storage>& storage, const std::shared_ptr<CopyStream>& copies, uint32_t* checksum,
                   ImageSource* source);

}  // namespace tt::server
