#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "client/serialize/pickle.h"

namespace teletensor::internal {
namespace {

constexpr size_t kMaxNodes = 10'000'000;  // values of a file, also those that a pickle refers to several times
constexpr int kMaxDepth = 100;
constexpr size_t kMaxName = 1024;  // bytes of a class's name or a storage's key
// A pickle may refer to a string many times. Copies of strings and sizes may have this many bytes, and as many times
// the pickle's.
constexpr size_t kMaxCopies = size_t{64} << 20, kMaxCopiesPerByte = 16;

[[noreturn]] void damaged(const std::string& why) { throw RuntimeError("[load] the file is damaged: " + why); }
[[noreturn]] void unsupported(const std::string& what) {
  throw NotImplementedError("[load] the file contains " + what +
                            "; load() reads tensors, numbers, strings, lists and dicts");
}

// A value while it is read. The reader owns all of them, as they may be nested deep and refer to each other in circles.
struct Node {
  enum class Kind : uint8_t { kMark, kValue, kList, kDict, kGlobal, kStorage, kTensor, kNothing };
  Kind kind = Kind::kValue;
  Value value;                             // kValue; kGlobal: "module name"
  std::vector<Node*> items;                // kList; kDict: keys and values alternate
  std::unique_ptr<const StoredView> view;  // kStorage, kTensor
};

constexpr std::pair<std::string_view, Dtype> kStorages[] = {
    {"FloatStorage", kFloat},
    {"DoubleStorage", kDouble},
    {"HalfStorage", kHalf},
    {"BFloat16Storage", kBFloat16},
    {"LongStorage", kLong},
    {"IntStorage", kInt},
    {"ShortStorage", kShort},
    {"CharStorage", kChar},
    {"ByteStorage", kByte},
    {"BoolStorage", kBool},
    {"ComplexFloatStorage", kComplexFloat},
    {"ComplexDoubleStorage", kComplexDouble},
};

class Reader {
 public:
  Reader(std::string_view bytes, const std::function<Tensor(const StoredView&)>& make) : bytes_(bytes), make_(make) {}

  Value run() {
    for (;;) {
      const uint8_t opcode = take<uint8_t>();
      if (opcode == '.') break;
      step(opcode);
    }
    if (stack_.size() != 1) damaged("expected one object");
    return convert(*stack_[0], 0);
  }

 private:
  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view take_bytes(uint64_t size) {
    if (size > bytes_.size() - at_) damaged("a pickle ends early");
    const std::string_view part = bytes_.substr(at_, size);
    at_ += size;
    return part;
  }
  std::string take_line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == bytes_.npos) damaged("a pickle ends early");
    std::string line(take_bytes(end - at_));
    ++at_;
    return line;
  }

  void count_copy(size_t bytes) {
    copied_ += bytes;
    if (copied_ > kMaxCopies + kMaxCopiesPerByte * bytes_.size()) damaged("it refers to long values too often");
  }
  Node* node_of(Node::Kind kind) {
    nodes_.emplace_back().kind = kind;
    return &nodes_.back();
  }
  Node* value_node(Value value) {
    Node* node = node_of(Node::Kind::kValue);
    node->value = std::move(value);
    return node;
  }

  void push(Node* node) {
    if (++count_ > kMaxNodes) damaged("it has more than 10 million values");
    stack_.push_back(node);
  }
  Node* pop() {
    if (stack_.empty() || stack_.back()->kind == Node::Kind::kMark) damaged("a pickle takes more objects than it has");
    Node* node = stack_.back();
    stack_.pop_back();
    return node;
  }
  Node& top() {
    if (stack_.empty()) damaged("a pickle takes more objects than it has");
    return *stack_.back();
  }
  std::vector<Node*> pop_to_mark() {
    size_t place = stack_.size();
    while (place > 0 && stack_[place - 1]->kind != Node::Kind::kMark) --place;
    if (place == 0) damaged("a pickle has no mark");
    std::vector<Node*> items(stack_.begin() + static_cast<ptrdiff_t>(place), stack_.end());
    stack_.resize(place - 1);
    return items;
  }
  void push_list(std::vector<Node*> items) {
    Node* node = node_of(Node::Kind::kList);
    node->items = std::move(items);
    push(node);
  }
  void push_tuple(size_t size) {
    std::vector<Node*> items(size);
    for (size_t i = size; i-- > 0;) items[i] = pop();
    push_list(std::move(items));
  }
  void append(Node::Kind kind, std::vector<Node*> items) {
    Node& into = top();
    if (into.kind != kind) damaged("a pickle appends to another object");
    into.items.insert(into.items.end(), items.begin(), items.end());
  }

