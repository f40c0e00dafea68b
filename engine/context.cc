#include "engine/context.h"

namespace tt {
namespace {

Context& fallback() {
  thread_local Context context;
  return context;
}

thread_local Context* current_context = nullptr;

}  // namespace

Context& Context::current() { return current_context ? *current_context : fallback(); }

ContextScope::ContextScope(Context* context) : saved_(current_context) { current_context = context; }

ContextScope::~ContextScope() { current_context = saved_; }

}  // namespace tt
