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
  // Throws Error (NotImplementedError) if a storage cannot be part of an image.
  void write(ImageOutput* out) const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<Ref<Storage>> storages_;
  std::vector<PoisonRef> poisons_;
  absl::flat_hash_map<const TensorImpl*, uint64_t> tensor_numbers_;
  absl::flat_hash_map<const Storage*, uint64_t> storage_numbers_;
  absl::flat_hash_map<const Poison*, uint64_t> poison_numbers_;
};

// The objects that a reader has made. Allocates the storages in the current Context, whose account is charged; their
// bytes are those of the contents, which the caller reads into storages().
class ImageObjects {
 public:
  explicit ImageObjects(ImageInput* in);
  // Read a number; null for 0. Throw Error if there is no such object.
  Tensor tensor(ImageInput* in) const;
  Tensor defined_tensor(ImageInput* in) const;  // also throws if it is null
  PoisonRef poison(ImageInput* in) const;
  const Ref<Storage>& storage(ImageInput* in) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Ref<Storage>>& storages() const { return storages_; }

 private:
  std::vector<Ref<Storage>> storages_;
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
