// ChunkCompressor and ChunkDecompressor: zstd compression of frames and of the chunks of uploads and downloads; see
// docs/wire.md.
//
// Each chunk is compressed independently of the others. The bytes of a chunk may be shuffled before they are
// compressed: first the first byte of every item, then the second byte of every item, and so on. The bytes after the
// last whole item keep their place. Used by one thread at a time.
#pragma once

#include <zstd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "proto/wire.h"

namespace tt {

enum class CompressionMode {
  kNone,
  kAuto,    // chunks for which compression shortens the transfer
  kAlways,  // every chunk that becomes smaller
};

namespace chunk_codec {

template <size_t kItem>
void shuffle_items(const char* from, size_t count, char* to) {
  for (size_t byte = 0; byte < kItem; ++byte) {
    for (size_t i = 0; i < count; ++i) to[byte * count + i] = from[i * kItem + byte];
  }
}

template <size_t kItem>
void unshuffle_items(const char* from, size_t count, char* to) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t byte = 0; byte < kItem; ++byte) to[i * kItem + byte] = from[byte * count + i];
  }
}

inline bool is_item_size(uint32_t bytes) { return bytes == 2 || bytes == 4 || bytes == 8; }

// Requires is_item_size(item).
inline void shuffle(absl::Span<const char> from, uint32_t item, char* to) {
  const size_t count = from.size() / item, whole = count * item;
  if (item == 2) shuffle_items<2>(from.data(), count, to);
  if (item == 4) shuffle_items<4>(from.data(), count, to);
  if (item == 8) shuffle_items<8>(from.data(), count, to);
  std::memcpy(to + whole, from.data() + whole, from.size() - whole);
}

// Reverses shuffle().
inline void unshuffle(absl::Span<const char> from, uint32_t item, char* to) {
  const size_t count = from.size() / item, whole = count * item;
  if (item == 2) unshuffle_items<2>(from.data(), count, to);
  if (item == 4) unshuffle_items<4>(from.data(), count, to);
  if (item == 8) unshuffle_items<8>(from.data(), count, to);
  std::memcpy(to + whole, from.data() + whole, from.size() - whole);
}

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace chunk_codec

// The chunks of one transfer. Tries each item size on a part of the first chunk and of every 16th one, and uses the
// best until the next trial.
class ChunkCompressor {
 public:
  static constexpr size_t kMinBytes = 4096;  // smaller chunks are sent as they are

  explicit ChunkCompressor(CompressionMode mode) : mode_(mode) {}

  // Memory for chunks of up to `bytes` bytes, including the compressed chunk, approximately.
  static constexpr size_t memory(size_t bytes) {
    constexpr size_t kContextBytes = size_t{1} << 20;
    return kContextBytes + 2 * bytes;
  }

  // Fills `data` and `compression` with the compressed bytes and returns true, or returns false, if the chunk should be
  // sent as it is. `rate` is the link's rate in bytes per second; 0: unknown.
  bool compress(absl::Span<const char> chunk, double rate, std::string* data, v1::ChunkCompression* compression) {
    if (!is_wanted(rate) || chunk.size() < kMinBytes || !make_context()) return false;
    if (chunks_++ % kTrialInterval == 0) choose(chunk);
    if (!pays(rate)) return false;
    const size_t size = compress_into(chunk, item_, data);
    if (size >= chunk.size()) return false;
    data->resize(size);
    compression->set_codec(v1::CODEC_ZSTD);
    compression->set_bytes(chunk.size());
    compression->set_item_bytes(item_);
    return true;
  }

  // Whether compress() may return true at this rate.
  bool is_wanted(double rate) const {
    return mode_ == CompressionMode::kAlways || (mode_ == CompressionMode::kAuto && rate > 0 && rate <= kMaxRate);
  }

 private:
  static constexpr int kLevel = 1;  // higher levels are slower and, for tensors, not smaller
  static constexpr size_t kTrialBytes = size_t{64} << 10;
  static constexpr uint64_t kTrialInterval = 16;
  // Above about half a Gbit/s compression costs more processor time than it saves transfer time. Transfers on one host
  // with busy processors are not much faster than this.
  static constexpr double kMaxRate = 60e6;
  // The transfer must become this much shorter; a shuffled chunk, this much smaller.
  static constexpr double kGain = 0.1, kShuffleGain = 0.03;

