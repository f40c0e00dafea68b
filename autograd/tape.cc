#include "autograd/tape.h"

#include "autograd/task.h"
#include "engine/schema/error.h"

namespace tt::autograd {
namespace {
// Tasks nest as deep as the client's backward functions call backward themselves.
constexpr size_t kMaxTasks = 1024;
}  // namespace

Tape::Tape() : meter_(new TapeMeter) { meter_->enter(); }
Tape::~Tape() {
  tasks_.clear();
  histories_.sever();
  meter_->leave();
}

Tape& Tape::current() { return Context::current().services.get<Tape>(); }

void Tape::add(int64_t number, std::unique_ptr<Task> task) {
  check(tasks_.size() < kMaxTasks, "too many backward passes under way, got ", tasks_.size());
  check(tasks_.emplace(number, std::move(task)).second, "a backward pass ", number, " is under way already");
}

Task& Tape::find(int64_t number) const {
  auto found = tasks_.find(number);
  check(found != tasks_.end(), "no backward pass ", number, " is under way");
  return *found->second;
}

void Tape::drop(int64_t number) { tasks_.erase(number); }

}  // namespace tt::autograd
