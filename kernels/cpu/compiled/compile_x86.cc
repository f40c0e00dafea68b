// Machine code for AVX2 with FMA and for AVX-512, by Xbyak.
//
// A loop over vectors, several at a time as far as the registers suffice, so that the processor computes one while it
// waits for another. Code for the last vectors of a range follows, one at a time.
#include <xbyak/xbyak.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/cpu/compiled/step_code.h"

namespace tt::cpu {
namespace {

// An instruction of the whole code. Values are numbered: the inputs, the numbers, then the instructions' results.
struct Flat {
  BodyCode code;
  int num_args;
  std::array<int, 3> args;
  int stored = -1;  // the output that receives the result
};

int num_args_of(BodyCode code) {
  switch (code) {
    case BodyCode::kMultiplyAdd:
    case BodyCode::kMultiplySubtract:
    case BodyCode::kSubtractProduct:
    case BodyCode::kSelect: return 3;
    case BodyCode::kNegate:
    case BodyCode::kAbs:
    case BodyCode::kSqrt:
    case BodyCode::kFloor:
    case BodyCode::kCeil:
    case BodyCode::kTrunc:
    case BodyCode::kRint: return 1;
    default: return 2;
  }
}

// The steps' bodies, one after the other.
std::vector<Flat> flatten(const StepSource& source) {
  std::vector<Flat> all;
  std::vector<int> results;  // by step
  const int first_number = source.num_inputs, first_result = source.num_inputs + source.num_numbers;
  int outputs = 0;
  for (const SourceStep& step : source.steps) {
    const int first = first_result + static_cast<int>(all.size());
    for (const BodyInstruction& instruction : step.body->code) {
      Flat& flat = all.emplace_back(Flat{instruction.code, num_args_of(instruction.code), {}});
      for (int a = 0; a < flat.num_args; ++a) {
        const int arg = instruction.args[a];
        if (arg >= kFirstResult) {
          flat.args[a] = first + arg - kFirstResult;
        } else if (arg >= kFirstNumber) {
          flat.args[a] = first_number + step.first_number + arg - kFirstNumber;
        } else {
          const StepOperand& operand = step.args[arg];
          flat.args[a] = operand.kind == StepOperand::Kind::kInput    ? operand.index
                         : operand.kind == StepOperand::Kind::kNumber ? first_number + operand.index
                                                                      : results[operand.index];
        }
      }
    }
    results.push_back(first_result + static_cast<int>(all.size()) - 1);
    if (step.is_stored) all.back().stored = outputs++;
  }
  return all;
}

class Compiler : public Xbyak::CodeGenerator {
 public:
  Compiler(const StepSource& source, bool is_avx512)
      : CodeGenerator(4096, Xbyak::AutoGrow),
        is_avx512_(is_avx512),
        is_double_(source.is_double),
        num_inputs_(source.num_inputs),
        num_numbers_(source.num_numbers),
        code_(flatten(source)),
        last_use_(num_inputs_ + num_numbers_ + code_.size(), -1) {
    for (size_t i = 0; i < code_.size(); ++i) {
      for (int a = 0; a < code_[i].num_args; ++a) last_use_[code_[i].args[a]] = static_cast<int>(i);
    }
  }

  // Returns false if there are too few registers.
  bool make() {
    const int live = max_live(), registers = is_avx512_ ? 32 : 16;
    int unroll = 4;
    while (unroll > 1 && live * unroll + kScratch > registers) unroll /= 2;
    if (live * unroll + kScratch > registers) return false;
    num_free_ = registers - kScratch;
    num_kept_ = std::min(num_numbers_, num_free_ - live * unroll);
    num_free_ -= num_kept_;
    for (int i = 0; i < num_kept_; ++i) broadcast(vector(num_free_ + i), i);
    xor_(kIndex, kIndex);
    emit_loop(unroll);
    if (unroll > 1) emit_loop(1);
    vzeroupper();
    ret();
    ready(Xbyak::CodeArray::PROTECT_RE);
    return true;
  }

