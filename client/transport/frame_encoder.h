// FrameEncoder: shortens the frames of one stream by sending repeated instructions as references (proto/
// instruction_template.h).
//
// A training loop repeats its instructions with other handles. An instruction is remembered when it occurs for the
// second time, so that instructions which occur once cost the engine no memory. Over a slow link, larger frames, which
// contain tensors' bytes, are also compressed (proto/chunk_codec.h). Used by one thread at a time; one per
// stream, because the engine forgets its templates with the stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/chunk_codec.h"
#include "proto/link_rate.h"
#include "proto/wire.h"

namespace tt::client {

class FrameEncoder {
 public:
  struct Options {
    uint32_t max_templates = 0;  // the engine's limit (v1::Limits); 0: instructions are sent in full
    CompressionMode compression = CompressionMode::kNone;
    const LinkRate* rate = nullptr;  // of the link to the engine; must outlive the encoder
  };
  explicit FrameEncoder(const Options& options);

  // Returns the frame to write, which is valid until the next call: `frame` or its shorter form.
  const v1::Frame& encode(const v1::Frame& frame);

 private:
  const v1::Frame& shorten(const v1::Frame& frame);
  const v1::Frame& compress(const v1::Frame& frame);
  // Template of the instruction that describe() has described; if there is none, whether to remember it.
  uint64_t code_of_described();
  // Writes the instruction without its operands to key_, and the codes of its operands to operands_. `next`: the name
  // to which handles are relative. Returns false if the instruction cannot become a template.
  bool describe(const v1::Instruction& instruction, uint64_t next);
  bool occurred_before();
  // Replaces parts of the layout that occur again by copies.
  void shorten_layout();
  void forget();

  const Options options_;
  ChunkCompressor compressor_;
  absl::flat_hash_map<std::string, uint32_t> templates_;
  size_t template_bytes_ = 0;     // estimated size of the templates
  std::vector<int> positions_;    // in the layout, by a hash of the elements there; -1: none
  std::vector<uint32_t> hashes_;  // hashes of keys that occurred, each at an index that depends on the key; 0 if none
  std::string key_;
  std::vector<uint64_t> operands_;
  v1::Frame compact_;
  v1::Frame compressed_;
  std::string bytes_;
  std::vector<int> plain_;  // indices of the instructions that are sent in full
};

}  // namespace tt::client