  void put_memo(uint64_t number) {
    if (number > kMaxNodes) damaged("a number of an object is too large");
    if (number >= memo_.size()) memo_.resize(number + 1);
    if (stack_.empty()) damaged("a pickle takes more objects than it has");
    memo_[number] = stack_.back();
  }
  void push_memo(uint64_t number) {
    if (number >= memo_.size() || !memo_[number]) damaged("a pickle refers to an object that it does not have");
    push(memo_[number]);
  }
  void push_long(std::string_view digits) {
    if (digits.size() > 8) unsupported("an integer of more than 64 bits");
    int64_t value = !digits.empty() && static_cast<int8_t>(digits.back()) < 0 ? -1 : 0;
    std::memcpy(&value, digits.data(), digits.size());
    push(value_node(Value(value)));
  }
  void push_double() {
    const std::string_view raw = take_bytes(8);
    std::string reversed(raw.rbegin(), raw.rend());
    double value;
    std::memcpy(&value, reversed.data(), 8);
    push(value_node(Value(value)));
  }
  void push_text(uint64_t size) { push(value_node(Value(std::string(take_bytes(size))))); }
  void push_global(const std::string& module, const std::string& name) {
    if (module.size() > kMaxName || name.size() > kMaxName) damaged("a name has more than 1024 bytes");
    count_copy(module.size() + name.size());
    Node* node = value_node(Value(module + " " + name));
    node->kind = Node::Kind::kGlobal;
    push(node);
  }

  void step(uint8_t opcode) {
    switch (opcode) {
      case 0x80: take<uint8_t>(); break;                                    // PROTO
      case 0x95: take<uint64_t>(); break;                                   // FRAME
      case '(': push(node_of(Node::Kind::kMark)); break;                    // MARK
      case '0': pop(); break;                                               // POP
      case 'N': push(value_node(Value())); break;                           // NONE
      case 0x88: push(value_node(Value(true))); break;                      // NEWTRUE
      case 0x89: push(value_node(Value(false))); break;                     // NEWFALSE
      case 'J': push(value_node(Value(int64_t{take<int32_t>()}))); break;   // BININT
      case 'K': push(value_node(Value(int64_t{take<uint8_t>()}))); break;   // BININT1
      case 'M': push(value_node(Value(int64_t{take<uint16_t>()}))); break;  // BININT2
      case 0x8a: push_long(take_bytes(take<uint8_t>())); break;             // LONG1
      case 'G': push_double(); break;                                       // BINFLOAT
      case 'X': push_text(take<uint32_t>()); break;                         // BINUNICODE
      case 0x8c: push_text(take<uint8_t>()); break;                         // SHORT_BINUNICODE
      case 0x8d: push_text(take<uint64_t>()); break;                        // BINUNICODE8
      case '}': push(node_of(Node::Kind::kDict)); break;                    // EMPTY_DICT
      case ']':                                                             // EMPTY_LIST
      case ')': push(node_of(Node::Kind::kList)); break;                    // EMPTY_TUPLE
      case 't': push_list(pop_to_mark()); break;                            // TUPLE
      case 'l': push_list(pop_to_mark()); break;                            // LIST
      case 0x85: push_tuple(1); break;                                      // TUPLE1
      case 0x86: push_tuple(2); break;                                      // TUPLE2
      case 0x87: push_tuple(3); break;                                      // TUPLE3
      case 'a': {                                                           // APPEND
        Node* item = pop();
        append(Node::Kind::kList, {item});
        break;
      }
      case 'e': {  // APPENDS
        std::vector<Node*> items = pop_to_mark();
        append(Node::Kind::kList, std::move(items));
        break;
      }
      case 's': {  // SETITEM
        Node *value = pop(), *key = pop();
        append(Node::Kind::kDict, {key, value});
        break;
      }
      case 'u': {  // SETITEMS
        std::vector<Node*> items = pop_to_mark();
        if (items.size() % 2 != 0) damaged("a dict has a key without a value");
        append(Node::Kind::kDict, std::move(items));
        break;
      }
      case 'q': put_memo(take<uint8_t>()); break;    // BINPUT
      case 'r': put_memo(take<uint32_t>()); break;   // LONG_BINPUT
      case 0x94: put_memo(memo_.size()); break;      // MEMOIZE
      case 'h': push_memo(take<uint8_t>()); break;   // BINGET
      case 'j': push_memo(take<uint32_t>()); break;  // LONG_BINGET
      case 'c': {                                    // GLOBAL
        const std::string module = take_line();
        push_global(module, take_line());
        break;
      }
      case 0x93: {  // STACK_GLOBAL
        const Node *name = pop(), *module = pop();
        push_global(text_of(*module), text_of(*name));
        break;
      }
      case 'Q': push_storage(pop()); break;  // BINPERSID
      case 'R': reduce(); break;             // REDUCE
      case 'b': build(); break;              // BUILD
      default: unsupported("the pickle opcode " + std::to_string(opcode));
    }
  }