 private:
  // System V: the arguments of StepCode::Function.
  const Xbyak::Reg64 kCount = rdi, kInputs = rsi, kOutputs = rdx, kNumbers = rcx, kIndex = r8, kAddress = rax;
  // The last registers: three for numbers of one instruction, one for a part of an instruction.
  static constexpr int kScratch = 4;
  // Bytes before an input is read that it is requested. The processor's own requests stop at a page's end and while a
  // block is reduced. Addresses past the input's end are harmless.
  static constexpr int kAhead = 4096;

  bool is_number(int value) const { return value >= num_inputs_ && value < num_inputs_ + num_numbers_; }
  int first_result() const { return num_inputs_ + num_numbers_; }
  int lanes() const { return (is_avx512_ ? 64 : 32) / item(); }
  int item() const { return is_double_ ? 8 : 4; }

  // The number of inputs and results in registers at once, at most.
  int max_live() const {
    int live = 0, most = 0;
    std::vector<bool> loaded(static_cast<size_t>(num_inputs_));
    for (size_t i = 0; i < code_.size(); ++i) {
      for (int a = 0; a < code_[i].num_args; ++a) {
        const int arg = code_[i].args[a];
        if (arg < num_inputs_ && !loaded[arg]) {
          loaded[arg] = true;
          ++live;
        }
      }
      most = std::max(most, ++live);  // the result, besides all operands
      std::array<int, 3> args = code_[i].args;
      std::sort(args.begin(), args.begin() + code_[i].num_args);
      const auto end = std::unique(args.begin(), args.begin() + code_[i].num_args);
      for (auto arg = args.begin(); arg != end; ++arg)
        live -= !is_number(*arg) && last_use_[*arg] == static_cast<int>(i);
      live -= last_use_[first_result() + i] < 0;  // only stored
    }
    return most;
  }

  Xbyak::Xmm vector(int index) const {
    if (is_avx512_) return Xbyak::Zmm(index);
    return Xbyak::Ymm(index);
  }
  int registers() const { return is_avx512_ ? 32 : 16; }

  void broadcast(const Xbyak::Xmm& to, int number) {
    const auto address = ptr[kNumbers + number * item()];
    if (!is_double_) return vbroadcastss(to, address);
    is_avx512_ ? vbroadcastsd(Xbyak::Zmm(to.getIdx()), address) : vbroadcastsd(Xbyak::Ymm(to.getIdx()), address);
  }

  void emit_loop(int unroll) {
    Xbyak::Label begin, end;
    const int step = unroll * lanes();
    L(begin);
    lea(kAddress, ptr[kIndex + step]);
    cmp(kAddress, kCount);
    jg(end, T_NEAR);
    emit_steps(unroll);
    add(kIndex, step);
    jmp(begin, T_NEAR);
    L(end);
  }

  void emit_steps(int unroll) {
    free_.clear();
    for (int i = num_free_; i-- > 0;) free_.push_back(i);
    held_.assign(last_use_.size(), {});
    for (size_t i = 0; i < code_.size(); ++i) emit(i, unroll);
  }

  // The registers of a value, one per vector. Loads inputs and numbers that are in none; `scratch` counts the numbers
  // of this instruction.
  std::array<int, 4> registers_of(int value, int unroll, int* scratch) {
    if (is_number(value)) {
      const int number = value - num_inputs_;
      int where = num_free_ + number;
      if (number >= num_kept_) broadcast(vector(where = registers() - 1 - (*scratch)++), number);
      return {where, where, where, where};
    }
    if (!held_[value]) {
      held_[value] = take(unroll);
      mov(kAddress, ptr[kInputs + 8 * value]);
      for (int u = 0; u < unroll; ++u) {
        vmovups(vector((*held_[value])[u]), element(u));
        if (unroll > 1) prefetcht0(ptr[kAddress + kIndex * item() + u * lanes() * item() + kAhead]);
      }
    }
    return *held_[value];
  }

  Xbyak::Address element(int u) const { return ptr[kAddress + kIndex * item() + u * lanes() * item()]; }

  std::array<int, 4> take(int unroll) {
    std::array<int, 4> taken{};
    for (int u = 0; u < unroll; ++u) {
      taken[u] = free_.back();
      free_.pop_back();
    }
    return taken;
  }

