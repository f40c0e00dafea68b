#include "server/checkpoint/range_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "formats/safetensors.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/io_buffer.h"
#include "server/transfer/staging.h"

namespace tt::server {
namespace {

constexpr uint64_t kWindowBytes = kHugePageBytes;
constexpr uint64_t kAlignment = 4096;  // of offsets, sizes and memory, for reads without the page cache
// Ranges with shorter gaps between them are read together.
constexpr uint64_t kMaxGap = uint64_t{64} << 10;
// Some threads wait for the disk while others copy and compute checksums.
constexpr size_t kThreads = 4;
constexpr uint64_t kMinThreadedBytes = uint64_t{4} << 20;
constexpr uint64_t kMinDirectBytes = uint64_t{32} << 20;

// The part of a range that is in one window.
struct Segment {
  uint64_t offset;  // in the file
  uint64_t size;
  char* into;
  Device device;
  size_t number;  // of the segment, in the order of ranges and offsets
};

// Consecutive bytes of the file that one thread reads at once.
struct Window {
  uint64_t begin, end;
  std::vector<Segment> segments;
};

struct Plan {
  std::vector<Window> windows;               // ascending, disjoint
  std::vector<std::vector<uint64_t>> sizes;  // of the segments of each range
  std::vector<size_t> first;                 // number of the first segment of each range
  size_t segments = 0;
};

// Divides the bytes from `begin` to `end` at multiples of the window's size.
void add_windows(uint64_t begin, uint64_t end, std::vector<Window>* windows) {
  while (begin < end) {
    const uint64_t next = std::min(end, begin / kWindowBytes * kWindowBytes + kWindowBytes);
    windows->push_back({begin, next, {}});
    begin = next;
  }
}

Plan plan(const std::vector<FileRange>& ranges) {
  Plan plan;
  std::vector<size_t> order(ranges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ranges[a].offset < ranges[b].offset; });
  uint64_t begin = 0, end = 0;
  for (const size_t i : order) {
    if (ranges[i].size == 0) continue;
    if (end != 0 && ranges[i].offset > end && ranges[i].offset - end > kMaxGap) {
      add_windows(begin, end, &plan.windows);
      end = 0;
    }
    if (end == 0) begin = ranges[i].offset;
    end = std::max(end, ranges[i].offset + ranges[i].size);
  }
  add_windows(begin, end, &plan.windows);
  plan.sizes.resize(ranges.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    const FileRange& range = ranges[i];
    plan.first.push_back(plan.segments);
    auto window = std::upper_bound(plan.windows.begin(), plan.windows.end(), range.offset,
                                   [](uint64_t offset, const Window& w) { return offset < w.end; });
    for (uint64_t done = 0; done < range.size; ++window) {
      const uint64_t size = std::min(range.size - done, window->end - (range.offset + done));
      window->segments.push_back({range.offset + done, size, range.into + done, range.device, plan.segments++});
      plan.sizes[i].push_back(size);
      done += size;
    }
  }
  return plan;
}

// Opens the same file for reading without the page cache; an invalid descriptor if that is not possible.
FileDescriptor open_direct(int file) {
  return FileDescriptor(open(absl::StrCat("/proc/self/fd/", file).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
}

// Whether most of the window's bytes are in the page cache. The mapping is not accessed, so that a file that becomes
// shorter does no harm.
bool is_cached(int file, uint64_t begin, uint64_t end) {
  begin = begin / kAlignment * kAlignment;
  const size_t size = end - begin;
  void* mapping = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, static_cast<off_t>(begin));
  if (mapping == MAP_FAILED) return false;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((size + page - 1) / page);
  const bool known = mincore(mapping, size, pages.data()) == 0;
  munmap(mapping, size);
  const auto resident = std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; });
  return known && static_cast<size_t>(resident) >= pages.size() / 8 * 7;
}

// Copies to devices, made by one thread.
class DeviceCopies {
 public:
  explicit DeviceCopies(const std::shared_ptr<CopyStream>& copy_stream) : copy_stream_(copy_stream) {}

  // Copies bytes of the host to the segment's memory; returns their CRC-32. Waits while the device is behind.
  uint32_t copy(const Segment& segment, const char* from) {
    Ring& ring = ring_of(segment.device);
    uint32_t checksum = 0;
    for (uint64_t done = 0; done < segment.size;) {
      Staging::Piece& piece = ring.staging[ring.next++];
      if (piece.passed) piece.passed->synchronize();
      piece.size = std::min<uint64_t>(ring.staging.piece_bytes(), segment.size - done);
      checksum = copy_with_checksum(checksum, piece.data, from + done, piece.size);
      ring.staging.send(piece, segment.into + done);
      done += piece.size;
    }
    return checksum;
  }

  // Waits for the devices. Throws Error if one fails.
  void finish() {
    for (const std::unique_ptr<Ring>& ring : rings_) {
      for (size_t i = 0; i < ring->staging.count(); ++i) {
        if (ring->staging[i].passed) ring->staging[i].passed->synchronize();
      }
    }
  }

 private:
  struct Ring {
    Staging staging;
    size_t next = 0;  // piece
  };