  static const std::string& text_of(const Node& node) {
    if (node.kind != Node::Kind::kValue || !node.value.is_string()) damaged("expected a string");
    return node.value.to_string();
  }
  static int64_t int_of(const Node& node) {
    if (node.kind != Node::Kind::kValue || !node.value.is_int()) damaged("expected an integer");
    return node.value.to_int();
  }
  static std::vector<int64_t> ints_of(const Node& node) {
    if (node.kind != Node::Kind::kList || node.items.size() > 64) damaged("expected at most 64 integers");
    std::vector<int64_t> values;
    values.reserve(node.items.size());
    for (const Node* item : node.items) values.push_back(int_of(*item));
    return values;
  }

  // ("storage", class, key, location, number of elements)
  void push_storage(Node* id) {
    if (id->kind != Node::Kind::kList || id->items.size() != 5 || text_of(*id->items[0]) != "storage" ||
        id->items[1]->kind != Node::Kind::kGlobal) {
      damaged("expected the id of a storage");
    }
    const std::string& name = id->items[1]->value.to_string();
    const auto* found = std::find_if(std::begin(kStorages), std::end(kStorages), [&](const auto& storage) {
      return name == "torch " + std::string(storage.first);
    });
    if (found == std::end(kStorages)) unsupported("a storage of the class '" + name + "'");
    if (text_of(*id->items[2]).size() > kMaxName) damaged("a name has more than 1024 bytes");
    StoredView view;
    view.key = text_of(*id->items[2]);
    view.dtype = found->second;
    view.numel = int_of(*id->items[4]);
    if (view.numel < 0) damaged("a storage has a negative size");
    push(view_node(Node::Kind::kStorage, std::move(view)));
  }

  void reduce() {
    const Node *args = pop(), *function = pop();
    if (function->kind != Node::Kind::kGlobal || args->kind != Node::Kind::kList) damaged("expected a call of a name");
    const std::string& name = function->value.to_string();
    if (name == "collections OrderedDict") {
      if (!args->items.empty()) unsupported("an OrderedDict with arguments");
      push(node_of(Node::Kind::kDict));
    } else if (name == "torch Size") {
      if (args->items.size() != 1 || args->items[0]->kind != Node::Kind::kList) damaged("expected sizes");
      push(args->items[0]);
    } else if (name == "torch._utils _rebuild_tensor_v2") {
      push(tensor(*args));
    } else if (name == "torch._utils _rebuild_parameter") {
      if (args->items.size() < 2 || args->items[0]->kind != Node::Kind::kTensor)
        damaged("expected a parameter's tensor");
      StoredView view = *args->items[0]->view;
      view.requires_grad = args->items[1]->kind == Node::Kind::kValue && args->items[1]->value.is_bool() &&
                           args->items[1]->value.to_bool();
      push(view_node(Node::Kind::kTensor, std::move(view)));
    } else {
      unsupported("a call of '" + name + "', which it does not run");
    }
  }

