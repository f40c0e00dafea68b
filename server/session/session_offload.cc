#include "server/session/session_offload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/device/devices.h"
#include "engine/memory/alloc_scope.h"
#include "engine/memory/bytes.h"
#include "engine/schema/error.h"
#include "server/checkpoint/checksum.h"

namespace tt::server {
namespace {

// Pieces in which bytes are copied: large enough for a disk and a GPU's bus.
constexpr size_t kPieceBytes = size_t{4} << 20;

bool on_cpu(const Storage& storage) { return storage.device().type == DeviceType::kCPU; }

// Memory of the host that a device accesses directly.
class StagingPiece {
 public:
  explicit StagingPiece(Device device)
      : allocator_(Devices::instance().backend(device).staging()),
        data_(static_cast<char*>(allocator_.allocate(kPieceBytes))) {}
  ~StagingPiece() { allocator_.deallocate(data_, kPieceBytes); }
  StagingPiece(const StagingPiece&) = delete;
  StagingPiece& operator=(const StagingPiece&) = delete;
  char* data() const { return data_; }

 private:
  Allocator& allocator_;
  char* const data_;
};

// Calls visit(at, size) for the pieces of `bytes` bytes, in order.
void for_pieces(size_t bytes, absl::FunctionRef<void(size_t, size_t)> visit) {
  for (size_t at = 0; at < bytes; at += kPieceBytes) visit(at, std::min(kPieceBytes, bytes - at));
}

// Calls visit(data, size) with the storage's bytes, in order.
void visit_bytes(const Storage& storage, absl::FunctionRef<void(const char*, size_t)> visit) {
  const char* const data = static_cast<const char*>(storage.data());
  if (on_cpu(storage)) return for_pieces(storage.bytes(), [&](size_t at, size_t size) { visit(data + at, size); });
  const StagingPiece staging(storage.device());
  Stream& stream = AllocScope::current().stream(storage.device());
  for_pieces(storage.bytes(), [&](size_t at, size_t size) {
    stream.copy(staging.data(), data + at, size);
    stream.synchronize();
    visit(staging.data(), size);
  });
}

// Calls fill(into, size) for the storage's bytes, in order.
void fill_bytes(const Storage& storage, absl::FunctionRef<void(char*, size_t)> fill) {
  char* const data = static_cast<char*>(storage.data());
  if (on_cpu(storage)) return for_pieces(storage.bytes(), [&](size_t at, size_t size) { fill(data + at, size); });
  const StagingPiece staging(storage.device());
  Stream& stream = AllocScope::current().stream(storage.device());
  for_pieces(storage.bytes(), [&](size_t at, size_t size) {
    fill(staging.data(), size);
    stream.copy(data + at, staging.data(), size);
    stream.synchronize();
  });
}

void check_checksum(uint32_t expected, uint32_t got) {
  check(got == expected, "[offload] a file in --offload-dir is damaged: a checksum differs");
}

}  // namespace

// Host memory with the bytes of a storage on a GPU. While it exists, the account is charged for host memory instead.
class SessionOffload::HostBytes {
 public:
  HostBytes(std::shared_ptr<Account> account, Device device, size_t bytes)
      : account_(std::move(account)), device_(device), bytes_(bytes) {
    charge(Device{});
    try {
      data_ = static_cast<char*>(allocator().allocate(bytes, {nullptr, account_->tenant(), &account_, 0}));
    } catch (...) {
      account_->move(bytes_, Device{}, device_, /*is_limited=*/false);
      throw;
    }
  }
  ~HostBytes() {
    if (is_charged_) account_->move(bytes_, Device{}, device_, /*is_limited=*/false);
    allocator().deallocate(data_, bytes_, account_->tenant());
  }
  HostBytes(const HostBytes&) = delete;
  HostBytes& operator=(const HostBytes&) = delete;
  char* data() const { return data_; }
  // Charges the account for memory of the device again. Throws Error(kOutOfMemory).
  void charge_device() {
    charge(device_);
    is_charged_ = false;
  }
  // Undoes charge_device().
  void charge_host() {
    if (!std::exchange(is_charged_, true)) account_->move(bytes_, device_, Device{}, /*is_limited=*/false);
  }

 private:
  static Allocator& allocator() { return Devices::instance().allocator(Device{}); }
  void charge(Device to) {
    const Device from = to == device_ ? Device{} : device_;
    check(ErrorKind::kOutOfMemory, account_->move(bytes_, from, to), "out of memory on ", to_string(to), ": ",
          bytes_text(bytes_), " cannot move there; ", account_->refusal(bytes_, to));
  }

