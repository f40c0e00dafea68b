#include "client/published.h"

#include <cstring>
#include <map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/schema/error.h"
#include "engine/schema/op_ids.h"

namespace tt::client {
namespace {

const Op& op_of(uint16_t id) { return *find_op(id); }

CallOptions without_grad(uint32_t site) {
  CallOptions options;
  options.grad = false;
  options.site = site;
  return options;
}

Arg optional_text(std::string_view text) { return text.empty() ? Arg() : Arg(text); }

// A list as lines of text.
std::string lines_of(const std::vector<std::string>& list, std::string_view what) {
  for (const std::string& line : list) {
    check(ErrorKind::kValue, line.find('\n') == line.npos, "[publish] expected ", what,
          " without line breaks, got one with some");
  }
  return absl::StrJoin(list, "\n");
}

// Reads the numbers of a description from an engine.
class LayoutReader {
 public:
  explicit LayoutReader(const std::string& bytes) : numbers_(bytes.size() / sizeof(int64_t)) {
    if (!numbers_.empty()) std::memcpy(numbers_.data(), bytes.data(), numbers_.size() * sizeof(int64_t));
  }
  int64_t next() {
    check(at_ < numbers_.size(), "[open] the engine sent an incomplete description");
    return numbers_[at_++];
  }
  // A number of things that follow, or a size.
  int64_t natural(int64_t limit) {
    const int64_t number = next();
    check(number >= 0 && number <= limit, "[open] the engine sent an invalid description: expected a number from 0 to ",
          limit, ", got ", number);
    return number;
  }
  int64_t left() const { return static_cast<int64_t>(numbers_.size() - at_); }

 private:
  std::vector<int64_t> numbers_;
  size_t at_ = 0;
};

Tensor view(Session& session, uint16_t op, const std::vector<Arg>& args, uint32_t site) {
  return session.call(op_of(op), args, without_grad(site))[0];
}

// A storage that was opened, as flat tensors of the dtypes that occur in it.
class OpenedStorage {
 public:
  OpenedStorage(Session& session, int64_t opened, int64_t index, int64_t bytes, Device device, uint32_t site)
      : session_(session), bytes_(bytes), site_(site) {
    const int64_t size[] = {bytes};
    const Arg args[] = {Arg(opened), Arg(index), Arg(SizesView(size)), Arg(DType::kUInt8), Arg(device)};
    bytes_tensor_ = session.call(op_of(op_id::kOpenedStorage), args, without_grad(site))[0];
  }

  const Tensor& bytes_tensor() const { return bytes_tensor_; }
  Tensor tensor(const TensorMeta& meta) {
    const Tensor& flat = flat_of(meta.dtype);
    const Tensor strided =
        view(session_, op_id::kAsStrided,
             {Arg(flat.get()), Arg(SizesView(meta.sizes)), Arg(SizesView(meta.strides)), Arg(meta.offset)}, site_);
    return view(session_, op_id::kDetach, {Arg(strided.get())}, site_);
  }

 private:
  const Tensor& flat_of(DType dtype) {
    Tensor& flat = flat_[dtype];
    if (flat) return flat;
    const auto item = static_cast<int64_t>(item_size(dtype));
    const int64_t size[] = {bytes_ / item * item}, stride[] = {1};
    const Tensor whole =
        view(session_, op_id::kAsStrided,
             {Arg(bytes_tensor_.get()), Arg(SizesView(size)), Arg(SizesView(stride)), Arg(int64_t{0})}, site_);
    return flat = view(session_, op_id::kViewOfDtype, {Arg(whole.get()), Arg(dtype)}, site_);
  }