  Ring& ring_of(Device device) {
    for (const std::unique_ptr<Ring>& ring : rings_) {
      if (ring->staging.device() == device) return *ring;
    }
    constexpr size_t kBytes = Staging::kPieces * Staging::kPieceBytes;
    rings_.push_back(std::unique_ptr<Ring>(new Ring{{copy_stream_, device, kBytes}}));
    return *rings_.back();
  }

  const std::shared_ptr<CopyStream>& copy_stream_;
  std::vector<std::unique_ptr<Ring>> rings_;
};

// One call of read_ranges(): its threads take windows in the order of the file.
class Reading {
 public:
  Reading(int file, std::string_view path, const Plan& plan, bool bypasses_cache, CheckpointJob& job,
          const std::shared_ptr<CopyStream>& copy_stream)
      : file_(file), path_(path), plan_(plan), job_(job), copy_stream_(copy_stream), checksums_(plan.segments) {
    if (bypasses_cache) direct_ = open_direct(file);
  }

  void run(size_t threads) {
    std::vector<std::thread> helpers;
    try {
      while (helpers.size() + 1 < std::min(threads, plan_.windows.size())) {
        helpers.emplace_back([this] { read_windows(); });
      }
    } catch (const std::system_error&) {  // no more threads
    }
    read_windows();
    for (std::thread& helper : helpers) helper.join();
    MutexLock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  const std::vector<uint32_t>& checksums() const { return checksums_; }

 private:
  void read_windows() {
    IoBuffer buffer;
    DeviceCopies copies(copy_stream_);
    attempt([&] {
      for (size_t i = next_.fetch_add(1); i < plan_.windows.size() && !failed_; i = next_.fetch_add(1)) {
        job_.check_cancelled();
        read_window(plan_.windows[i], &buffer, &copies);
      }
    });
    attempt([&] { copies.finish(); });
  }

  void attempt(absl::FunctionRef<void()> work) {
    try {
      work();
    } catch (const std::exception&) {
      failed_ = true;
      MutexLock lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void read_window(const Window& window, IoBuffer* buffer, DeviceCopies* copies) {
    const Segment& first = window.segments.front();
    const bool bypasses_cache = direct_ && !is_cached(file_, window.begin, window.end);
    if (!bypasses_cache && first.device == Device{} && first.offset == window.begin &&
        first.size == window.end - window.begin && window.segments.size() == 1) {
      read_exactly(file_, first.into, first.size, first.offset, path_);
      checksums_[first.number] = update_checksum(0, first.into, first.size);
    } else {
      if (!*buffer) *buffer = allocate_io_buffer(kWindowBytes);
      const uint64_t begin = fill(window, bypasses_cache, buffer->get());
      for (const Segment& segment : window.segments) {
        const char* from = buffer->get() + (segment.offset - begin);
        checksums_[segment.number] = segment.device == Device{}
                                         ? copy_with_checksum(0, segment.into, from, segment.size)
                                         : copies->copy(segment, from);
      }
    }
    for (const Segment& segment : window.segments) job_.advance(segment.size);
  }

  // Reads the window's bytes into the buffer; returns the offset in the file of the buffer's first byte. Windows end at
  // multiples of their size, so with whole blocks they fit into the buffer too.
  uint64_t fill(const Window& window, bool bypasses_cache, char* buffer) const {
    const uint64_t begin = window.begin / kAlignment * kAlignment;
    const uint64_t wanted = window.end - begin;
    const uint64_t size = (wanted + kAlignment - 1) / kAlignment * kAlignment;
    uint64_t done = 0;
    while (bypasses_cache && done < wanted) {
      const ssize_t got = pread(direct_.get(), buffer + done, size - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;  // not supported, or an error, which read_exactly() reports
      done += static_cast<uint64_t>(got);
      if (done % kAlignment != 0) break;
    }
    if (done < wanted) read_exactly(file_, buffer + done, wanted - done, begin + done, path_);
    return begin;
  }

  const int file_;
  const std::string path_;
  const Plan& plan_;
  CheckpointJob& job_;
  const std::shared_ptr<CopyStream>& copy_stream_;
  FileDescriptor direct_;
  std::vector<uint32_t> checksums_;  // of segments; each is written by one thread
  std::atomic<size_t> next_{0};      // window
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  std::exception_ptr error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<uint32_t> read_ranges(int file, std::string_view path, const std::vector<FileRange>& ranges,
                                  CheckpointJob& job, const std::shared_ptr<CopyStream>& copy_stream) {
  const uint64_t end = file_size(file, path);
  uint64_t total = 0;
  for (const FileRange& range : ranges) {
    check(range.offset <= end && range.size <= end - range.offset, "cannot read '", path, "': the file is incomplete");
    total += range.size;
  }
  const Plan planned = plan(ranges);
  Reading reading(file, path, planned, total >= kMinDirectBytes, job, copy_stream);
  reading.run(total >= kMinThreadedBytes ? kThreads : 1);
  std::vector<uint32_t> checksums;
  for (size_t i = 0; i < ranges.size(); ++i) {
    uint32_t checksum = 0;
    for (size_t k = 0; k < planned.sizes[i].size(); ++k) {
      checksum = combine_checksums(checksum, reading.checksums()[planned.first[i] + k], planned.sizes[i][k]);
    }
    checksums.push_back(checksum);
  }
  return checksums;
}

}  // namespace tt::server
