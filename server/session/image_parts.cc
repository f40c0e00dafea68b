#include "server/session/image_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/schema/error.h"
#include "engine/tensor/tensor.h"
#include "server/checkpoint/checksum.h"
#include "server/transfer/device_reader.h"
#include "server/transfer/device_writer.h"

namespace tt::server {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;
// In memory of the CPU: a piece is still in the processor's cache when it is used for the second time.
constexpr size_t kCpuPieceBytes = size_t{256} << 10;

template <typename Integer>
void write_integer(Integer value, ImageSink* sink) {
  char bytes[sizeof value];
  for (size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  sink->write(bytes, sizeof bytes);
}

template <typename Integer>
Integer read_integer(ImageSource* source) {
  unsigned char bytes[sizeof(Integer)];
  source->read(bytes, sizeof bytes);
  Integer value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value |= static_cast<Integer>(bytes[i]) << (8 * i);
  return value;
}

// A storage as a tensor of bytes, for functions that copy tensors.
Tensor bytes_of(const Ref<Storage>& storage) {
  TensorMeta meta;
  meta.dtype = DType::kUInt8;
  meta.device = storage->device();
  meta.sizes = {static_cast<int64_t>(storage->bytes())};
  meta.strides = {1};
  return Tensor(new TensorImpl(meta, storage));
}

}  // namespace

void write_part(const std::string& bytes, ImageSink* sink) {
  write_integer<uint64_t>(bytes.size(), sink);
  sink->write(bytes.data(), bytes.size());
  write_integer<uint32_t>(update_checksum(0, bytes.data(), bytes.size()), sink);
}

void write_checksum(uint32_t checksum, ImageSink* sink) { write_integer(checksum, sink); }

void check_checksum(uint32_t checksum, ImageSource* source) {
  check(read_integer<uint32_t>(source) == checksum, "[image] the image is damaged: a checksum differs");
}

std::string read_part(uint64_t max_bytes, ImageSource* source) {
  const auto size = read_integer<uint64_t>(source);
  check(size <= std::min(max_bytes, source->left()), "[image] the image is damaged: it ends early");
  std::string bytes;  // grows with what has arrived, because the size is not known to be right
  while (bytes.size() < size) {
    const size_t at = bytes.size();
    bytes.resize(std::min<uint64_t>(size, at + kPieceBytes));
    source->read(bytes.data() + at, bytes.size() - at);
  }
  check_checksum(update_checksum(0, bytes.data(), size), source);
  return bytes;
}

void write_contents(const Ref<Storage>& storage, const std::shared_ptr<CopyStream>& copies, uint32_t* checksum,
                    ImageSink* sink) {
  if (storage->device().type == DeviceType::kCPU) {
    const char* data = static_cast<const char*>(storage->data());
    std::vector<char> copy(storage->is_shared() ? kCpuPieceBytes : 0);
    for (size_t at = 0; at < storage->bytes(); at += kCpuPieceBytes) {
      const size_t size = std::min(kCpuPieceBytes, storage->bytes() - at);
      if (storage->is_shared()) {
        std::memcpy(copy.data(), data + at, size);
        *checksum = update_checksum(*checksum, copy.data(), size);
        sink->write(copy.data(), size);
        continue;
      }
      *checksum = update_checksum(*checksum, data + at, size);
      sink->write_stable(storage, at, size);
    }
    return;
  }
  DeviceReader reader(copies, bytes_of(storage));
  std::vector<char> piece(std::min(kPieceBytes, storage->bytes()));
  while (reader.left() != 0) {
    const size_t size = reader.read(piece.data(), piece.size());
    *checksum = update_checksum(*checksum, piece.data(), size);
    sink->write(piece.data(), size);
  }
}

void read_contents(const Ref<Storage>& storage, const std::shared_ptr<CopyStream>& copies, uint32_t* checksum,
                   ImageSource* source) {
  if (storage->device().type == DeviceType::kCPU) {
    char* data = static_cast<char*>(storage->data());
    for (size_t at = 0; at < storage->bytes(); at += kCpuPieceBytes) {
      const size_t size = std::min(kCpuPieceBytes, storage->bytes() - at);
      source->read(data + at, size);
      *checksum = update_checksum(*checksum, data + at, size);
    }
    return;
  }
  DeviceWriter writer(copies, storage);
  std::vector<char> piece(std::min(kPieceBytes, storage->bytes()));
  for (size_t at = 0; at < storage->bytes(); at += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, storage->bytes() - at);
    source->read(piece.data(), size);
    *checksum = update_checksum(*checksum, piece.data(), size);
    writer.write({piece.data(), size});
  }
  writer.finish()->synchronize();
}

}  // namespace tt::server