  void emit(size_t i, int unroll) {
    const Flat& flat = code_[i];
    std::array<std::array<int, 4>, 3> args{};
    int scratch = 0;
    for (int a = 0; a < flat.num_args; ++a) args[a] = registers_of(flat.args[a], unroll, &scratch);
    const std::array<int, 4> to = take(unroll);
    const Xbyak::Xmm part = vector(registers() - kScratch);
    for (int u = 0; u < unroll; ++u) {
      compute(flat.code, vector(to[u]), vector(args[0][u]), vector(args[1][u]), vector(args[2][u]), part);
    }
    if (flat.stored >= 0) {
      mov(kAddress, ptr[kOutputs + 8 * flat.stored]);
      for (int u = 0; u < unroll; ++u) vmovups(element(u), vector(to[u]));
    }
    const int result = first_result() + static_cast<int>(i);
    held_[result] = to;
    for (int a = 0; a < flat.num_args; ++a) release(flat.args[a], static_cast<int>(i), unroll);
    if (last_use_[result] < 0) release(result, -1, unroll);
  }

  void release(int value, int at, int unroll) {
    if (is_number(value) || last_use_[value] != at || !held_[value]) return;
    for (int u = unroll; u-- > 0;) free_.push_back((*held_[value])[u]);
    held_[value].reset();
  }

  using Vector = Xbyak::Xmm;

  // `to` is none of the others.
  void compute(BodyCode code, const Vector& to, const Vector& a, const Vector& b, const Vector& c, const Vector& part) {
    switch (code) {
      case BodyCode::kAdd: return is_double_ ? vaddpd(to, a, b) : vaddps(to, a, b);
      case BodyCode::kSubtract: return is_double_ ? vsubpd(to, a, b) : vsubps(to, a, b);
      case BodyCode::kMultiply: return is_double_ ? vmulpd(to, a, b) : vmulps(to, a, b);
      case BodyCode::kDivide: return is_double_ ? vdivpd(to, a, b) : vdivps(to, a, b);
      case BodyCode::kMultiplyAdd: vmovaps(to, a); return is_double_ ? vfmadd213pd(to, b, c) : vfmadd213ps(to, b, c);
      case BodyCode::kMultiplySubtract:
        vmovaps(to, a);
        return is_double_ ? vfmsub213pd(to, b, c) : vfmsub213ps(to, b, c);
      case BodyCode::kSubtractProduct:
        vmovaps(to, a);
        return is_double_ ? vfnmadd213pd(to, b, c) : vfnmadd213ps(to, b, c);
      case BodyCode::kNegate: sign_bits(to); return is_double_ ? vxorpd(to, to, a) : vxorps(to, to, a);
      case BodyCode::kAbs: sign_bits(to); return is_double_ ? vandnpd(to, to, a) : vandnps(to, to, a);
      case BodyCode::kSqrt: return is_double_ ? vsqrtpd(to, a) : vsqrtps(to, a);
      case BodyCode::kRint: return round(to, a, 8);
      case BodyCode::kFloor: return round(to, a, 9);
      case BodyCode::kCeil: return round(to, a, 10);
      case BodyCode::kTrunc: return round(to, a, 11);
      // The processor's maximum is a > b ? a : b, so the second operand if one is NaN.
      case BodyCode::kMaximum: is_double_ ? vmaxpd(to, a, b) : vmaxps(to, a, b); return replace_nan(to, a, part);
      case BodyCode::kMinimum: is_double_ ? vminpd(to, a, b) : vminps(to, a, b); return replace_nan(to, a, part);
      case BodyCode::kFmax: is_double_ ? vmaxpd(to, a, b) : vmaxps(to, a, b); return replace(to, a, b, part);
      case BodyCode::kFmin: is_double_ ? vminpd(to, a, b) : vminps(to, a, b); return replace(to, a, b, part);
      case BodyCode::kLarger: return is_double_ ? vmaxpd(to, a, b) : vmaxps(to, a, b);
      case BodyCode::kSmaller: return is_double_ ? vminpd(to, a, b) : vminps(to, a, b);
      case BodyCode::kEqual: return compare(to, a, b, 0);  // the predicates of VCMPPS
      case BodyCode::kNotEqual: return compare(to, a, b, 4);
      case BodyCode::kLess: return compare(to, a, b, 17);
      case BodyCode::kLessEqual: return compare(to, a, b, 18);
      case BodyCode::kGreater: return compare(to, a, b, 30);
      case BodyCode::kGreaterEqual: return compare(to, a, b, 29);
      case BodyCode::kAnd: return vandps(to, a, b);
      case BodyCode::kOr: return vorps(to, a, b);
      case BodyCode::kSelect: return select(to, a, b, c);
    }
  }

