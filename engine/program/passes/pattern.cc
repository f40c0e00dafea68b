#include "engine/program/passes/pattern.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "engine/schema/error.h"
#include "engine/schema/op.h"
#include "engine/schema/op_ids.h"

namespace tt {
namespace {

constexpr double kTolerance = 1e-6;  // relative
constexpr double kLargest = 1e300;   // infinity equals itself only

}  // namespace

struct Pattern::Node {
  enum class Kind { kCall, kEither, kTensor, kTensors, kList, kNumber, kArgument, kConstant, kFlag, kNone };
  Kind kind;
  std::string name = {};  // of a tensor, a list, a number or an argument
  double value = 0;       // of a constant or a flag
  const Op* op = nullptr;
  std::vector<std::shared_ptr<const Node>> args = {};  // of a call or a list of tensors; or what may match instead
};

class Pattern::Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  std::shared_ptr<const Node> parse() {
    for (;;) {
      const std::string first = word();
      if (!take('=')) {
        std::shared_ptr<const Node> result = alternatives(first);
        check(ErrorKind::kValue, rest_.empty(), "expected the end of a pattern before '", rest_, "'");
        check(ErrorKind::kValue, result->kind == Node::Kind::kCall, "expected a pattern to end with a call");
        return result;
      }
      std::shared_ptr<const Node> part = alternatives(word());
      parts_.emplace(first, std::move(part));
    }
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    skip_spaces();
    return true;
  }
  std::string word() {
    skip_spaces();
    size_t size = 0;
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
             std::string_view("_$.@-").find(c) != std::string_view::npos;
    };
    while (size < rest_.size() && is_part(rest_[size])) ++size;
    check(ErrorKind::kValue, size > 0, "expected a name or a number in a pattern before '", rest_, "'");
    std::string word(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return word;
  }

  // One expression, or several separated by `|`.
  std::shared_ptr<const Node> alternatives(const std::string& first) {
    std::shared_ptr<const Node> one = expression(first);
    if (!take('|')) return one;
    Node node{Node::Kind::kEither};
    node.args.push_back(std::move(one));
    do node.args.push_back(expression(word()));
    while (take('|'));
    return make(std::move(node));
  }

  std::shared_ptr<const Node> expression(const std::string& first) {
    if (take('(')) return call(first);
    using Kind = Node::Kind;
    if (const auto part = parts_.find(first); part != parts_.end()) return part->second;
    if (first == "None") return make({Kind::kNone});
    if (first == "True" || first == "False") return make({Kind::kFlag, "", first == "True" ? 1.0 : 0.0});
    if (std::isdigit(static_cast<unsigned char>(first[0])) != 0)
      return make({Kind::kConstant, "", std::strtod(first.c_str(), nullptr)});
    if (first == "inf" || first == "-inf") return make({Kind::kConstant, "", std::strtod(first.c_str(), nullptr)});
    if (first[0] == '$') return make({Kind::kNumber, first});
    if (first[0] == '@') return make({Kind::kArgument, first});
    return make({std::isupper(static_cast<unsigned char>(first[0])) != 0 ? Kind::kList : Kind::kTensor, first});
  }

  std::shared_ptr<const Node> call(const std::string& name) {
    Node node{Node::Kind::kCall};
    node.op = find_op(std::string_view(name));
    check(ErrorKind::kValue, node.op != nullptr, "expected an operator in a pattern, got ", name);
    parse_arguments(')', &node);
    return make(std::move(node));
  }
  void parse_arguments(char end, Node* node) {
    while (!take(end)) {
      if (!node->args.empty()) check(ErrorKind::kValue, take(','), "expected ',' in a pattern before '", rest_, "'");
      if (take('[')) {
        Node list{Node::Kind::kTensors};
        parse_arguments(']', &list);
        node->args.push_back(make(std::move(list)));
      } else {
        node->args.push_back(alternatives(word()));
      }
    }
  }

  static std::shared_ptr<const Node> make(Node node) { return std::make_shared<const Node>(std::move(node)); }

  std::string_view rest_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Node>> parts_;
};

Pattern::Pattern(std::string_view text) : root_(Parser(text).parse()) {}

class Pattern::Matcher {
 public:
  Matcher(const Program& program, const LiveUses& uses) : instructions_(program.instructions()), uses_(uses) {}

  bool match_result(const Node& root, int index, PatternMatch* match) {
    root_ = index;
    if (!match_call(root, index, match) || !is_closed(*match)) return false;
    std::erase(match->instructions, index);
    return true;
  }

 private:
  static bool is_commutative(const Op& op) { return op.id == op_id::kAdd || op.id == op_id::kMul; }

  static bool contains(const std::vector<int>& instructions, int index) {
    return std::find(instructions.begin(), instructions.end(), index) != instructions.end();
  }

  bool match_call(const Node& node, int index, PatternMatch* match) {
    const auto seen = parts_.find(&node);
    if (seen != parts_.end()) return seen->second == index;
    const Instruction& instruction = instructions_[static_cast<size_t>(index)];
    if (instruction.op != node.op || (instruction.flags & Instruction::kInto) != 0) return false;
    const PatternMatch before = *match;
    const auto parts_before = parts_;
    const size_t orders = is_commutative(*node.op) && node.args.size() == 2 ? 2 : 1;
    for (size_t order = 0; order < orders; ++order) {
      if (match_args(node, instruction, order == 1, match)) {
        parts_[&node] = index;
        // Two calls of the pattern may be one instruction.
        if (!contains(match->instructions, index)) match->instructions.push_back(index);
        return true;
      }
      *match = before;
      parts_ = parts_before;
    }
    return false;
  }

