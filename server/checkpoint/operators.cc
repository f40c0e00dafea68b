#include "server/checkpoint/operators.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/dispatch/new_results.h"
#include "engine/dispatch/ops.h"
#include "engine/schema/op_ids.h"
#include "engine/session/context.h"
#include "formats/safetensors.h"
#include "server/checkpoint/chunked_file.h"
#include "server/checkpoint/range_reader.h"
#include "server/checkpoint/replacement_file.h"
#include "server/checkpoint/service.h"
#include "server/checkpoint/snapshot.h"
#include "server/checkpoint/tensor_file.h"

namespace tt::server {
namespace {

constexpr Device kCPU{};
// Files that are read or written as a whole, such as an index.
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
// Host memory for parsing a header, per byte of its text.
constexpr uint64_t kParseFactor = 4;

CheckpointService& service() {
  auto* found = Context::current().services.find<CheckpointService>();
  check(found != nullptr, "checkpoints require a session");
  return *found;
}

std::string text(const Call& call, size_t i) { return std::string(call.args[i].string()); }

void set_result(Call& call, std::initializer_list<int64_t> values) {
  allocate_outputs(call);
  std::copy(values.begin(), values.end(), call.outputs[0].data_as<int64_t>());
}

void set_result(Call& call, std::string_view bytes) {
  call.outputs.resize(1);
  call.outputs[0] = empty({static_cast<int64_t>(bytes.size())}, DType::kUInt8, kCPU);
  if (!bytes.empty()) std::memcpy(call.outputs[0].data(), bytes.data(), bytes.size());
}

// Charges host memory to the session. Throws Error (OutOfMemoryError) if its account has no room.
HostCharge charge(const std::shared_ptr<Account>& account, uint64_t bytes) {
  if (account && !account->has_host_room(bytes)) {
    fail(ErrorKind::kOutOfMemory, "out of memory on the host: requested ", bytes, " bytes; ",
         account->bookkeeping_refusal(bytes));
  }
  return HostCharge(account, bytes);
}

// The contents of a uint8 tensor.
std::string bytes_of(const Tensor& tensor, std::string_view name, uint64_t limit) {
  check(ErrorKind::kValue,
        tensor.dtype() == DType::kUInt8 && tensor.device().type == DeviceType::kCPU && tensor.is_contiguous(),
        "expected a contiguous uint8 tensor on the CPU as `", name, "`, got ", tensor.meta());
  check(ErrorKind::kValue, static_cast<uint64_t>(tensor.numel()) <= limit, "expected at most ", limit, " bytes in `",
        name, "`, got ", tensor.numel());
  if (tensor.numel() == 0) return "";
  return std::string(tensor.data_as<char>(), static_cast<size_t>(tensor.numel()));
}

// The tensors that call.args[i] lists. `in_background`: whether the session goes on while they are written. Their
// elements are then copied before they change; those of other devices, and those that other sessions may write, at
// once.
std::vector<std::shared_ptr<TensorSnapshot>> tensors_of(const Call& call, size_t i, bool in_background) {
  std::vector<std::shared_ptr<TensorSnapshot>> tensors;
  for (const TensorMeta* meta : call.args[i].list()) {
    const Tensor tensor = Tensor::from(meta);
    check(ErrorKind::kNotImplemented, tensor.device().type != DeviceType::kMeta, "a meta tensor has no data");
    const bool is_copied = tensor.device().type != DeviceType::kCPU || (in_background && tensor->storage->is_shared());
    tensors.push_back(std::make_shared<TensorSnapshot>(is_copied ? host_copy(tensor) : detach(tensor)));
    if (!is_copied && in_background) service().snapshots().add(tensor, tensors.back());
  }
  return tensors;
}

CheckpointJob::Body write_body(const Call& call, bool in_background) {
  std::string header = bytes_of(call.tensor(0), "header", SafetensorsHeader::kMaxBytes);
  std::vector<std::shared_ptr<TensorSnapshot>> tensors = tensors_of(call, 1, in_background);
  CheckpointService& of = service();
  HostCharge held = charge(of.account(), kParseFactor * header.size());
  return [root = of.root(), path = text(call, 2), header = std::move(header), tensors = std::move(tensors),
          held = std::make_shared<HostCharge>(std::move(held))](CheckpointJob& job) {
    write_tensors(*root, path, header, tensors, job);
  };
}

CheckpointJob::Body write_parts_body(const Call& call, bool in_background) {
  auto parts = std::make_shared<FileParts>();
  parts->bytes = bytes_of(call.tensor(0), "bytes", kMaxFileBytes);
  parts->tensors = tensors_of(call, 1, in_background);
  parts->positions.assign(call.args[3].ints().begin(), call.args[3].ints().end());
  parts->places.assign(call.args[4].ints().begin(), call.args[4].ints().end());
  parts->is_hexadecimal = call.args[5].integer != 0;
  parts->check_numbers();
  CheckpointService& of = service();
  HostCharge held = charge(of.account(), parts->bytes.size());
  return [root = of.root(), path = text(call, 2), parts, held = std::make_shared<HostCharge>(std::move(held))](
             CheckpointJob& job) { write_parts(*root, path, *parts, job); };
}

// Runs a write: with `work` = 0 to its end, otherwise in the background.
template <typename MakeBody>
void start_write(Call& call, int64_t work, MakeBody make_body) {
  service().root();
  if (work != 0) {
    service().start(work, [&] { return make_body(call, true); });
    return set_result(call, {work});
  }
  service().run(call, [&] {
    auto job = service().start_job(make_body(call, false));
    return CheckpointService::Operation{
        .job = job, .complete = [job](Call& c) { set_result(c, {static_cast<int64_t>(job->total())}); }};
  });
}

void checkpoint_write(Call& call) { start_write(call, call.args[3].integer, &write_body); }

void checkpoint_write_parts(Call& call) { start_write(call, call.args[6].integer, &write_parts_body); }

int64_t write_number(const Call& call) {
  const Tensor tensor = call.tensor(0);
  check(ErrorKind::kValue,
        tensor.device().type == DeviceType::kCPU && tensor.dtype() == DType::kInt64 && tensor.numel() == 1,
        "expected the result of checkpoint_write");
  return *tensor.data_as<int64_t>();
}

void checkpoint_wait(Call& call) {
  set_result(call, {static_cast<int64_t>(service().wait(write_number(call))->total())});
}

void checkpoint_progress(Call& call) {
  const CheckpointJob& job = service().find(write_number(call));
  const bool ready = job.work()->ready();  // before the counts, which are then final
  set_result(call, {static_cast<int64_t>(job.done()), static_cast<int64_t>(job.total()), ready});
}

// An open safetensors file.
struct OpenFile {
  FileDescriptor file;
  std::optional<SafetensorsHeader> header;
  HostCharge held;  // for the header
  std::string text;
  uint64_t data_offset = 0;
};

void open_tensors(const CheckpointRoot& root, const std::string& path, const std::shared_ptr<Account>& account,
                  OpenFile* open) {
  open->file = root.open_file(path);
  SafetensorsFile found = read_safetensors_header(open->file.get(), path);
  open->held = charge(account, kParseFactor * found.text.size());
  try {
    open->header = SafetensorsHeader::parse(found.text, found.data_bytes);
  } catch (Error& error) {
    error.append(absl::StrCat(" ('", path, "')"));
    throw;
  }
  open->text = std::move(found.text);
  open->data_offset = found.data_offset;
}

void check_booleans(const Tensor& tensor, std::string_view name) {
  if (tensor.dtype() != DType::kBool || tensor.numel() == 0) return;
  const uint8_t* values = tensor.data_as<uint8_t>();
  const bool valid = std::all_of(values, values + tensor.numel(), [](uint8_t v) { return v <= 1; });
  check(ErrorKind::kValue, valid, "the stored tensor '", name, "' has booleans other than 0 and 1");
}

// The boxes that one call reads.
class Boxes {
 public:
  // Throws Error if the lists are inconsistent.
  Boxes(const Call& call, std::vector<std::string> names) : path_(text(call, 1)), names_(std::move(names)) {
    for (const TensorMeta* meta : call.args[0].list()) outputs_.push_back(detach(Tensor::from(meta)));
    check(ErrorKind::kValue, names_.size() == outputs_.size(), "expected ", outputs_.size(),
          " names, one per output, got ", names_.size());
    size_t numbers = 0;
    for (const Tensor& output : outputs_) numbers += output.sizes().size();
    offsets_.assign(call.args[3].ints().begin(), call.args[3].ints().end());
    check(ErrorKind::kValue, offsets_.size() == numbers, "expected ", numbers,
          " offsets, one per dimension of each output, got ", offsets_.size());
  }

