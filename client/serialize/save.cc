#include "client/serialize/save.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "client/api/creation.h"
#include "client/api/session.h"
#include "client/serialize/archive.h"
#include "client/serialize/pickle.h"
#include "client/session/session.h"
#include "formats/safetensors.h"

namespace teletensor {
namespace {

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(tensor.nbytes(), '\0');
  tensor.read(bytes.data(), bytes.size(), tensor.dtype());
  return bytes;
}

// The storages of the tensors of a value, in the order of their first use.
class Storages {
 public:
  internal::StoredView place(const Tensor& tensor) {
    const tt::client::Handle& handle = *tensor.handle();
    const auto key = std::tuple(handle.session.get(), handle.storage_number(), tensor.dtype());
    const auto numel = static_cast<int64_t>(handle.storage_bytes() / tensor.element_size());
    const auto [found, is_new] = keys_.emplace(key, storages_.size());
    if (is_new) storages_.push_back(tensor.detach().as_strided({numel}, {1}, 0));
    return {std::to_string(found->second),
            tensor.dtype(),
            numel,
            tensor.storage_offset(),
            tensor.sizes().vec(),
            tensor.strides().vec(),
            tensor.requires_grad() && tensor.is_leaf()};
  }
  const std::vector<Tensor>& tensors() const { return storages_; }

 private:
  std::map<std::tuple<tt::client::Session*, uint64_t, Dtype>, size_t> keys_;
  std::vector<Tensor> storages_;
};

// A file that is read; closed at the end of the scope.
class File {
 public:
  explicit File(const std::string& path) : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (number_ < 0) internal::throw_system_error("cannot open", path, errno);
  }
  ~File() { close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

}  // namespace

void save(const Value& value, const std::string& path) {
  NoGradGuard no_grad;
  Storages storages;
  const std::string pickle =
      internal::write_pickle(value, [&](const Tensor& tensor) { return storages.place(tensor); });
  internal::ArchiveWriter archive(path, "archive");
  archive.add("data.pkl", pickle);
  archive.add("byteorder", "little");
  for (size_t i = 0; i < storages.tensors().size(); ++i) {
    archive.add("data/" + std::to_string(i), bytes_of(storages.tensors()[i]));
  }
  archive.add("version", "3\n");
  archive.finish();
}

void save(const std::vector<Tensor>& tensors, const std::string& path) {
  save(Value(Value::List(tensors.begin(), tensors.end())), path);
}

Value load(const std::string& path, Device device) {
  NoGradGuard no_grad;
  const internal::ArchiveReader archive(path);
  if (archive.contains("constants.pkl")) {
    throw NotImplementedError("[load] '" + path + "' is a TorchScript archive, which contains code");
  }
  if (archive.contains("byteorder") && archive.read("byteorder") != "little") {
    throw NotImplementedError("[load] expected little-endian bytes");
  }
  constexpr uint64_t kMaxPickle = uint64_t{1} << 30;
  if (archive.size("data.pkl") > kMaxPickle) throw RuntimeError("[load] data.pkl has more than 1 GiB");
  std::map<std::pair<std::string, Dtype>, Tensor> storages;
  const auto make = [&](const internal::StoredView& view) {
    Tensor& storage = storages[{view.key, view.dtype}];
    if (!storage.defined()) {
      const std::string bytes = archive.read("data/" + view.key);
      const size_t item_size = tt::item_size(view.dtype);  // of a hostile number of elements, the product may overflow
      if (bytes.size() % item_size != 0 || bytes.size() / item_size != static_cast<uint64_t>(view.numel)) {
        throw RuntimeError("[load] the file is damaged: a storage has " + std::to_string(bytes.size()) + " bytes for " +
                           std::to_string(view.numel) + " elements");
      }
      storage = from_blob(bytes.data(), view.numel, TensorOptions(view.dtype).device(device));
    }
    if (storage.numel() != view.numel) throw RuntimeError("[load] the file is damaged: a storage has two sizes");
    Tensor tensor = storage.as_strided(view.sizes, view.strides, view.offset).detach();
    if (view.requires_grad) tensor.set_requires_grad(true);
    return tensor;
  };
  return internal::read_pickle(archive.read("data.pkl"), make);
}

void load(Tensor& tensor, const std::string& path, Device device) { tensor = load(path, device).to_tensor(); }
void load(std::vector<Tensor>& tensors, const std::string& path, Device device) {
  const Value value = load(path, device);
  std::vector<Tensor> loaded;
  for (const Value& item : value.to_list()) loaded.push_back(item.to_tensor());
  tensors = std::move(loaded);
}

void save_safetensors(const NamedTensors& tensors, const std::string& path) {
  NoGradGuard no_grad;
  std::string header = "{";
  std::set<std::string> names;
  uint64_t place = 0;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) throw ValueError("[save_safetensors] the name '" + name + "' occurs twice");
    if (name == "__metadata__") throw ValueError("[save_safetensors] the name '__metadata__' is reserved");
    header += names.size() > 1 ? "," : "";
    header += internal::translated([&] { return tt::json_name(name); }) + ":{\"dtype\":\"" +
              std::string(tt::safetensors_name(tensor.dtype())) + "\",\"shape\":[";
    for (size_t i = 0; i < tensor.sizes().size(); ++i) {
      if (i != 0) header += ',';
      header += std::to_string(tensor.sizes()[i]);
    }
    header += "],\"data_offsets\":[" + std::to_string(place) + "," + std::to_string(place + tensor.nbytes()) + "]}";
    place += tensor.nbytes();
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::string temporary = path + ".partial-" + std::to_string(getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (!file) internal::throw_system_error("cannot write", path, errno);
  const uint64_t size = header.size();
  bool ok = std::fwrite(&size, 1, sizeof(size), file) == sizeof(size) &&
            std::fwrite(header.data(), 1, header.size(), file) == header.size();
  try {
    for (const auto& [name, tensor] : tensors) {
      const std::string bytes = bytes_of(tensor);
      ok = ok && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    }
  } catch (...) {
    std::fclose(file);
    std::remove(temporary.c_str());
    throw;
  }
  ok = std::fclose(file) == 0 && ok;
  if (!ok || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    std::remove(temporary.c_str());
    internal::throw_system_error("cannot write", path, code);
  }
}

NamedTensors load_safetensors(const std::string& path, Device device) {
  const File file(path);
  return internal::translated([&] {
    const tt::SafetensorsFile description = tt::read_safetensors_header(file.number(), path);
    const tt::SafetensorsHeader header = tt::SafetensorsHeader::parse(description.text, description.data_bytes);
    NamedTensors loaded;
    for (const tt::StoredTensor& stored : header.tensors()) {
      std::string bytes(stored.bytes, '\0');
      tt::read_exactly(file.number(), bytes.data(), bytes.size(), description.data_offset + stored.begin, path);
      loaded.emplace_back(stored.name,
                          from_blob(bytes.data(), stored.sizes, TensorOptions(stored.dtype).device(device)));
    }
    return loaded;
  });
}

}  // namespace teletensor
