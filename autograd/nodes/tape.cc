#include "autograd/nodes/tape.h"

#include "engine/schema/error.h"

namespace tt::autograd {
namespace {
// Maximum number of unfinished passes. Passes nest: a client's backward function may call backward itself.
constexpr size_t kMaxTasks = 1024;
}  // namespace

Tape::Tape() : meter_(new TapeMeter) { meter_->enter(); }
Tape::~Tape() {
  tasks_.clear();
  suspended_.reset();
  histories_.break_cycles();
  meter_->leave();
}

Tape& Tape::current() { return Context::current().services.get<Tape>(); }

void Tape::add(int64_t number, std::shared_ptr<Task> task) {
  check(tasks_.size() < kMaxTasks, "too many unfinished backward passes, got ", tasks_.size());
  check(tasks_.emplace(number, std::move(task)).second, "backward pass ", number, " already exists");
}

Task& Tape::find(int64_t number) const {
  auto found = tasks_.find(number);
  check(found != tasks_.end(), "backward pass ", number, " does not exist");
  return *found->second;
}

void Tape::drop(int64_t number) { tasks_.erase(number); }

}  // namespace tt::autograd