  const std::string& path() const { return path_; }

  // Allocates the memory to read into: the outputs themselves where possible, else tensors of the stored dtype.
  // Throws Error if a box is not in the file.
  void prepare(const OpenFile& open) {
    const int64_t* offset = offsets_.data();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Tensor& output = outputs_[i];
      const StoredTensor& stored = open.header->find(names_[i]);
      check(ErrorKind::kNotImplemented, output.device().type != DeviceType::kMeta, "a meta tensor has no data");
      bool inside = stored.sizes.size() == output.sizes().size();
      for (size_t d = 0; inside && d < stored.sizes.size(); ++d) {
        inside = offset[d] >= 0 && offset[d] <= stored.sizes[d] && output.sizes()[d] <= stored.sizes[d] - offset[d];
      }
      check(ErrorKind::kValue, inside, "expected a box of '", names_[i], "', which has shape ", stored.sizes,
            ", got offsets ", SizesView(offset, output.sizes().size()), " and sizes ", output.sizes());
      const bool direct =
          output.dtype() == stored.dtype && output.device().type == DeviceType::kCPU && output.is_contiguous();
      targets_.push_back(direct ? output : empty(output.sizes(), stored.dtype, kCPU));
      offset += output.sizes().size();
    }
  }

  // On a checkpoint thread.
  void read(const OpenFile& open, CheckpointJob& job) const {
    SliceReader reader(open.file.get(), path_, open.data_offset, job);
    const int64_t* offset = offsets_.data();
    for (size_t i = 0; i < targets_.size(); ++i) {
      const Tensor& target = targets_[i];
      const size_t dims = target.sizes().size();
      if (target.numel() != 0) {
        reader.read(open.header->find(names_[i]), SizesView(offset, dims), target.sizes(), target.data_as<char>());
      }
      offset += dims;
    }
    reader.finish();
    for (size_t i = 0; i < targets_.size(); ++i) check_booleans(targets_[i], names_[i]);
  }

