// ProgramCache: the Programs that sessions of an engine have defined, by content.
//
// Sessions of one principal that define the same bytes share one DefinedProgram, and with it what the passes have made
// of it. A Program that no session has any more is kept for the next one, until others take its place: the least
// recently defined one goes first. Each session is charged for the Programs that it has. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/schema/device.h"
#include "engine/session/programs.h"
#include "server/limits.h"

namespace tt::server {

class ProgramCache {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;           // of all Programs that are kept
  static constexpr uint64_t kMaxPrincipalBytes = uint64_t{16} << 20;  // of one principal's

  // Returns the Program that `text`, a serialized v1::Frame, defines for the principal. Throws Error.
  Programs::Entry define(const std::string& principal, const Limits& limits, std::string text,
                         const ProgramInterface& interface);

  // Applies the limits, after sessions have made Programs larger by running them.
  void trim();
  uint64_t bytes() const;

 private:
  struct Kept {
    std::string key;
    std::string principal;
    Programs::Entry program;
    uint64_t bytes;
  };
  using Position = std::list<Kept>::iterator;
  Programs::Entry find(const std::string& key);
  void keep(Kept kept);
  void apply_limits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remove(Position at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::list<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // the most recently defined first
  absl::flat_hash_map<std::string, Position> by_key_ ABSL_GUARDED_BY(mutex_);
  // Those that were removed here but that sessions may still have.
  absl::flat_hash_map<std::string, std::weak_ptr<const DefinedProgram>> in_use_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint64_t> principal_bytes_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns the Program that `text`, a serialized v1::Frame, defines; its calls name `device`, if given, instead of the
// devices of the text. Throws Error.
std::shared_ptr<const DefinedProgram> decode_definition(const Limits& limits, std::string text,
                                                        const ProgramInterface& interface,
                                                        size_t max_variants = DefinedProgram::kMaxVariants,
                                                        std::optional<Device> device = std::nullopt);

// Defines Programs for one session. Attached to its Context.
class ProgramDefiner final : public SessionService {
 public:
  ProgramDefiner(std::shared_ptr<ProgramCache> cache, std::string principal, const Limits& limits)
      : cache_(std::move(cache)), principal_(std::move(principal)), limits_(limits) {}
  ~ProgramDefiner() override { cache_->trim(); }
  // Throws Error.
  Programs::Entry define(std::string text, const ProgramInterface& interface) const {
    return cache_->define(principal_, limits_, std::move(text), interface);
  }
  std::string unsaved() const override { return ""; }

 private:
  const std::shared_ptr<ProgramCache> cache_;
  const std::string principal_;
  const Limits limits_;
};

void register_define_program(Dispatcher& dispatcher);

}  // namespace tt::server