  bool make_context() {
    if (!context_) context_.reset(ZSTD_createCCtx());
    return context_ != nullptr;
  }
  // Writes zstd frames to `to`, which may become larger than needed. Returns their size, or SIZE_MAX if zstd fails.
  // Shuffled bytes are one frame per byte of the item, because zstd's statistics are those of up to 128 KiB.
  size_t compress_into(absl::Span<const char> bytes, uint32_t item, std::string* to) {
    const size_t frames = std::max<size_t>(item, 1), frame_bytes = bytes.size() / frames;
    if (item != 0) {
      shuffled_.resize(bytes.size());
      chunk_codec::shuffle(bytes, item, shuffled_.data());
      bytes = shuffled_;
    }
    to->resize(ZSTD_compressBound(frame_bytes) * frames + ZSTD_compressBound(item));
    size_t size = 0;
    for (size_t i = 0; i < frames; ++i) {
      const auto frame = bytes.subspan(i * frame_bytes, i + 1 < frames ? frame_bytes : bytes.size());
      const size_t added =
          ZSTD_compressCCtx(context_.get(), to->data() + size, to->size() - size, frame.data(), frame.size(), kLevel);
      if (ZSTD_isError(added)) return SIZE_MAX;
      size += added;
    }
    return size;
  }
  bool pays(double rate) const {
    if (mode_ == CompressionMode::kAlways) return ratio_ < 1;
    return seconds_per_byte_ + ratio_ / rate < (1 - kGain) / rate;
  }
  void choose(absl::Span<const char> chunk) {
    using Clock = std::chrono::steady_clock;
    const absl::Span<const char> part =
        chunk.subspan((chunk.size() - std::min(chunk.size(), kTrialBytes)) / 2 / 8 * 8, kTrialBytes);
    const double bytes = static_cast<double>(part.size());
    std::string trial;
    ratio_ = 1;
    for (const uint32_t item : {0, 2, 4, 8}) {
      const Clock::time_point start = Clock::now();
      const double ratio = static_cast<double>(compress_into(part, item, &trial)) / bytes;
      if (ratio >= ratio_ * (1 - kShuffleGain)) continue;
      ratio_ = ratio;
      item_ = item;
      seconds_per_byte_ = std::chrono::duration<double>(Clock::now() - start).count() / bytes;
    }
  }

  const CompressionMode mode_;
  uint64_t chunks_ = 0;
  // Of the last trial.
  double ratio_ = 1;  // 1: the bytes cannot be compressed
  double seconds_per_byte_ = 0;
  uint32_t item_ = 0;  // 0: not shuffled
  std::string shuffled_;
  std::unique_ptr<ZSTD_CCtx, chunk_codec::FreeContext> context_;
};

class ChunkDecompressor {
 public:
  // Memory for chunks of up to `bytes` bytes in addition to the chunks, approximately.
  static constexpr size_t memory(size_t bytes, bool shuffled) {
    constexpr size_t kContextBytes = size_t{160} << 10;
    return kContextBytes + (shuffled ? bytes : 0);
  }

  // Allocates the memory for shuffled chunks of up to `bytes` bytes. Not required before decompress().
  void reserve(size_t bytes) { shuffled_.reserve(bytes); }
  // Fills `into`, whose size must be `compression.bytes()`; the caller has checked that size. Returns INVALID_ARGUMENT
  // if `data` is not valid or has another size.
  absl::Status decompress(absl::Span<const char> data, const v1::ChunkCompression& compression, absl::Span<char> into) {
    const uint32_t item = compression.item_bytes();
    if (compression.codec() != v1::CODEC_ZSTD) {
      return absl::InvalidArgumentError(absl::StrCat("expected codec ZSTD (1), got ", compression.codec()));
    }
    if (item != 0 && !chunk_codec::is_item_size(item)) {
      return absl::InvalidArgumentError(absl::StrCat("expected item_bytes 0, 2, 4 or 8, got ", item));
    }
    if (!context_) context_.reset(ZSTD_createDCtx());
    if (!context_) return absl::ResourceExhaustedError("no memory to decompress a chunk");
    if (item != 0) shuffled_.resize(into.size());
    char* const target = item != 0 ? shuffled_.data() : into.data();
    const size_t size = ZSTD_decompressDCtx(context_.get(), target, into.size(), data.data(), data.size());
    if (ZSTD_isError(size)) {
      return absl::InvalidArgumentError(absl::StrCat("a compressed chunk is invalid: ", ZSTD_getErrorName(size)));
    }
    if (size != into.size()) {
      return absl::InvalidArgumentError(absl::StrCat("expected a chunk of ", into.size(), " bytes, got ", size));
    }
    if (item != 0) chunk_codec::unshuffle(shuffled_, item, into.data());
    return absl::OkStatus();
  }

 private:
  std::string shuffled_;
  std::unique_ptr<ZSTD_DCtx, chunk_codec::FreeContext> context_;
};

}  // namespace tt
