#include "server/daemon/prepared_memory.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/device/devices.h"
#include "engine/device/parallel.h"
#include "engine/memory/block.h"
#include "engine/memory/caching_pool.h"
#include "engine/schema/error.h"

namespace tt::server {
namespace {

constexpr PoolSizes kSizes;  // the CPU's
// So many different sizes fit into an environment variable.
constexpr size_t kMaxSizes = 2000;
constexpr size_t kPieceBytes = size_t{32} << 20;
constexpr size_t kPageBytes = size_t{4} << 10;  // the smallest of all systems
constexpr int kMaxThreads = 8;

Allocator& pool() { return Devices::instance().allocator(Device()); }

}  // namespace

std::string memory_in_use() {
  uint64_t small = 0;
  std::map<uint64_t, uint64_t, std::greater<>> large;  // counts by size
  for (const BlockInfo& block : pool().snapshot()) {
    if (!block.in_use) continue;
    if (block.size <= kSizes.small_limit) {
      small += block.size;
    } else {
      ++large[block.size];
    }
  }
  std::string text = absl::StrCat(small);
  size_t sizes = 0;
  for (const auto& [size, count] : large) {
    if (++sizes > kMaxSizes) break;
    absl::StrAppend(&text, ",", size, "x", count);
  }
  return text;
}

PreparedMemory::PreparedMemory(absl::string_view description, std::chrono::steady_clock::time_point deadline) {
  const auto in_time = [&] { return std::chrono::steady_clock::now() < deadline; };
  std::vector<std::pair<uint64_t, uint64_t>> wanted;  // sizes and counts
  for (absl::string_view each : absl::StrSplit(description, ',')) {
    const size_t x = each.find('x');
    uint64_t size = 0, count = 0;
    if (!absl::SimpleAtoi(each.substr(0, x), &size)) return;
    if (x == absl::string_view::npos) {  // bytes in small blocks
      wanted.emplace_back(kSizes.small_limit, size / kSizes.small_limit + (size % kSizes.small_limit != 0));
    } else if (absl::SimpleAtoi(each.substr(x + 1), &count)) {
      wanted.emplace_back(size, count);
    }
  }
  // A tenant of its own gets zeros only, and leaves them.
  const Tenant tenant = Account::new_tenant();
  std::vector<Piece> pieces;
  try {
    for (const auto& [size, count] : wanted) {
      for (uint64_t i = 0; i < count && in_time(); ++i) {
        auto* const data = static_cast<char*>(pool().allocate(size, {.tenant = tenant}));
        if (data == nullptr) break;  // a size of 0
        blocks_.push_back({data, size});
        for (size_t at = 0; at < size; at += kPieceBytes)
          pieces.push_back({data + at, std::min(kPieceBytes, size - at)});
      }
    }
  } catch (const Error&) {  // out of memory: whether there is enough for the sessions is found when they are read
  }
  std::atomic<size_t> next{0}, done{0};
  const auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < pieces.size() && in_time();) {
      volatile char* const data = pieces[i].data;
      for (size_t at = 0; at < pieces[i].bytes; at += kPageBytes) data[at] = 0;
      done += pieces[i].bytes;
    }
  };
  // The old process's clients go on computing meanwhile, so half of the cores are theirs.
  std::vector<std::thread> threads;
  try {
    for (int i = 1; i < std::clamp(num_threads() / 2, 1, kMaxThreads); ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {  // without more threads it takes longer
  }
  work();
  for (std::thread& thread : threads) thread.join();
  bytes_ = done;
}

PreparedMemory::~PreparedMemory() {
  for (const Piece& block : blocks_) pool().deallocate(block.data, block.bytes, Block::kZeros);
}

}  // namespace tt::server
