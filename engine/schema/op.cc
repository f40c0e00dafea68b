#include "engine/schema/op.h"

#include <algorithm>
#include <vector>

#include "engine/schema/custom_table.h"
#include "engine/schema/error.h"
#include "engine/schema/op_table.h"

namespace tt {
namespace {

// Indexes over the generated table. Built at first use, never destroyed.
struct Index {
  std::vector<const Op*> by_id;    // null if no operator has the id
  std::vector<const Op*> by_name;  // sorted
  std::vector<const Op*> all;      // sorted by id, without null entries

  Index() {
    for (const Op& op : op_table()) {
      if (op.id >= by_id.size()) by_id.resize(op.id + 1u);
      by_id[op.id] = &op;
      all.push_back(&op);
    }
    by_name = all;
    std::sort(by_name.begin(), by_name.end(), [](const Op* a, const Op* b) { return a->name < b->name; });
  }
  static const Index& instance() {
    static const Index* index = new Index;
    return *index;
  }
};

std::string_view type_name(const Param& param) {
  switch (param.type) {
    case ParamType::kTensor: return "Tensor";
    case ParamType::kTensors: return "list of Tensors";
    case ParamType::kScalar: return "Number";
    case ParamType::kInt: return "int";
    case ParamType::kFloat: return "float";
    case ParamType::kBool: return "bool";
    case ParamType::kInts: return "list of ints";
    case ParamType::kFloats: return "list of floats";
    case ParamType::kString: return "str";
    case ParamType::kDType: return "dtype";
    case ParamType::kDevice: return "device";
  }
  return "unknown";
}

std::string_view kind_name(Arg::Kind kind) {
  switch (kind) {
    case Arg::Kind::kNone: return "NoneType";
    case Arg::Kind::kTensor: return "Tensor";
    case Arg::Kind::kTensors: return "list of Tensors";
    case Arg::Kind::kBool: return "bool";
    case Arg::Kind::kInt: return "int";
    case Arg::Kind::kFloat: return "float";
    case Arg::Kind::kComplex: return "complex";
    case Arg::Kind::kInts: return "list of ints";
    case Arg::Kind::kFloats: return "list of floats";
    case Arg::Kind::kString: return "str";
    case Arg::Kind::kSlot: return "slot";
    case Arg::Kind::kSlots: return "list of slots";
  }
  return "unknown";
}

template <typename List, typename Entry>
bool has_entry(const List& list, Entry entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

[[noreturn]] void refuse(const Op& op, const Param& param, const Arg& arg) {
  std::string_view got = kind_name(arg.kind);
  if (param.type == ParamType::kTensors && arg.kind == Arg::Kind::kTensors) got = "a list with None in it";
  if (param.type == ParamType::kDType && arg.kind == Arg::Kind::kInt) got = "an invalid number";
  fail(ErrorKind::kType, "[", op.name, "] argument '", param.name, "' must be ", type_name(param), ", not ", got);
}

}  // namespace

bool Param::accepts(const Arg& arg) const {
  using Kind = Arg::Kind;
  if (arg.is_none()) return optional;
  switch (type) {
    case ParamType::kTensor: return arg.kind == Kind::kTensor || (accepts_number && arg.is_number());
    case ParamType::kTensors:
      return arg.kind == Kind::kTensors && (optional_entries || !has_entry(arg.list(), nullptr));
    case ParamType::kScalar: return arg.is_number();
    case ParamType::kFloat: return arg.is_real_number();
    case ParamType::kInt: return arg.kind == Kind::kInt && arg.size == 0;
    case ParamType::kBool: return arg.kind == Kind::kBool;
    case ParamType::kInts: return arg.kind == Kind::kInts;
    case ParamType::kFloats: return arg.kind == Kind::kFloats;
    case ParamType::kString: return arg.kind == Kind::kString;
    case ParamType::kDType: return arg.kind == Kind::kInt && is_valid(arg.integer);
    case ParamType::kDevice: return arg.kind == Kind::kInt;
  }
  return false;
}

bool Param::accepts_in_program(const Arg& arg) const {
  using Kind = Arg::Kind;
  if (arg.kind == Kind::kSlot) return type == ParamType::kTensor && arg.slot != 0;
  if (arg.kind == Kind::kSlots) {
    return type == ParamType::kTensors && (optional_entries || !has_entry(absl::MakeSpan(arg.slots, arg.size), 0u));
  }
  return arg.kind != Kind::kTensor && arg.kind != Kind::kTensors && accepts(arg);
}

void Op::check_args(Args args) const {
  check(ErrorKind::kType, args.size() == params.size(), "[", name, "] takes ", params.size(), " arguments, got ",
        args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    if (!params[i].accepts(args[i])) [[unlikely]]
      refuse(*this, params[i], args[i]);
    if (params[i].type == ParamType::kDevice && !args[i].is_none())
      decode_device(args[i].integer);  // throws if invalid
  }
}

const Op* find_op(uint16_t id) {
  const auto& by_id = Index::instance().by_id;
  if (id < by_id.size()) [[likely]]
    return by_id[id];
  const CustomOperator* const custom = find_custom_op(id);
  return custom != nullptr ? &custom->op() : nullptr;
}

const Op* find_op(std::string_view name) {
  if (name.find("::") != std::string_view::npos) {
    const CustomOperator* const custom = find_custom_op(name);
    return custom != nullptr ? &custom->op() : nullptr;
  }
  const auto& by_name = Index::instance().by_name;
  auto at = std::lower_bound(by_name.begin(), by_name.end(), name,
                             [](const Op* op, std::string_view n) { return op->name < n; });
  return at != by_name.end() && (*at)->name == name ? *at : nullptr;
}

absl::Span<const Op* const> all_ops() { return Index::instance().all; }

}  // namespace tt