  void copy_to_outputs() const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (targets_[i].same(outputs_[i])) continue;
      const Device device = outputs_[i].device();
      copy_into(outputs_[i], device == kCPU ? targets_[i] : ops::to_device(targets_[i], device));
    }
  }

 private:
  std::string path_;
  std::vector<std::string> names_;
  std::vector<int64_t> offsets_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> targets_;
};

void checkpoint_read(Call& call) {
  service().run(call, [&] {
    CheckpointService& of = service();
    auto boxes = std::make_shared<Boxes>(call, parse_string_list(call.args[2].string()));
    auto open = std::make_shared<OpenFile>();
    CheckpointService::Operation operation;
    operation.job = of.start_job([root = of.root(), account = of.account(), open, path = boxes->path()](auto&) {
      open_tensors(*root, path, account, open.get());
    });
    auto reading = std::make_shared<std::shared_ptr<CheckpointJob>>();
    operation.next = [open, boxes, reading] {
      boxes->prepare(*open);
      *reading = service().start_job([open, boxes](CheckpointJob& job) { boxes->read(*open, job); });
      return *reading;
    };
    operation.complete = [boxes, reading](Call& c) {
      boxes->copy_to_outputs();
      set_result(c, {static_cast<int64_t>((*reading)->done())});
    };
    return operation;
  });
}

// Whether a file can be read into a tensor's memory, on the CPU or on a device. Booleans are checked on the CPU.
bool is_direct_output(const Tensor& output) {
  if (output.device() == kCPU) return output.is_contiguous();
  return output.is_contiguous() && output.dtype() != DType::kBool && !Context::current().capturing();
}

// Makes the copy stream wait for the session's earlier work with the memory of `output`.
void order_copies(const Tensor& output, CopyStream& copy_stream) {
  if (output.device() == kCPU) return;
  const std::unique_ptr<Event> earlier = Context::current().stream(output.device()).record();
  copy_stream.with_stream(output.device(), [&](Stream& stream) { stream.wait(*earlier); });
}

