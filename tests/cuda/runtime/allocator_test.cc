// The caching pool on simulated devices: a block is never handed out while it is in use, for any order of streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/device/devices.h"
#include "engine/memory/caching_pool.h"
#include "engine/schema/error.h"
#include "kernels/cuda/launch/launch_host.h"
#include "kernels/cuda/runtime/event_pool.h"
#include "kernels/cuda/runtime/segments.h"
#include "kernels/cuda/runtime/stream.h"
#include "tests/cuda/simulated/engine.h"
#include "tests/engine/memory/pool_model.h"

namespace tt::cuda {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr uint64_t kMemory = 96 * kMiB;  // available to the pool

// Random work in several streams. The allocating stream fills each block with a unique value, and users of the block
// read it. The simulated device defers all work, so a block that is reused too early reads a wrong value.
class RandomWorkload {
 public:
  RandomWorkload(CachingPool& pool, Device device, unsigned seed)
      : pool_(pool), device_(device), streams_(device), random_(seed), others_(simulated_runtime().held()) {
    for (int i = 0; i < 4; ++i) leases_.push_back(streams_.lease());
  }

  void step() {
    switch (random_() % 16) {
      case 0: return replace_stream();
      case 1: return pool_.empty_cache();
      case 2: return capturing_ ? end_capture() : begin_capture();
      case 3: return launch_or_drop_graph();
      case 4: return any_stream_but_captured().synchronize();
      case 5: return run_short_of_memory();
      case 6:
      case 7: return use_elsewhere();
      default: return live_.size() < 6 || (live_.size() < 40 && random_() % 2) ? allocate() : free_one();
    }
  }
  void finish() {
    if (capturing_) end_capture();
    while (!live_.empty()) free_one();
    while (!graphs_.empty()) drop_graph();
    pool_.empty_cache();  // frees made during a capture are processed now
    GraphReplayer::flush_all();
    simulated_runtime().synchronize_device();
    pool_.empty_cache();
  }
  void check() const { model_.check(pool_, simulated_runtime().held() - others_); }
  int wrong_reads() const { return *wrong_; }
  int shortages() const { return shortages_; }
  int captures() const { return captures_; }

 private:
  struct Live {
    char* p;
    size_t bytes;
    char mark;
    size_t stream;  // index into leases_
    int capture;    // capture during which it was allocated; 0: none
    Tenant tenant;
  };
  struct Captured {
    std::unique_ptr<Graph> graph;
    uint64_t pool;
  };

  CudaStream& any_stream_but_captured() {
    for (;;) {
      CudaStream& stream = *leases_[random_() % leases_.size()];
      if (stream.id() != capturing_id()) return stream;
    }
  }
  int capture_of(const CudaStream& stream) const { return stream.id() == capturing_id() ? captures_ : 0; }
  uintptr_t capturing_id() const { return capturing_ ? leases_[capture_stream_]->id() : 0; }

  void allocate() {
    const size_t at = random_() % leases_.size();
    CudaStream& stream = *leases_[at];
    const auto bytes = static_cast<size_t>(std::exp2(std::uniform_real_distribution<double>(0, 24.5)(random_)));
    const bool is_captured = capture_of(stream) != 0;
    const Tenant tenant = is_captured ? 1 : 1 + random_() % 3;
    char* p = nullptr;
    try {
      p = static_cast<char*>(pool_.allocate(bytes, {&stream, tenant}));
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kOutOfMemory) << error.message();
      ++shortages_;
      return;
    }
    ASSERT_NO_FATAL_FAILURE(model_.add(p, bytes));
    const char mark = static_cast<char>(tenant << 6 | (++marks_ & 63));
    if (!is_captured) look_for_others(stream, p, bytes, tenant);
    add(stream, [=](StreamHandle handle) { simulated_runtime().fill(p, mark, bytes, handle); });
    live_.push_back({p, bytes, mark, at, capture_of(stream), tenant});
  }
  // Checks that a new block holds only its tenant's values, or zeros.
  void look_for_others(CudaStream& stream, const char* p, size_t bytes, Tenant tenant) {
    add(stream, [wrong = wrong_.get(), p, bytes, tenant](StreamHandle handle) {
      enqueue(handle, [=] {
        for (size_t i : {size_t{0}, bytes / 2, bytes - 1}) {
          const auto byte = static_cast<unsigned char>(p[i]);
          *wrong += byte != 0 && byte >> 6 != static_cast<int>(tenant);
        }
      });
    });
  }
  void read(const Live& block, CudaStream& stream) {
    add(stream, [wrong = wrong_.get(), block](StreamHandle handle) {
      enqueue(handle, [wrong, block] {
        for (size_t i : {size_t{0}, block.bytes / 2, block.bytes - 1}) *wrong += block.p[i] != block.mark;
      });
    });
  }
  // Issues work as kernels do: repeated sequences are held back and become a graph.
  template <typename F>
  static void add(CudaStream& stream, const F& f) {
    stream.add(*KernelLaunchWith<F>(
        [](const KernelLaunch& launch, StreamHandle handle) { parameters_of<F>(launch)(handle); }, f));
  }
  void free_one() {
    std::swap(live_[random_() % live_.size()], live_.back());
    const Live block = live_.back();
    live_.pop_back();
    // A graph writes its blocks when it is launched. Outside the capture the launch time is unknown, and a launch
    // does not preserve earlier contents.
    CudaStream& owner = *leases_[block.stream];
    if (block.capture == capture_of(owner)) read(block, owner);
    model_.remove(block.p);
    pool_.deallocate(block.p, block.bytes, block.tenant);
  }
  // Returns the stream to its pool, possibly before its blocks are freed.
  void replace_stream() {
    const size_t at = random_() % leases_.size();
    if (leases_[at]->id() == capturing_id()) return;
    for (const Live& block : live_) {
      if (block.stream == at) return;  // a live block still belongs to the stream
    }
    leases_[at] = streams_.lease();
  }
  void use_elsewhere() {
    if (live_.empty()) return;
    const Live& block = live_[random_() % live_.size()];
    CudaStream& owner = *leases_[block.stream];
    CudaStream& user = any_stream_but_captured();
    if (block.capture != 0 || owner.id() == capturing_id()) return;
    user.wait(*owner.record());
    read(block, user);
    pool_.record_stream(block.p, user);
  }
  void run_short_of_memory() {
    simulated_runtime().fail_allocations(true);
    allocate();
    simulated_runtime().fail_allocations(false);
  }

