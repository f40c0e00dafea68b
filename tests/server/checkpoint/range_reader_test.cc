// read_ranges: the same bytes and checksums whatever the ranges are, from the page cache and from the disk.
#include "server/checkpoint/range_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "base/file_descriptor.h"
#include "server/checkpoint/checksum.h"
#include "tests/server/checkpoint/files.h"

namespace tt::server {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

class RangeReaderTest : public ::testing::Test {
 protected:
  RangeReaderTest() : contents_((size_t{40} << 20) + 1234, '\0') {
    std::mt19937_64 random(1);
    for (size_t i = 0; i + 8 <= contents_.size(); i += 8) {
      const uint64_t bits = random();
      std::memcpy(&contents_[i], &bits, sizeof bits);
    }
    testing::write_file(folder_ / "file", contents_);
    file_.reset(open((folder_ / "file").c_str(), O_RDONLY));
  }
  void evict() const {
    ASSERT_EQ(fsync(file_.get()), 0);
    ASSERT_EQ(posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
  // Reads (offset, size) and compares.
  void check(const std::vector<std::pair<uint64_t, uint64_t>>& places) {
    std::vector<std::string> outputs;
    std::vector<FileRange> ranges;
    uint64_t total = 0;
    for (const auto& [offset, size] : places) {
      outputs.emplace_back(size, 'x');
      total += size;
    }
    for (size_t i = 0; i < places.size(); ++i) ranges.push_back({places[i].first, places[i].second, outputs[i].data()});
    CheckpointJob job(notifier_, false);
    const std::vector<uint32_t> checksums = read_ranges(file_.get(), "file", ranges, job);
    ASSERT_EQ(checksums.size(), places.size());
    EXPECT_EQ(job.done(), total);
    for (size_t i = 0; i < places.size(); ++i) {
      const std::string_view expected = std::string_view(contents_).substr(places[i].first, places[i].second);
      ASSERT_TRUE(outputs[i] == expected) << places[i].first << " " << places[i].second;
      ASSERT_EQ(checksums[i], update_checksum(0, expected.data(), expected.size()));
    }
  }

  testing::TemporaryFolder folder_;
  std::string contents_;
  FileDescriptor file_;
  const std::shared_ptr<SuspensionNotifier> notifier_ = std::make_shared<SuspensionNotifier>();
};

TEST_F(RangeReaderTest, SmallAndLargeRangesCachedAndNot) {
  const uint64_t all = contents_.size();
  const uint64_t mib = uint64_t{1} << 20;
  const std::vector<std::vector<std::pair<uint64_t, uint64_t>>> rows = {
      {},
      {{0, 0}, {all, 0}},
      {{0, 1}},
      {{all - 1, 1}},
      {{0, all}},
      {{7, all - 7}},
      {{4096, 33 * mib}},
      {{5, 20 * mib}, {20 * mib + 9, all - 20 * mib - 9}},       // a short gap
      {{5, 16 * mib}, {19 * mib + 9, all - 19 * mib - 9}},       // a long gap
      {{30 * mib, 10 * mib}, {0, 25 * mib}, {3, 25 * mib}},      // not sorted, overlapping
      {{2 * mib - 3, 6}, {2 * mib - 2, 2 * mib + 2}, {100, 1}},  // across the window's borders
  };
  for (const auto& row : rows) {
    evict();
    check(row);
    check(row);
  }
}

TEST_F(RangeReaderTest, RandomRanges) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<std::pair<uint64_t, uint64_t>> places;
    for (uint64_t count = random() % 40; count > 0; --count) {
      const uint64_t offset = random() % contents_.size();
      const uint64_t most = random() % 3 == 0 ? uint64_t{6} << 20 : 3000;
      places.emplace_back(offset, std::min(random() % most, contents_.size() - offset));
    }
    if (trial % 2 == 0) evict();
    check(places);
  }
}

TEST_F(RangeReaderTest, FilesThatEndBefore) {
  std::string into(contents_.size() + 1, '\0');
  CheckpointJob job(notifier_, false);
  const std::vector<FileRange> rows[] = {{{0, contents_.size() + 1, into.data()}},
                                         {{contents_.size() + 1, 0, into.data()}},
                                         {{UINT64_MAX, 2, into.data()}}};
  for (const auto& ranges : rows) {
    EXPECT_THAT(error_of([&] { read_ranges(file_.get(), "file", ranges, job); }), HasSubstr("the file is incomplete"));
  }
}

TEST_F(RangeReaderTest, ACancelledReadIsAnError) {
  std::string into(contents_.size(), '\0');
  CheckpointJob job(notifier_, false);
  job.cancel();
  EXPECT_THAT(error_of([&] {
                read_ranges(file_.get(), "file", {{0, into.size(), into.data()}}, job);
              }),
              HasSubstr("cancelled"));
}

}  // namespace
}  // namespace tt::server