  void sign_bits(const Vector& to) {
    if (is_avx512_)
      vpternlogd(to, to, to, 0xff);
    else
      vpcmpeqd(to, to, to);
    is_double_ ? vpsllq(to, to, 63) : vpslld(to, to, 31);
  }

  void round(const Vector& to, const Vector& a, uint8_t mode) {
    if (is_avx512_) return is_double_ ? vrndscalepd(to, a, mode) : vrndscaleps(to, a, mode);
    is_double_ ? vroundpd(to, a, mode) : vroundps(to, a, mode);
  }

  // A mask has all bits of an element set, or none.
  void compare(const Vector& to, const Vector& a, const Vector& b, uint8_t predicate) {
    if (is_avx512_) {
      is_double_ ? vcmppd(k1, a, b, predicate) : vcmpps(k1, a, b, predicate);
      return is_double_ ? vpmovm2q(to, k1) : vpmovm2d(to, k1);
    }
    is_double_ ? vcmppd(to, a, b, predicate) : vcmpps(to, a, b, predicate);
  }

  void select(const Vector& to, const Vector& mask, const Vector& yes, const Vector& no) {
    if (is_avx512_) {
      vmovaps(to, mask);
      return vpternlogd(to, yes, no, 0xca);  // to ? yes : no, bit by bit
    }
    is_double_ ? vblendvpd(to, no, yes, mask) : vblendvps(to, no, yes, mask);
  }

  static constexpr uint8_t kUnordered = 3;

  // to = isnan(a) ? a : to.
  void replace_nan(const Vector& to, const Vector& a, const Vector& part) { replace(to, a, a, part); }
  // to = isnan(b) ? a : to.
  void replace(const Vector& to, const Vector& a, const Vector& b, const Vector& part) {
    if (is_avx512_) {
      is_double_ ? vcmppd(k1, b, b, kUnordered) : vcmpps(k1, b, b, kUnordered);
      return is_double_ ? vmovapd(to | k1, a) : vmovaps(to | k1, a);
    }
    is_double_ ? vcmppd(part, b, b, kUnordered) : vcmpps(part, b, b, kUnordered);
    is_double_ ? vblendvpd(to, to, a, part) : vblendvps(to, to, a, part);
  }

  const bool is_avx512_, is_double_;
  const int num_inputs_, num_numbers_;
  const std::vector<Flat> code_;
  std::vector<int> last_use_;  // by value: the last instruction that reads it; -1: none
  int num_free_ = 0;           // registers for inputs and results: the first ones
  int num_kept_ = 0;           // numbers that stay in the registers after those
  std::vector<int> free_;
  std::vector<std::optional<std::array<int, 4>>> held_;  // by value
};

class CompiledCode final : public StepCode {
 public:
  CompiledCode(const StepSource& source, std::unique_ptr<Compiler> code)
      : StepCode(source, code->getCode<Function>()), code_(std::move(code)) {}
  size_t bytes() const override { return code_->getSize(); }

 private:
  const std::unique_ptr<Compiler> code_;  // owns the pages
};

}  // namespace

bool compiles_for(const char* isa) {
  static const bool is_off = [] {
    const char* setting = std::getenv("TELETENSOR_COMPILE");
    return setting != nullptr && std::string_view(setting) == "0";
  }();
  return !is_off && (std::string_view(isa) == "avx512" || std::string_view(isa) == "avx2");
}

std::unique_ptr<StepCode> compile_steps(const StepSource& source, const char* isa) {
  const bool is_avx512 = std::string_view(isa) == "avx512";
  try {
    auto compiler = std::make_unique<Compiler>(source, is_avx512);
    if (!compiler->make()) return nullptr;
    return std::make_unique<CompiledCode>(source, std::move(compiler));
  } catch (const Xbyak::Error&) {  // no memory, or none that may be executed
    return nullptr;
  }
}

}  // namespace tt::cpu