  void begin_capture() {
    capture_stream_ = random_() % leases_.size();
    leases_[capture_stream_]->begin_capture();
    const bool shared = !graphs_.empty() && random_() % 2;
    capture_pool_ = shared ? graphs_.back().pool : pool_.make_pool();
    pool_.begin_pool(capture_pool_, *leases_[capture_stream_]);
    capturing_ = true;
    ++captures_;
  }
  void end_capture() {
    CudaStream& stream = *leases_[capture_stream_];
    std::unique_ptr<Graph> graph = stream.end_capture();
    pool_.end_pool(capture_pool_, stream);
    capturing_ = false;
    graphs_.push_back({std::move(graph), capture_pool_});
  }
  void launch_or_drop_graph() {
    if (capturing_ || graphs_.empty()) return;
    if (random_() % 4 == 0) return drop_graph();
    graphs_[random_() % graphs_.size()].graph->replay();
    GraphReplayer::flush_all();
    simulated_runtime().synchronize_device();  // graphs that share memory must not overlap
  }
  void drop_graph() {
    const uint64_t pool = graphs_.back().pool;
    graphs_.pop_back();
    pool_.release_pool(pool);
  }

  CachingPool& pool_;
  const Device device_;
  StreamPool streams_;
  std::mt19937 random_;
  const uint64_t others_;  // bytes held by other pools of the process
  PoolModel model_;
  std::vector<std::unique_ptr<CudaStream>> leases_;
  std::vector<Live> live_;
  std::vector<Captured> graphs_;
  bool capturing_ = false;
  size_t capture_stream_ = 0;
  uint64_t capture_pool_ = 0;
  std::shared_ptr<int> wrong_ = std::make_shared<int>(0);
  int shortages_ = 0;
  int captures_ = 0;
  unsigned marks_ = 0;
};

std::unique_ptr<CachingPool> make_pool(Device device, const char* conf) {
  PoolParts parts;
  parts.segments = std::make_unique<DeviceMemory>(device);
  parts.events = std::make_unique<EventPool>();
  parts.ranges = std::make_unique<VirtualMemory>(device, kMemory);
  PoolSizes sizes;
  sizes.granule = 512;
  sizes.page = 2 * kMiB;
  auto pool = std::make_unique<CachingPool>(device, std::move(parts), sizes, parse_alloc_conf(conf));
  pool->set_limit(kMemory);
  return pool;
}

class AllocatorRandomTest : public testing::TestWithParam<const char*> {};

