// ProfiledNode: records a node of the tape in the session's profile, from construction to destruction.
//
// Does nothing without a profile. Used on the session's thread, while a GraphTask runs the node.
#pragma once

#include <string>

#include "autograd/nodes/node.h"
#include "engine/session/context.h"

namespace tt::autograd {

class ProfiledNode {
 public:
  ProfiledNode(Profiler::Event::Kind kind, const Node& node) : profiler_(Context::current().profiler()) {
    if (profiler_ == nullptr) [[likely]]
      return;
    kind_ = kind;
    form_ = node.form();  // the node may free what it describes
    site_ = node.site();
    begun_ = profiler_->begin_node();
  }
  ~ProfiledNode() {
    if (profiler_ != nullptr) [[unlikely]]
      profiler_->end_node(begun_, kind_, form_, site_);
  }
  ProfiledNode(const ProfiledNode&) = delete;
  ProfiledNode& operator=(const ProfiledNode&) = delete;

 private:
  Profiler* const profiler_;
  Profiler::Event::Kind kind_ = Profiler::Event::kNode;
  std::string form_;
  uint32_t site_ = 0;
  size_t begun_ = 0;
};

}  // namespace tt::autograd
