#include "engine/schema/custom_table.h"

#include <array>
#include <atomic>

#include "base/mutex.h"
#include "engine/schema/error.h"

namespace tt {
namespace {

constexpr size_t kIds = 0x10000 - kFirstCustomOp;

// Never destroyed: calls may outlive main.
struct Table {
  std::array<std::atomic<const CustomOperator*>, kIds> by_id{};
  Mutex mutex;
  std::vector<const CustomOperator*> added ABSL_GUARDED_BY(mutex);

  static Table& instance() {
    static Table* table = new Table;
    return *table;
  }

  const CustomOperator& add(std::unique_ptr<CustomOperator> op, uint16_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    check(ErrorKind::kValue, added.size() < kMaxCustomOps, "[", op->name(), "] a process has at most ", kMaxCustomOps,
          " custom operators");
    op->set_id(id);
    const CustomOperator* const made = op.release();
    added.push_back(made);
    by_id[id - kFirstCustomOp].store(made, std::memory_order_release);
    return *made;
  }
};

}  // namespace

const CustomOperator* find_custom_op(uint16_t id) {
  if (!is_custom(id)) return nullptr;
  return Table::instance().by_id[id - kFirstCustomOp].load(std::memory_order_acquire);
}

const CustomOperator* find_custom_op(std::string_view name) {
  for (const CustomOperator* op : all_custom_ops()) {
    if (op->name() == name) return op;
  }
  return nullptr;
}

std::vector<const CustomOperator*> all_custom_ops() {
  Table& table = Table::instance();
  MutexLock lock(table.mutex);
  return table.added;
}

const CustomOperator& add_custom_op(std::unique_ptr<CustomOperator> op) {
  Table& table = Table::instance();
  MutexLock lock(table.mutex);
  size_t at = op->declaration().digest() % kIds;
  for (;; at = (at + 1) % kIds) {  // ends: there are fewer operators than ids
    const CustomOperator* const found = table.by_id[at].load(std::memory_order_relaxed);
    if (found == nullptr) return table.add(std::move(op), static_cast<uint16_t>(kFirstCustomOp + at));
    if (found->declaration().is_same(op->declaration())) return *found;
  }
}

const CustomOperator& add_custom_op(std::unique_ptr<CustomOperator> op, uint16_t id) {
  check(ErrorKind::kValue, is_custom(id), "[", op->name(), "] expected an id of a custom operator, got ", id);
  Table& table = Table::instance();
  MutexLock lock(table.mutex);
  const CustomOperator* const found = table.by_id[id - kFirstCustomOp].load(std::memory_order_relaxed);
  if (found == nullptr) return table.add(std::move(op), id);
  check(ErrorKind::kValue, found->declaration().is_same(op->declaration()), "[", op->name(),
        "] another engine of this process has a different operator under the id ", id, ": ",
        message_part(found->name()));
  return *found;
}

void infer_custom(const Op& op, Args args, Inference* out) { find_custom_op(op.id)->infer(args, out); }

void check_custom_gradient(const Op& op) {
  check(ErrorKind::kNotImplemented, find_custom_op(op.id)->has_gradient(),
        "the operator's library declares no gradient; call it under no_grad() or with detached tensors");
}

}  // namespace tt
