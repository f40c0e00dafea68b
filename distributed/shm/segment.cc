#include "distributed/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tt::distributed::shm {
namespace {

constexpr uint64_t kMagic = 0x316d687374656c74;  // "tletshm1": the number is the layout's version

size_t to_pages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

struct flock rank_lock(int rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

absl::Status failed(const char* call) {
  const int error = errno;
  const std::string text = absl::StrCat("shared memory: ", call, ": ", strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == ENOSPC || error == ENOMEM) return absl::ResourceExhaustedError(text);
  return absl::FailedPreconditionError(text);
}

}  // namespace

Segment::Segment(int rank, int size) : rank_(rank), size_(size) {
  const size_t n = static_cast<size_t>(size);
  lane_headers_ = kPage + to_pages(n * sizeof(RankHeader));
  slots_ = lane_headers_ + to_pages(n * n * sizeof(LaneHeader));
  lanes_ = slots_ + n * 2 * kSlotBytes;
  bytes_ = lanes_ + n * n * kChunks * kChunkBytes;
}

Segment::~Segment() {
  if (removes_name_) shm_unlink(file().c_str());  // fails if the name has been removed
  if (base_ != nullptr) munmap(base_, bytes_);
}

void Segment::join() {
  removes_name_ = true;
  rank_header(rank_).state.store(RankState::kJoined, std::memory_order_release);
  if (header().joined.fetch_add(1) + 1 == static_cast<uint32_t>(size_)) shm_unlink(file().c_str());
}

absl::Status Segment::map() {
  void* base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (base == MAP_FAILED) return failed("mmap");
  base_ = static_cast<char*>(base);
  return absl::OkStatus();
}

absl::Status Segment::lock_rank() {
  struct flock lock = rank_lock(rank_);
  if (fcntl(descriptor_.get(), F_OFD_SETLK, &lock) == 0) return absl::OkStatus();
  if (errno == EAGAIN || errno == EACCES) {
    return absl::AlreadyExistsError(absl::StrCat("shared memory: rank ", rank_, " has been opened already"));
  }
  return failed("fcntl");
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::create(int size) {
  if (size < 1 || size > kMaxRanks) {
    return absl::FailedPreconditionError(
        absl::StrCat("shared memory: supports 1 to ", kMaxRanks, " ranks, got ", size));
  }
  uint64_t random[3];  // the name's 128 bits, and the nonce
  if (getrandom(random, sizeof random, 0) != sizeof random) return failed("getrandom");
  std::unique_ptr<Segment> segment(new Segment(0, size));
  segment->name_ = absl::StrCat("/teletensor-", absl::Hex(random[0], absl::kZeroPad16),
                                absl::Hex(random[1], absl::kZeroPad16), ":", absl::Hex(random[2], absl::kZeroPad16));
  segment->descriptor_.reset(shm_open(segment->file().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!segment->descriptor_) return failed("shm_open");
  segment->removes_name_ = true;
  const int fd = segment->descriptor_.get();
  if (ftruncate(fd, static_cast<off_t>(segment->bytes_)) != 0) return failed("ftruncate");
  // All memory but the lanes, so that accesses cannot fail when the host's shared memory is exhausted.
  if (fallocate(fd, 0, 0, static_cast<off_t>(segment->lanes_)) != 0) return failed("fallocate");
  if (absl::Status status = segment->map(); !status.ok()) return status;
  if (absl::Status status = segment->lock_rank(); !status.ok()) return status;
  SegmentHeader& header = segment->header();
  header.magic = kMagic;
  header.nonce = random[2];
  const uint64_t layout[] = {static_cast<uint64_t>(size), kSlotBytes, kChunkBytes, kChunks};
  std::copy(std::begin(layout), std::end(layout), header.layout);
  segment->join();
  return segment;
}

absl::StatusOr<std::unique_ptr<Segment>> Segment::open(const std::string& name, int rank, int size) {
  if (size < 1 || size > kMaxRanks || rank < 0 || rank >= size) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory: expected a rank below ", size, ", got ", rank));
  }
  const size_t colon = name.find(':');
  uint64_t nonce = 0;
  if (colon == std::string::npos || !absl::SimpleHexAtoi(absl::string_view(name).substr(colon + 1), &nonce)) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory: malformed name \"", name, "\""));
  }
  std::unique_ptr<Segment> segment(new Segment(rank, size));
  segment->name_ = name;
  segment->descriptor_.reset(shm_open(segment->file().c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!segment->descriptor_) return failed("shm_open");
  struct stat info;
  if (fstat(segment->descriptor_.get(), &info) != 0) return failed("fstat");
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 0777) != 0600 ||
      static_cast<uint64_t>(info.st_size) != segment->bytes_) {
    return absl::InvalidArgumentError(absl::StrCat("shared memory: expected ", segment->bytes_,
                                                   " bytes accessible to this user only, got ", info.st_size));
  }
  if (absl::Status status = segment->map(); !status.ok()) return status;
  const SegmentHeader& header = segment->header();
  const uint64_t layout[] = {static_cast<uint64_t>(size), kSlotBytes, kChunkBytes, kChunks};
  if (header.magic != kMagic || header.nonce != nonce ||
      !std::equal(std::begin(layout), std::end(layout), header.layout)) {
    return absl::InvalidArgumentError("shared memory: the segment has another layout or another creator");
  }
  if (absl::Status status = segment->lock_rank(); !status.ok()) return status;
  segment->join();
  return segment;
}

bool Segment::allocate(const char* address, size_t bytes) const {
  return fallocate(descriptor_.get(), 0, address - base_, static_cast<off_t>(bytes)) == 0;
}

bool Segment::holds_lock(int rank) const {
  struct flock lock = rank_lock(rank);
  return fcntl(descriptor_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace tt::distributed::shm