  Session& session_;
  const int64_t bytes_;
  const uint32_t site_;
  Tensor bytes_tensor_;
  std::map<DType, Tensor> flat_;
};

TensorMeta read_meta(LayoutReader& layout) {
  TensorMeta meta;
  meta.dtype = static_cast<DType>(layout.natural(kNumDTypes - 1));
  meta.offset = layout.natural(INT64_MAX);
  const int64_t dims = layout.natural(kMaxDims);
  for (int64_t d = 0; d < dims; ++d) meta.sizes.push_back(layout.natural(INT64_MAX));
  for (int64_t d = 0; d < dims; ++d) meta.strides.push_back(layout.natural(INT64_MAX));
  return meta;
}

}  // namespace

uint64_t publish(std::string_view name, const std::optional<std::vector<std::string>>& keys,
                 absl::Span<const Tensor> tensors, const PublishOptions& options, uint32_t site) {
  check(ErrorKind::kValue, !tensors.empty(), "[publish] expected at least one tensor, got none");
  Session& session = *tensors[0]->session;
  const std::string key_lines = keys ? lines_of(*keys, "keys") : "", to = lines_of(options.to, "names of principals");
  std::vector<const TensorMeta*> list;
  for (const Tensor& tensor : tensors) list.push_back(tensor.get());
  Tensor key_bytes;
  if (keys) key_bytes = session.upload(key_lines, DType::kUInt8, {static_cast<int64_t>(key_lines.size())}, {}, site);
  const Arg args[] = {Arg(absl::MakeConstSpan(list)), Arg(key_bytes.get()), Arg(name), optional_text(to),
                      Arg(options.read_only),         Arg(options.persist)};
  const Value result = session.read(session.call(op_of(op_id::kPublish), args, without_grad(site))[0], site);
  if (options.read_only) {
    for (const Tensor& tensor : tensors) session.mark_read_only(tensor);
  }
  int64_t bytes = 0;
  std::memcpy(&bytes, result.bytes.data(), sizeof bytes);
  return static_cast<uint64_t>(bytes);
}

OpenedTensors open_published(Session& session, std::string_view name, std::string_view principal, uint32_t site) {
  const Arg args[] = {Arg(name), optional_text(principal)};
  const Tensors described = session.call(op_of(op_id::kOpenPublication), args, without_grad(site));
  LayoutReader layout(session.read(described[0], site).bytes);
  const std::string text = session.read(described[1], site).bytes;
  const int64_t opened = layout.next();
  const bool is_dict = layout.next() != 0, is_read_only = layout.next() != 0;
  const int64_t num_storages = layout.natural(layout.left()), num_tensors = layout.natural(layout.left());
  std::vector<OpenedStorage> storages;
  for (int64_t i = 0; i < num_storages; ++i) {
    const int64_t bytes = layout.natural(INT64_MAX);
    storages.emplace_back(session, opened, i, bytes, decode_device(layout.next()), site);
    if (is_read_only) session.mark_read_only(storages.back().bytes_tensor());
  }
  OpenedTensors result;
  for (int64_t i = 0; i < num_tensors; ++i) {
    check(num_storages > 0, "[open] the engine sent an invalid description: tensors without storages");
    OpenedStorage& storage = storages[static_cast<size_t>(layout.natural(num_storages - 1))];
    result.tensors.push_back(storage.tensor(read_meta(layout)));
  }
  if (!is_dict) return result;
  result.keys.emplace();
  if (num_tensors > 0) *result.keys = absl::StrSplit(text, '\n');
  check(result.keys->size() == result.tensors.size(), "[open] the engine sent ", result.keys->size(), " keys for ",
        result.tensors.size(), " tensors");
  return result;
}

void unpublish(Session& session, std::string_view name, std::string_view principal, uint32_t site) {
  const Arg args[] = {Arg(name), optional_text(principal)};
  session.read(session.call(op_of(op_id::kUnpublish), args, without_grad(site))[0], site);
}

std::string list_published(Session& session, uint32_t site) {
  return session.read(session.call(op_of(op_id::kListPublications), {}, without_grad(site))[0], site).bytes;
}

}  // namespace tt::client
