// Admin: administrative calls to an engine. Needs no session.
//
// Every call except status() requires the engine's admin token. status() accepts either token; with the user token the
// reply omits the sessions' programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/connection/trust.h"
#include "engine/schema/device.h"
#include "proto/wire.h"
#include "teletensor/v1/admin.pb.h"

namespace tt::client {

// Thread-safe. Every call throws Error (kConnection) if the engine does not answer within the deadline, if the token is
// wrong, or if the call requires the admin token and has only the user token.
class Admin {
 public:
  // `address` and `token` are as in ConnectOptions, except that an empty address means TELETENSOR_ADDRESS, then the
  // unix socket of this user's own engine. The default is not a TCP address, because any local user could listen on one
  // and receive the token. An empty admin token is resolved by find_admin_token().
  Admin(const std::string& address, const std::string& token, double deadline_seconds = 5,
        const std::string& admin_token = "", const TrustOptions& trust = {});
  ~Admin();

  v1::StatusReply status() const;
  v1::EmptyCacheReply empty_cache() const;
  v1::SnapshotReply snapshot(Device device) const;
  // Returns once the engine has stopped accepting sessions. The engine exits when the existing sessions have ended, or
  // after `seconds`.
  void drain(double seconds) const;
  // Cancels the session's work and frees its memory. Throws Error (kValue) if no session has that id.
  void end_session(uint64_t id) const;
  // Replaces the engine's process by a new one of the installed program, which continues all sessions. Waits `seconds`
  // for work in progress; `force` ends the sessions that cannot be passed on. Throws Error (kValue) with the reasons if
  // the engine refuses.
  v1::UpgradeReply upgrade(double seconds, bool force) const;
  // Throws Error (kValue) if the engine does not sample its sessions.
  v1::ProfileReply profile() const;
  const std::string& address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::client