// The outputs of checkpoint_read_parts, and the tensors that the file is read into: the outputs themselves, or tensors
// of the CPU that are copied to them.
struct Parts {
  std::vector<Tensor> outputs;
  std::vector<Tensor> targets;
  std::vector<int64_t> offsets;
  std::vector<uint32_t> checksums;
};

void checkpoint_read_parts(Call& call) {
  service().run(call, [&] {
    CheckpointService& of = service();
    auto parts = std::make_shared<Parts>();
    parts->offsets.assign(call.args[2].ints().begin(), call.args[2].ints().end());
    for (const TensorMeta* meta : call.args[0].list()) {
      const Tensor output = detach(Tensor::from(meta));
      check(ErrorKind::kNotImplemented, output.device().type != DeviceType::kMeta, "a meta tensor has no data");
      const bool direct = is_direct_output(output);
      parts->targets.push_back(direct ? output : empty(output.sizes(), output.dtype(), kCPU));
      parts->outputs.push_back(output);
      if (direct) order_copies(output, *of.copy_stream());
    }
    check(ErrorKind::kValue, parts->offsets.size() == parts->outputs.size(), "expected ", parts->outputs.size(),
          " offsets, one per output, got ", parts->offsets.size());
    for (const int64_t offset : parts->offsets) {
      check(ErrorKind::kValue, offset >= 0, "expected offsets of at least 0, got ", offset);
    }
    CheckpointService::Operation operation;
    operation.job =
        of.start_job([root = of.root(), path = text(call, 1), parts, copies = of.copy_stream()](CheckpointJob& job) {
          const FileDescriptor file = root->open_file(path);
          std::vector<FileRange> ranges;
          for (size_t i = 0; i < parts->targets.size(); ++i) {
            const Tensor& target = parts->targets[i];
            const uint64_t size = static_cast<uint64_t>(target.numel()) * item_size(target.dtype());
            ranges.push_back({static_cast<uint64_t>(parts->offsets[i]), size,
                              size == 0 ? nullptr : target.data_as<char>(), target.device()});
          }
          parts->checksums = read_ranges(file.get(), path, ranges, job, copies);
          for (const Tensor& target : parts->targets) check_booleans(target, path);
        });
    operation.complete = [parts](Call& c) {
      for (size_t i = 0; i < parts->outputs.size(); ++i) {
        const Tensor& output = parts->outputs[i];
        if (parts->targets[i].same(output)) continue;
        copy_into(output,
                  output.device() == kCPU ? parts->targets[i] : ops::to_device(parts->targets[i], output.device()));
      }
      c.outputs.resize(1);
      c.outputs[0] = empty({static_cast<int64_t>(parts->checksums.size())}, DType::kInt64, kCPU);
      std::copy(parts->checksums.begin(), parts->checksums.end(), c.outputs[0].data_as<int64_t>());
    };
    return operation;
  });
}

// Runs a job that returns a number or text, which becomes the call's result.
template <typename Result, typename Find>
void run_simple(Call& call, Find find) {
  service().run(call, [&] {
    CheckpointService& of = service();
    auto result = std::make_shared<Result>();
    CheckpointService::Operation operation;
    operation.job = of.start_job([root = of.root(), result, find](CheckpointJob&) { *result = find(*root); });
    operation.complete = [result](Call& c) {
      if constexpr (std::is_same_v<Result, int64_t>) {
        set_result(c, {*result});
      } else {
        set_result(c, *result);
      }
    };
    return operation;
  });
}

void checkpoint_header(Call& call) {
  run_simple<std::string>(call, [path = text(call, 0), account = service().account()](const CheckpointRoot& root) {
    OpenFile open;
    open_tensors(root, path, account, &open);
    return std::move(open.text);
  });
}

void checkpoint_read_bytes(Call& call) {
  run_simple<std::string>(call, [path = text(call, 0), account = service().account()](const CheckpointRoot& root) {
    const FileDescriptor file = root.open_file(path);
    const uint64_t size = file_size(file.get(), path);
    check(ErrorKind::kValue, size <= kMaxFileBytes, "expected a file of at most ", kMaxFileBytes, " bytes, but '", path,
          "' has ", size);
    const HostCharge held = charge(account, size);
    std::string bytes(size, '\0');
    read_exactly(file.get(), bytes.data(), size, 0, path);
    return bytes;
  });
}

