// SessionStore: the images of sessions in the engine's folder --state-dir, from which they continue after the engine
// has ended and started again.
//
// The folder has a subfolder per principal, and a file per session that is named for the digest of its key. Files are
// replaced atomically, so that one complete image exists, and are readable by the engine's user only. A principal's
// limit of checkpoint bytes holds for its subfolder. A file is removed when its session ends, and at the latest when no
// client has resumed it for SessionRecord::persistence.wait after the engine's start. One engine at a time uses the
// folder. Thread-safe; calls may block for as long as the file system does.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/mutex.h"
#include "server/session/principal.h"
#include "server/session/session.h"
#include "server/session/session_image.h"

namespace tt::server {

class SessionStore {
 public:
  using Clock = std::chrono::steady_clock;

  // Creates the folder if it is missing, and finds the images in it. Fails if another engine uses the folder, unless
  // `takes_over`: then this process replaces that engine, and calls wait_for_lock() when it has. The message of an
  // error is one line.
  static absl::StatusOr<std::shared_ptr<SessionStore>> open(const std::filesystem::path& folder, bool takes_over);
  void wait_for_lock();
  // Lets the process that replaces this one use the folder; this one does not any more.
  void release_lock();

  // An image's file while it is written. Destroyed without commit(), it leaves the previous image.
  class Writer;
  // Requires a name of a principal that can be a folder's.
  absl::StatusOr<std::unique_ptr<Writer>> begin(const SessionRecord& record, const std::shared_ptr<Quota>& quota);
  // No effect if there is none.
  void remove(const std::string& key_digest);

  // An image's file to read.
  struct Stored {
    SessionRecord record;
    std::unique_ptr<ImageSource> source;  // after the record
    std::string path;
  };
  // NOT_FOUND if there is none, DATA_LOSS with the file's path if it is damaged.
  absl::StatusOr<Stored> find(const std::string& key_digest) const;
  // The largest number of a session of which there is an image; 0: none.
  uint64_t last_id() const { return last_id_; }
  // The session was resumed: its image does not expire.
  void keep(const std::string& key_digest);
  // Removes images whose client has not come. Returns when to call it again.
  Clock::time_point remove_expired();

 private:
  SessionStore(std::filesystem::path folder, FileDescriptor lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  absl::Status scan();
  std::filesystem::path path_of(const std::string& principal, const std::string& key_digest) const;

  struct Entry {
    std::filesystem::path path;
    Clock::time_point expires = Clock::time_point::max();  // without a client
  };
  const std::filesystem::path folder_;
  const FileDescriptor lock_;
  uint64_t last_id_ = 0;
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by digest
};

class SessionStore::Writer final : public ImageSink {
 public:
  ~Writer() override;
  void begin(uint64_t bytes) override;
  void write(const void* data, size_t size) override;
  // Writes everything to the disk, and replaces the previous image. Throws Error.
  void commit();
  uint64_t bytes() const { return bytes_; }

 private:
  friend class SessionStore;
  struct File;
  Writer(SessionStore& store, std::string digest, std::filesystem::path path, std::unique_ptr<File> file);

  SessionStore& store_;
  const std::string digest_;
  const std::filesystem::path path_;
  std::unique_ptr<File> file_;
  uint64_t bytes_ = 0;
};

}  // namespace tt::server
