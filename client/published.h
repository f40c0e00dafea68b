// Published tensors: the bytes of one session's tensors, used by other sessions of an engine without a copy.
//
// A publication belongs to the principal that published it, and names are its own. See docs/publish.md. The functions
// wait for the engine, and throw Error if an argument is invalid or the engine refuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "client/session/session.h"

namespace tt::client {

struct PublishOptions {
  // Principals that may open the publication besides its own; "*": all. Requires read_only.
  std::vector<std::string> to;
  // The bytes never change again: writes to them throw, also in the session that publishes. Otherwise all sessions that
  // have the tensors may write to them, without an order between them.
  bool read_only = true;
  bool persist = false;  // until it is unpublished; else it ends with the session
};

// Publishes tensors of one session. `keys` are theirs in a dict; nothing for one tensor without a key. Returns the
// number of bytes.
uint64_t publish(std::string_view name, const std::optional<std::vector<std::string>>& keys,
                 absl::Span<const Tensor> tensors, const PublishOptions& options = {}, uint32_t site = 0);

struct OpenedTensors {
  std::optional<std::vector<std::string>> keys;  // nothing: one tensor was published without a key
  std::vector<Tensor> tensors;                   // leaves without gradients
};

// Opens a publication of a principal; empty: the session's own. The session is charged for its bytes until it drops the
// tensors.
OpenedTensors open_published(Session& session, std::string_view name, std::string_view principal = {},
                             uint32_t site = 0);

// Ends a publication. Sessions that have opened it keep what they opened. Operators may end those of other principals.
void unpublish(Session& session, std::string_view name, std::string_view principal = {}, uint32_t site = 0);

// Returns the publications that the session may open, as a JSON list; all of them for an operator.
std::string list_published(Session& session, uint32_t site = 0);

}  // namespace tt::client