  const std::shared_ptr<Account> account_;
  const Device device_;
  const size_t bytes_;
  char* data_ = nullptr;
  bool is_charged_ = true;
};

struct SessionOffload::Record {
  Ref<Storage> storage;
  uint64_t offset = 0;              // in the file
  uint32_t checksum = 0;            // of the bytes in the file
  std::unique_ptr<HostBytes> host;  // null: the bytes are in the file
};

// What left at one time.
struct SessionOffload::Part {
  std::unique_ptr<OffloadFolder::File> file;  // null: in host memory
  std::vector<Record> records;
};

SessionOffload::SessionOffload(std::shared_ptr<OffloadPlace> place, std::string principal,
                               std::shared_ptr<Account> account)
    : place_(std::move(place)), principal_(std::move(principal)), account_(std::move(account)) {}

SessionOffload::~SessionOffload() { clear(); }

void SessionOffload::set_bytes(uint64_t bytes) {
  place_->bytes.fetch_add(bytes - this->bytes(), std::memory_order_relaxed);
  bytes_.store(bytes, std::memory_order_relaxed);
}

SessionOffload::Found SessionOffload::find(const Storage& storage) const {
  for (const std::unique_ptr<Part>& part : parts_) {
    for (const Record& record : part->records) {
      if (record.storage.get() == &storage) return {part.get(), &record};
    }
  }
  return {};
}

std::vector<Ref<Storage>> SessionOffload::choose(std::vector<Ref<Storage>> storages, uint64_t wanted, uint64_t room) {
  std::stable_sort(storages.begin(), storages.end(),
                   [](const Ref<Storage>& a, const Ref<Storage>& b) { return a->bytes() > b->bytes(); });
  std::vector<Ref<Storage>> chosen;
  uint64_t total = 0;
  for (Ref<Storage>& storage : storages) {
    if (total >= wanted) break;
    if (storage->bytes() > room - total) continue;
    total += storage->bytes();
    chosen.push_back(std::move(storage));
  }
  return chosen;
}

void SessionOffload::copy_out(Part& part, Record& record) {
  const Storage& storage = *record.storage;
  if (!part.file) {
    record.host = std::make_unique<HostBytes>(account_, storage.device(), storage.bytes());
    char* at = record.host->data();
    return visit_bytes(storage, [&](const char* data, size_t size) {
      std::memcpy(at, data, size);
      at += size;
    });
  }
  record.offset = part.file->size();
  visit_bytes(storage, [&](const char* data, size_t size) {
    record.checksum = update_checksum(record.checksum, data, size);
    part.file->append(data, size);
  });
}

uint64_t SessionOffload::move_out(std::vector<Ref<Storage>> storages, uint64_t wanted) {
  OffloadFolder* const folder = place_->folder.get();
  storages = choose(std::move(storages), wanted, folder != nullptr ? folder->room(principal_) : UINT64_MAX);
  uint64_t total = 0;
  for (const Ref<Storage>& storage : storages) total += storage->bytes();
  if (total == 0) return 0;
  auto part = std::make_unique<Part>();
  part->records.reserve(storages.size());
  parts_.reserve(parts_.size() + 1);
  if (folder != nullptr) part->file = folder->create(principal_, total);
  for (Ref<Storage>& storage : storages) {
    Record& record = part->records.emplace_back();
    record.storage = std::move(storage);
    copy_out(*part, record);
  }
  if (part->file) part->file->close();
  // From here on nothing fails.
  for (Record& record : part->records) record.storage->release_bytes();
  parts_.push_back(std::move(part));
  set_bytes(bytes() + total);
  place_->left.fetch_add(1, std::memory_order_relaxed);
  return total;
}

void SessionOffload::copy_back(Part& part, const Record& record) {
  const Storage& storage = *record.storage;
  if (record.host) {
    const char* at = record.host->data();
    return fill_bytes(storage, [&](char* into, size_t size) {
      std::memcpy(into, at, size);
      at += size;
    });
  }
  uint64_t at = record.offset;
  uint32_t checksum = 0;
  fill_bytes(storage, [&](char* into, size_t size) {
    part.file->read(at, into, size);
    checksum = update_checksum(checksum, into, size);
    at += size;
  });
  check_checksum(record.checksum, checksum);
}

void SessionOffload::drop_unused() {
  uint64_t left = 0;
  for (const std::unique_ptr<Part>& part : parts_) {
    std::erase_if(part->records, [](const Record& record) { return record.storage->ref_count() == 1; });
    for (const Record& record : part->records) left += record.storage->bytes();
  }
  std::erase_if(parts_, [](const std::unique_ptr<Part>& part) { return part->records.empty(); });
  set_bytes(left);
}

void SessionOffload::bring_back() {
  drop_unused();
  if (!any()) return;
  std::vector<const Record*> all;
  for (const std::unique_ptr<Part>& part : parts_) {
    for (const Record& record : part->records) all.push_back(&record);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Record* a, const Record* b) { return a->storage->bytes() > b->storage->bytes(); });
  try {
    for (const Record* record : all) {
      if (record->host) record->host->charge_device();
      record->storage->allocate_bytes();
    }
    for (const std::unique_ptr<Part>& part : parts_) {
      for (const Record& record : part->records) copy_back(*part, record);
      if (part->file) part->file->close();
    }
  } catch (...) {
    for (const Record* record : all) {
      if (record->storage->can_release_bytes()) record->storage->release_bytes();
      if (record->host) record->host->charge_host();
    }
    for (const std::unique_ptr<Part>& part : parts_) {
      if (part->file) part->file->close();
    }
    place_->failures.fetch_add(1, std::memory_order_relaxed);
    throw;
  }
  parts_.clear();
  set_bytes(0);
  place_->returned.fetch_add(1, std::memory_order_relaxed);
}

void SessionOffload::read(const Storage& storage, absl::FunctionRef<void(const char*, size_t)> visit) {
  const auto [part, record] = find(storage);
  check(record != nullptr, "[offload] expected a storage that has left its device");
  if (record->host) return visit(record->host->data(), storage.bytes());
  std::vector<char> piece(std::min(kPieceBytes, storage.bytes()));
  uint32_t checksum = 0;
  for (size_t at = 0; at < storage.bytes(); at += piece.size()) {
    const size_t size = std::min(piece.size(), storage.bytes() - at);
    part->file->read(record->offset + at, piece.data(), size);
    checksum = update_checksum(checksum, piece.data(), size);
    visit(piece.data(), size);
  }
  part->file->close();
  check_checksum(record->checksum, checksum);
}

void SessionOffload::clear() {
  parts_.clear();
  set_bytes(0);
}

}  // namespace tt::server