TEST_P(AllocatorRandomTest, KeepsInvariantsAndValues) {
  SimulatedEngine engine;
  make_current(engine.gpu());
  const std::unique_ptr<CachingPool> pool = make_pool(engine.gpu(), GetParam());
  const uint64_t before = engine.runtime().held();
  for (unsigned seed = 0; seed < 4; ++seed) {
    RandomWorkload workload(*pool, engine.gpu(), seed);
    for (int step = 0; step < 1500; ++step) {
      ASSERT_NO_FATAL_FAILURE(workload.step()) << "seed " << seed << ", step " << step;
      ASSERT_NO_FATAL_FAILURE(workload.check()) << "seed " << seed << ", after step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(workload.finish());
    EXPECT_EQ(workload.wrong_reads(), 0);
    EXPECT_GT(workload.shortages(), 0);
    EXPECT_GT(workload.captures(), 10);
    EXPECT_EQ(engine.runtime().held(), before) << "all memory must be freed";
    EXPECT_TRUE(pool->snapshot().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Configurations, AllocatorRandomTest,
                         testing::Values("", "expandable_segments:True", "max_split_size_mb:21",
                                         "garbage_collection_threshold:0.4", "roundup_power2_divisions:4"));

struct AllocatorTest : testing::Test {
  SimulatedEngine engine;
  Backend& backend = Devices::instance().backend(engine.gpu());
  Stream& stream = engine.context().stream(engine.gpu());
};

TEST_F(AllocatorTest, StagingIsReusedAfterCopyOnly) {
  Allocator& staging = backend.staging();
  auto* p = static_cast<char*>(staging.allocate(4096));
  auto* q = static_cast<char*>(staging.allocate(4096));
  void* on_device = backend.allocator().allocate(4096, {&stream});
  std::fill_n(p, 4096, 'x');
  stream.copy(on_device, p, 4096);
  staging.record_stream(p, stream);
  staging.deallocate(p, 4096);
  auto* next = static_cast<char*>(staging.allocate(4096));
  std::fill_n(next, 4096, 'y');
  stream.copy(q, on_device, 4096);
  stream.synchronize();
  EXPECT_EQ(q[0], 'x');
  EXPECT_EQ(q[4095], 'x');
  staging.deallocate(next, 4096);
  staging.deallocate(q, 4096);
  backend.allocator().deallocate(on_device, 4096);
}

TEST_F(AllocatorTest, PinnedPagesAreReadInStreamOrder) {
  std::vector<char> pages(4096, 'x');
  void* on_device = backend.allocator().allocate(pages.size(), {&stream});
  const StreamHandle queue = static_cast<CudaStream&>(stream).handle();
  stream.copy(on_device, pages.data(), pages.size());
  EXPECT_FALSE(engine.runtime().has_work(queue));  // pageable memory is read before the call returns
  ASSERT_TRUE(backend.pin(pages.data(), pages.size()));
  stream.copy(on_device, pages.data(), pages.size());
  EXPECT_TRUE(engine.runtime().has_work(queue));
  std::fill(pages.begin(), pages.end(), 'y');
  char first = 0;
  stream.copy(&first, on_device, 1);
  stream.synchronize();
  EXPECT_EQ(first, 'y');
  backend.unpin(pages.data());
  engine.runtime().refuse_pinning(true);
  EXPECT_FALSE(backend.pin(pages.data(), pages.size()));
  engine.runtime().refuse_pinning(false);
  EXPECT_FALSE(Devices::instance().backend(Device{}).pin(pages.data(), pages.size()));  // the CPU needs no pinning
  backend.allocator().deallocate(on_device, pages.size());
}

TEST_F(AllocatorTest, CaptureIncludesZeroingForAnotherTenant) {
  const uint64_t pool = backend.allocator().make_pool();
  Allocator& allocator = backend.allocator();
  stream.begin_capture();
  allocator.begin_pool(pool, stream);
  auto* p = static_cast<char*>(allocator.allocate(4096, {&stream, 7}));
  const std::unique_ptr<Graph> graph = stream.end_capture();
  allocator.end_pool(pool, stream);
  std::string bytes(4096, 'x');
  stream.copy(p, bytes.data(), bytes.size());
  graph->replay();
  stream.copy(bytes.data(), p, bytes.size());
  stream.synchronize();
  EXPECT_EQ(bytes, std::string(4096, '\0'));
  allocator.deallocate(p, 4096, 7);
  allocator.release_pool(pool);
}

TEST_F(AllocatorTest, FreeingNeverWaitsForTheDevice) {
  Allocator& pool = backend.allocator();
  const std::unique_ptr<Stream> other = backend.lease_stream();
  void* p = pool.allocate(4096, {&stream});
  pool.record_stream(p, *other);
  engine.runtime().forget_calls();
  pool.deallocate(p, 4096);
  EXPECT_THAT(engine.runtime().calls(), testing::ElementsAre("cudaEventRecord"));
}

TEST_F(AllocatorTest, OutOfMemoryKeepsTensors) {
  Allocator& pool = backend.allocator();
  void* held = pool.allocate(100 * kMiB, {&stream, kNoTenant, &engine.context().account});
  const AllocatorStats before = pool.stats();
  try {
    pool.allocate(size_t{1} << 40, {&stream});
    FAIL() << "the allocation did not fail";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    EXPECT_THAT(error.message(), testing::HasSubstr("out of memory on cuda:0: requested 1 TiB"));
    EXPECT_THAT(error.message(), testing::HasSubstr("of 1 GiB are free on the device"));
    EXPECT_THAT(error.message(), testing::HasSubstr("held by: session 1 100 MiB"));
  }
  EXPECT_EQ(pool.stats().all.requested.now, before.all.requested.now);
  pool.deallocate(held, 100 * kMiB);
}

}  // namespace
}  // namespace tt::cuda