void checkpoint_read_range(Call& call) {
  run_simple<std::string>(call, [path = text(call, 0), offset = call.args[1].integer, size = call.args[2].integer,
                                 account = service().account()](const CheckpointRoot& root) {
    const FileDescriptor file = root.open_file(path);
    const uint64_t total = file_size(file.get(), path);
    check(ErrorKind::kValue, size >= 0 && static_cast<uint64_t>(size) <= kMaxFileBytes, "expected a size of at most ",
          kMaxFileBytes, " bytes, got ", size);
    const uint64_t from_end = offset < 0 ? std::min(total, uint64_t{0} - static_cast<uint64_t>(offset)) : 0;
    const uint64_t begin = offset < 0 ? total - from_end : std::min(total, static_cast<uint64_t>(offset));
    const uint64_t count = std::min(total - begin, static_cast<uint64_t>(size));
    const HostCharge held = charge(account, count);
    std::string bytes(8 + count, '\0');
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(total >> (8 * i));
    read_exactly(file.get(), bytes.data() + 8, count, begin, path);
    return bytes;
  });
}

void checkpoint_write_bytes(Call& call) {
  run_simple<int64_t>(call, [bytes = bytes_of(call.tensor(0), "bytes", kMaxFileBytes),
                             path = text(call, 1)](const CheckpointRoot& root) {
    const CheckpointRoot::Room room = root.reserve(path, bytes.size());
    ReplacementFile file(root.find(path, true));
    file.reserve(bytes.size());
    file.append(bytes.data(), bytes.size());
    file.commit();
    return static_cast<int64_t>(bytes.size());
  });
}

void checkpoint_commit(Call& call) {
  run_simple<int64_t>(call, [source = text(call, 1), target = text(call, 2)](const CheckpointRoot& root) {
    root.rename(source, target);
    return int64_t{0};
  });
}

void checkpoint_list(Call& call) {
  run_simple<std::string>(call, [path = text(call, 0)](const CheckpointRoot& root) {
    constexpr const char* kTypes[] = {"file", "folder", "other"};
    auto list = nlohmann::json::array();
    for (const CheckpointRoot::Entry& entry : root.list(path)) {
      list.push_back({entry.name, kTypes[static_cast<size_t>(entry.type)], entry.bytes});
    }
    return list.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  });
}

void checkpoint_remove(Call& call) {
  run_simple<int64_t>(call, [path = text(call, 0)](const CheckpointRoot& root) { return root.remove(path); });
}

}  // namespace

void register_checkpoints(Dispatcher& dispatcher) {
  constexpr std::pair<uint16_t, Kernel> kOperators[] = {
      {op_id::kCheckpointWrite, &with_new_results<&checkpoint_write>},
      {op_id::kCheckpointWriteParts, &with_new_results<&checkpoint_write_parts>},
      {op_id::kCheckpointReadParts, &with_new_results<&checkpoint_read_parts>},
      {op_id::kCheckpointReadRange, &with_new_results<&checkpoint_read_range>},
      {op_id::kCheckpointRead, &with_new_results<&checkpoint_read>},
      {op_id::kCheckpointWait, &with_new_results<&checkpoint_wait>},
      {op_id::kCheckpointProgress, &with_new_results<&checkpoint_progress>},
      {op_id::kCheckpointHeader, &with_new_results<&checkpoint_header>},
      {op_id::kCheckpointReadBytes, &with_new_results<&checkpoint_read_bytes>},
      {op_id::kCheckpointWriteBytes, &with_new_results<&checkpoint_write_bytes>},
      {op_id::kCheckpointCommit, &with_new_results<&checkpoint_commit>},
      {op_id::kCheckpointList, &with_new_results<&checkpoint_list>},
      {op_id::kCheckpointRemove, &with_new_results<&checkpoint_remove>},
  };
  for (const auto& [op, kernel] : kOperators) {
    dispatcher.set(op, Key::kCPU, kernel);
    dispatcher.set(op, Key::kCUDA, kernel);
    dispatcher.set_suspending(op);
  }
}

}  // namespace tt::server
