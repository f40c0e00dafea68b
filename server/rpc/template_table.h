// TemplateTable: the templates of one stream; restores the instructions that a client has sent as references to them
// (proto/instruction_template.h).
//
// Its memory is limited, and charged to the session's account. One per stream, used by its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/memory/account.h"
#include "engine/schema/error.h"
#include "google/protobuf/arena.h"
#include "proto/wire.h"
#include "server/limits.h"

namespace tt::server {

class TemplateTable {
 public:
  TemplateTable(const Limits& limits, std::shared_ptr<Account> account);

  // Removes all templates.
  void forget();
  // Replaces the layout of `frame` by all of its instructions, whose memory is at most `max_bytes` by estimate. Returns
  // an error if the layout is invalid or a limit is exceeded; then the table is incomplete. `scratch` is a cleared
  // frame on the same arena.
  std::optional<Error> expand(v1::Frame* frame, v1::Frame* scratch, uint64_t max_bytes);

 private:
  struct Template {
    const v1::Instruction* instruction;
    size_t operands;
    uint64_t bytes;  // estimated memory of an instruction made from it
  };
  bool remember(const v1::Instruction& instruction);
  // Fills layout_ with the frame's layout, in which copies are written out. Returns false if a copy is invalid or the
  // layout becomes too long.
  bool read_layout(const v1::Frame& frame);

  const Limits limits_;
  google::protobuf::Arena arena_;  // memory of the templates
  std::vector<Template> templates_;
  std::vector<uint64_t> layout_;  // of the frame being expanded
  HostCharge charge_;
};

}  // namespace tt::server