  bool match_args(const Node& node, const Instruction& instruction, bool swapped, PatternMatch* match) {
    const auto& params = instruction.op->params;
    for (size_t i = 0; i < params.size(); ++i) {
      const size_t at = swapped && i < 2 ? 1 - i : i;
      const Arg& arg = at < instruction.args.size() ? instruction.args[at] : params[at].default_value;
      if (i < node.args.size()) {
        if (!match_arg(*node.args[i], arg, match)) return false;
      } else if (!is_default(params[at], arg)) {
        return false;
      }
    }
    return true;
  }

  static bool is_default(const Param& param, const Arg& arg) {
    const Arg& expected = param.default_value;
    if (arg.kind != expected.kind) return false;
    if (arg.is_none()) return true;
    if (arg.kind == Arg::Kind::kFloat) return arg.real == expected.real;
    if (arg.kind == Arg::Kind::kString) return arg.string() == expected.string();
    return (arg.kind == Arg::Kind::kInt || arg.kind == Arg::Kind::kBool) && arg.integer == expected.integer;
  }

  bool match_arg(const Node& node, const Arg& arg, PatternMatch* match) {
    switch (node.kind) {
      case Node::Kind::kCall: return arg.kind == Arg::Kind::kSlot && match_producer(node, arg.slot, match);
      case Node::Kind::kEither: return match_either(node, arg, match);
      case Node::Kind::kArgument: return match->arguments.try_emplace(node.name, arg).second;
      case Node::Kind::kTensor:
        return arg.kind == Arg::Kind::kSlot &&
               match->tensors.try_emplace(node.name, arg.slot).first->second == arg.slot;
      case Node::Kind::kTensors:
        if (arg.kind != Arg::Kind::kSlots || arg.size != node.args.size()) return false;
        for (uint32_t i = 0; i < arg.size; ++i) {
          if (arg.slots[i] == 0 || !match_arg(*node.args[i], slot_arg(arg.slots[i]), match)) return false;
        }
        return true;
      case Node::Kind::kList: {
        std::vector<int64_t> list;
        if (arg.kind == Arg::Kind::kInts) {
          list.assign(arg.integers, arg.integers + arg.size);
        } else if (arg.kind == Arg::Kind::kInt && arg.size == 0) {
          list = {arg.integer};
        } else {
          return false;
        }
        return match->lists.try_emplace(node.name, list).first->second == list;
      }
      case Node::Kind::kNumber: {
        if (!arg.is_real_number()) return false;
        const double number = arg.to_double();
        return match->numbers.try_emplace(node.name, number).first->second == number;
      }
      case Node::Kind::kConstant:
        return arg.is_real_number() &&
               (arg.to_double() == node.value ||
                std::abs(arg.to_double() - node.value) <= kTolerance * std::min(std::abs(node.value), kLargest));
      case Node::Kind::kNone: return arg.is_none();
      case Node::Kind::kFlag: return arg.kind == Arg::Kind::kBool && (arg.integer != 0) == (node.value != 0);
    }
    return false;
  }

  bool match_either(const Node& node, const Arg& arg, PatternMatch* match) {
    const PatternMatch before = *match;
    const auto parts_before = parts_;
    for (const std::shared_ptr<const Node>& each : node.args) {
      if (match_arg(*each, arg, match)) return true;
      *match = before;
      parts_ = parts_before;
    }
    return false;
  }

  bool match_producer(const Node& node, Slot slot, PatternMatch* match) {
    const LiveUses::Name* name = uses_.find(slot);
    if (name == nullptr || name->definition == LiveUses::kOutside) return false;
    const Instruction& producer = instructions_[static_cast<size_t>(name->definition)];
    return producer.results[0] == slot && match_call(node, name->definition, match);
  }

  // Whether only the match reads the results of its inner instructions, so that they are unused without it.
  bool is_closed(const PatternMatch& match) const {
    const auto reads_inside = [&](Slot slot) {
      size_t reads = 0;
      for (int index : match.instructions)
        reads += LiveUses::count_reads(instructions_[static_cast<size_t>(index)], slot);
      return reads;
    };
    return std::all_of(match.instructions.begin(), match.instructions.end(), [&](int index) {
      if (index == root_) return true;
      const Instruction& instruction = instructions_[static_cast<size_t>(index)];
      return std::all_of(instruction.results.begin(), instruction.results.end(), [&](Slot slot) {
        const LiveUses::Name* name = uses_.find(slot);
        return name == nullptr || (!name->is_output && name->reads == reads_inside(slot));
      });
    });
  }

  const std::vector<Instruction>& instructions_;
  const LiveUses& uses_;
  int root_ = 0;
  absl::flat_hash_map<const Node*, int> parts_;  // the instructions of the calls matched so far
};

uint16_t Pattern::op() const { return root_->op->id; }

bool Pattern::match(const Program& program, const LiveUses& uses, int index, PatternMatch* match) const {
  *match = PatternMatch();
  return Matcher(program, uses).match_result(*root_, index, match);
}

}  // namespace tt