  // (storage, offset, sizes, strides, requires_grad, hooks, ...)
  Node* tensor(const Node& args) {
    if (args.items.size() < 4 || args.items[0]->kind != Node::Kind::kStorage) damaged("expected the parts of a tensor");
    StoredView view = *args.items[0]->view;
    view.offset = int_of(*args.items[1]);
    view.sizes = ints_of(*args.items[2]);
    view.strides = ints_of(*args.items[3]);
    if (args.items.size() > 4 && args.items[4]->kind == Node::Kind::kValue && args.items[4]->value.is_bool()) {
      view.requires_grad = args.items[4]->value.to_bool();
    }
    check_bounds(view);
    return view_node(Node::Kind::kTensor, std::move(view));
  }
  Node* view_node(Node::Kind kind, StoredView view) {
    count_copy(view.key.size() + 2 * view.sizes.size() * sizeof(int64_t));
    Node* node = node_of(kind);
    node->view = std::make_unique<const StoredView>(std::move(view));
    return node;
  }

  static void check_bounds(const StoredView& view) {
    if (view.offset < 0 || view.sizes.size() != view.strides.size()) damaged("the strides of a tensor are invalid");
    int64_t last = view.offset, count = 1;
    bool is_empty = false;
    for (size_t i = 0; i < view.sizes.size(); ++i) {
      const int64_t size = view.sizes[i], stride = view.strides[i];
      if (size < 0 || stride < 0) damaged("a size or stride of a tensor is negative");
      is_empty |= size == 0;
      int64_t reach = 0;
      if (__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) ||
          __builtin_mul_overflow(stride, std::max<int64_t>(size - 1, 0), &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        damaged("the sizes of a tensor are too large");
      }
    }
    if (!is_empty && last >= view.numel) damaged("a tensor is beyond the end of its storage");
    if (is_empty && view.offset > view.numel) damaged("a tensor is beyond the end of its storage");
  }

  // Attributes of a dict, such as a state_dict's _metadata, are not needed.
  void build() {
    pop();
    if (top().kind != Node::Kind::kDict) unsupported("an object with attributes");
  }

  Value convert(const Node& node, int depth) {
    if (depth > kMaxDepth) damaged("it is nested too deep");
    if (++converted_ > kMaxNodes) damaged("it has more than 10 million values");
    switch (node.kind) {
      case Node::Kind::kValue:
        if (node.value.is_string()) count_copy(node.value.to_string().size());
        return node.value;
      case Node::Kind::kTensor: return make_(*node.view);
      case Node::Kind::kList: {
        Value::List list;
        for (const Node* item : node.items) list.push_back(convert(*item, depth + 1));
        return list;
      }
      case Node::Kind::kDict: {
        Value::Dict dict;
        for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
          Value key = convert(*node.items[i], depth + 1);
          if (!key.is_string() && !key.is_int()) unsupported("a dict whose keys are neither strings nor integers");
          dict.emplace_back(std::move(key), convert(*node.items[i + 1], depth + 1));
        }
        return dict;
      }
      case Node::Kind::kStorage: unsupported("a storage without a tensor");
      case Node::Kind::kGlobal: unsupported("the name '" + node.value.to_string() + "'");
      case Node::Kind::kMark:
      case Node::Kind::kNothing: break;
    }
    damaged("expected an object");
  }

  const std::string_view bytes_;
  const std::function<Tensor(const StoredView&)>& make_;
  size_t at_ = 0, count_ = 0, converted_ = 0, copied_ = 0;
  std::deque<Node> nodes_;
  std::vector<Node*> stack_, memo_;
};

}  // namespace

Value read_pickle(std::string_view bytes, const std::function<Tensor(const StoredView&)>& make) {
  return Reader(bytes, make).run();
}

}  // namespace teletensor::internal
