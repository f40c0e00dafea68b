#include "distributed/group/flight_recorder.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tt::distributed {
namespace {

constexpr size_t kMaxText = 256;  // of a line and of an error

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, kMaxText));
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return line;
}

}  // namespace

uint64_t FlightRecorder::add(std::string_view operation, DType dtype, size_t items, std::string_view site) {
  MutexLock lock(mutex_);
  if (records_.size() == kCapacity) records_.pop_front();
  records_.push_back({++calls_, operation, dtype, items, one_line(site), "", Clock::now(), {}, {}});
  return calls_;
}

FlightRecorder::Record* FlightRecorder::find(uint64_t call) {
  const uint64_t age = calls_ - call;  // the records are those of the last calls
  return age < records_.size() ? &records_[records_.size() - 1 - age] : nullptr;
}

void FlightRecorder::begin(uint64_t call) {
  MutexLock lock(mutex_);
  if (Record* record = find(call)) record->begun = Clock::now();
}

void FlightRecorder::end(uint64_t call, std::string_view error) {
  MutexLock lock(mutex_);
  Record* record = find(call);
  if (record == nullptr) return;
  record->ended = Clock::now();
  record->error = one_line(error);
}

std::string FlightRecorder::text(size_t max_bytes) const {
  const Clock::time_point now = Clock::now();
  const auto age = [&](Clock::time_point time) {
    if (time == Clock::time_point()) return std::string();
    return absl::StrCat(std::chrono::duration<double>(now - time).count());
  };
  MutexLock lock(mutex_);
  std::vector<std::string> lines;
  size_t bytes = 0;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    const bool begun = record->begun != Clock::time_point();
    const bool ended = record->ended != Clock::time_point();
    const std::string_view state = !record->error.empty() ? "failed" : ended ? "complete" : begun ? "running" : "queued";
    std::string line = absl::StrJoin(
        {absl::StrCat(record->call), std::string(record->operation), std::string(name(record->dtype)),
         absl::StrCat(record->items), std::string(state), age(record->called), age(record->begun), age(record->ended),
         record->site, record->error},
        "\t");
    line += '\n';
    bytes += line.size();
    if (bytes > max_bytes) break;
    lines.push_back(std::move(line));
  }
  return absl::StrJoin(lines.rbegin(), lines.rend(), "");
}

}  // namespace tt::distributed
