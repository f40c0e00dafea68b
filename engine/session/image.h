// Image: what a session consists of, as bytes from which another process continues it.
//
// An image has two parts. The structure is one string: every object once, in the order storages, tensors, errors, and
// then what refers to them by number: names, the tape, settings. The contents are the storages' bytes, in the order of
// the storages; their transport (a file, a pipe) is the caller's. Numbers are LEB128, signed ones in zigzag encoding,
// and reals are the 8 bytes of a double.
//
// A writer first collects objects (ImageTensors), because a tensor refers to its base, its base to a node of the tape,
// and the node to further tensors. It calls ImageTensors::number() for each reference, which adds objects that are new,
// and visits the tensors that were added until there are no more. Then write() gives the objects, which have to come
// first in the structure.
//
// Bytes that several sessions use (Storage::share(), freeze()) are in the images of all sessions once, where
// ImageBlocks is given to the writers and to the readers: in the first image that refers to them.
//
// What an image does not contain is a reason not to write one: SessionService::unsaved(). Images come from the engine's
// own files and processes, never from a client. A reader checks every number, size and layout nevertheless, because a
// file may be damaged: it throws Error, and accesses no memory out of bounds. Used on the session's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "engine/program/poison.h"
#include "engine/program/slot_table.h"
#include "engine/session/context.h"
#include "engine/tensor/tensor.h"

namespace tt {

class ImageOutput {
 public:
  void number(uint64_t value);
  void signed_number(int64_t value);
  void real(double value);
  void flag(bool value) { number(value ? 1 : 0); }
  void text(std::string_view value);
  void sizes(SizesView values);
  void meta(const TensorMeta& meta);
  // Appends what another output holds.
  void append(const ImageOutput& other) { bytes_ += other.bytes_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Every function throws Error (RuntimeError) if the bytes are not what was expected.
class ImageInput {
 public:
  // `bytes` must outlive this object.
  explicit ImageInput(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number();
  // A number of at most `max`.
  uint64_t number(uint64_t max);
  int64_t signed_number();
  double real();
  bool flag() { return number(1) != 0; }
  std::string text() { return std::string(view()); }
  std::string_view view();  // text that is valid as long as the input's bytes
  // The number of elements of a list, each of which takes at least one byte.
  size_t count() { return static_cast<size_t>(number(bytes_.size())); }
  Sizes sizes();
  // Sizes, strides and offset are not negative, and small enough for the extent in bytes to be computed.
  TensorMeta meta();
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// The bytes that the images of one process's sessions have in common, in the order in which the images refer to them.
class ImageBlocks {
 public:
  // Whether other sessions or publications may use the storage's bytes.
  static bool is_shared(const Storage& storage) {
    return storage.num_holders() != 0 && (storage.is_shared() || storage.is_read_only());
  }
  // Counted from 1; 0 if no image has referred to the bytes.
  uint64_t number(const Storage& storage) const;
  void add(Ref<Storage> storage);
  // The storage that was added under a number. Throws Error if there is none.
  const Ref<Storage>& at(uint64_t number) const;
  size_t size() const { return storages_.size(); }
  // Forgets what was added after there were `size` blocks.
  void truncate(size_t size);

 private:
  std::vector<Ref<Storage>> storages_;
  absl::flat_hash_map<const void*, uint64_t> numbers_;  // by the bytes' address
};

// Writes a storage, as a reference to a block if it is in one. Returns whether its bytes have to follow in the
// contents.
bool write_storage(const Ref<Storage>& storage, ImageBlocks* blocks, ImageOutput* out);
// Reads a storage, which is charged to the current AllocScope's account, and appends it to `contents` if its bytes
// follow, which may be `*left` at most and are subtracted from it.
Ref<Storage> read_storage(ImageInput* in, ImageBlocks* blocks, uint64_t* left, std::vector<Ref<Storage>>* contents);

// Returns a tensor over a storage that was read. Throws Error if its layout exceeds the storage.
Tensor tensor_in_image(const TensorMeta& meta, Ref<Storage> storage);

// The objects that a writer has found.
class ImageTensors {
 public:
  // Return the object's number, counted from 1; 0 for null.
  uint64_t number(const Tensor& tensor);
  uint64_t number(const PoisonRef& poison);
  // Throws Error if no tensor that was added uses the storage.
  uint64_t number_of(const Storage* storage) const;
  bool contains(const Storage* storage) const { return storage_numbers_.contains(storage); }
  // The tensors in the order of their numbers; grows while they are visited.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Ref<Storage>>& storages() const { return storages_; }
  // Throws Error (NotImplementedError) if a storage cannot be part of an image. Without `blocks` no storage may be
  // shared. Returns the storages whose bytes are the image's contents.
  std::vector<Ref<Storage>> write(ImageBlocks* blocks, ImageOutput* out) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Ref<Storage>> storages_;
  std::vector<PoisonRef> poisons_;
  absl::flat_hash_map<const TensorImpl*, uint64_t> tensor_numbers_;
  absl::flat_hash_map<const Storage*, uint64_t> storage_numbers_;
  absl::flat_hash_map<const Poison*, uint64_t> poison_numbers_;
};

// The objects that a reader has made. Allocates the storages in the current Context, whose account is charged; their
// bytes are those of the contents, which the caller reads into contents().
class ImageObjects {
 public:
  // `blocks` are those of the images that were read before; null: the image is read alone. At most `max_bytes` follow
  // as contents.
  ImageObjects(ImageInput* in, ImageBlocks* blocks, uint64_t max_bytes);
  // Read a number; null for 0. Throw Error if there is no such object.
  Tensor tensor(ImageInput* in) const;
  Tensor defined_tensor(ImageInput* in) const;  // also throws if it is null
  PoisonRef poison(ImageInput* in) const;
  const Ref<Storage>& storage(ImageInput* in) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Ref<Storage>>& storages() const { return storages_; }
  // The storages whose bytes follow, in this order.
  const std::vector<Ref<Storage>>& contents() const { return contents_; }

 private:
  std::vector<Ref<Storage>> storages_, contents_;
  std::vector<Tensor> tensors_;
  std::vector<PoisonRef> poisons_;
};

// Names and the errors stored in their place. read_slots() requires an empty table.
void write_slots(const SlotTable& slots, ImageTensors* tensors, ImageOutput* out);
void read_slots(ImageInput* in, const ImageObjects& objects, SlotTable* slots);

// Why an image of the session would lack something now; empty if it is complete. Requires that no instruction runs.
std::string unsaved(const Context& context);
// The Context's own settings: random numbers, autocast with its casts, threads, anomaly detection, TF32.
void write_context(const Context& context, ImageTensors* tensors, ImageOutput* out);
void read_context(ImageInput* in, const ImageObjects& objects, Context* context);

}  // namespace tt
