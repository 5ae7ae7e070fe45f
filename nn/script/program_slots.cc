// Where the values of a program live, and for how long.
//
// Note [Lifetimes of slots]
// Most values are made and used up between two jumps. One pass over their block, from its end,
// finds their last uses, and they share slots. For the others the usual data-flow equations say at
// which jumps they are alive. Where a value is alive on one way out of a branch only, the other way
// begins with a kFree.
#include <algorithm>

#include "nn/script/program_internal.h"

namespace ramet::script {
namespace {

using Code = Instruction::Code;

class Bits {
 public:
  explicit Bits(size_t size) : words_((size + 63) / 64, 0) {}
  bool has(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void add(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void remove(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  /// this |= a - b. Has this changed?
  bool merge(const Bits& a, const Bits& b) {
    uint64_t changed = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t now = words_[i] | (a.words_[i] & ~b.words_[i]);
      changed |= now ^ words_[i];
      words_[i] = now;
    }
    return changed != 0;
  }

 private:
  std::vector<uint64_t> words_;
};

bool jumps(Code code) {
  return code == Code::kJump || code == Code::kJumpUnless || code == Code::kJumpUnlessMore;
}
bool ends(Code code) { return code == Code::kJump || code == Code::kReturn || code == Code::kFail; }

class Placer {
 public:
  explicit Placer(Program& program) : p_(program) {}

  void place() {
    find_blocks();
    find_globals();
    // Of a text of such a size that the sets would not fit into memory, globals live to the end.
    if (starts_.size() * std::max<size_t>(globals_, 1) <= kLargestSets) solve();
    else all_live_ = true;
    for (size_t b = 0; b < starts_.size(); ++b) mark_block(b);
    share_slots();
    insert_frees();
  }

 private:
  static constexpr size_t kLargestSets = size_t{1} << 28;  // bits
  static constexpr uint32_t kLocal = ~uint32_t{0};

  size_t end_of(size_t block) const {
    return block + 1 < starts_.size() ? starts_[block + 1] : p_.instructions.size();
  }
  Operand* begin(const Instruction& i) { return p_.operands.data() + i.first; }
  Operand* end(const Instruction& i) { return begin(i) + i.count; }

  void find_blocks() {
    const size_t count = p_.instructions.size();
    std::vector<bool> start(count + 1, false);
    start[0] = true;
    for (size_t i = 0; i < count; ++i) {
      const Instruction& at = p_.instructions[i];
      if (jumps(at.code)) start[std::min<size_t>(at.extra, count)] = true;
      if (jumps(at.code) || ends(at.code)) start[i + 1] = true;
    }
    block_of_.resize(count + 1, 0);
    for (size_t i = 0; i < count; ++i) {
      if (start[i]) starts_.push_back(i);
      block_of_[i] = starts_.size() - 1;
    }
  }

  template <class F> void for_successors(size_t block, F f) const {
    const size_t last = end_of(block) - 1;
    const Instruction& at = p_.instructions[last];
    if (jumps(at.code) && at.extra < p_.instructions.size()) f(block_of_[at.extra]);
    if (!ends(at.code) && last + 1 < p_.instructions.size()) f(block_of_[last + 1]);
  }

  // A slot is global if it is a parameter, or if it is read before it is written in some block.
  void find_globals() {
    const size_t parameters = p_.function->parameters.size();
    std::vector<size_t> written_in(p_.slots, ~size_t{0});
    number_.assign(p_.slots, kLocal);
    for (size_t s = 0; s < parameters; ++s) number_[s] = static_cast<uint32_t>(globals_++);
    for (size_t b = 0; b < starts_.size(); ++b)
      for (size_t i = starts_[b]; i < end_of(b); ++i) {
        const Instruction& at = p_.instructions[i];
        for (Operand* o = begin(at); o != end(at); ++o)
          if (!o->is_constant() && written_in[o->index()] != b && number_[o->index()] == kLocal)
            number_[o->index()] = static_cast<uint32_t>(globals_++);
        if (at.result != Instruction::kNone) written_in[at.result] = b;
      }
  }

  void solve() {
    const size_t blocks = starts_.size();
    std::vector<Bits> writes(blocks, Bits(globals_));
    live_in_.assign(blocks, Bits(globals_));
    live_out_.assign(blocks, Bits(globals_));
    const Bits none(globals_);
    for (size_t b = 0; b < blocks; ++b)
      for (size_t i = starts_[b]; i < end_of(b); ++i) {
        const Instruction& at = p_.instructions[i];
        for (Operand* o = begin(at); o != end(at); ++o)
          if (is_global(*o) && !writes[b].has(number_[o->index()]))
            live_in_[b].add(number_[o->index()]);
        if (at.result != Instruction::kNone && number_[at.result] != kLocal)
          writes[b].add(number_[at.result]);
      }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks; b-- > 0;) {
        for_successors(b, [&](size_t next) { live_out_[b].merge(live_in_[next], none); });
        changed = live_in_[b].merge(live_out_[b], writes[b]) || changed;
      }
    }
  }

  bool is_global(Operand o) const { return !o.is_constant() && number_[o.index()] != kLocal; }

  // Backwards: what is not alive after an instruction that reads it is used there for the last
  // time.
  void mark_block(size_t b) {
    Bits globals = all_live_ ? Bits(globals_) : live_out_[b];
    std::vector<uint32_t> locals;  // that are alive
    if (local_alive_.empty()) local_alive_.assign(p_.slots, false);
    const auto alive = [&](uint32_t s) {
      return number_[s] == kLocal ? local_alive_[s] : all_live_ || globals.has(number_[s]);
    };
    const auto set = [&](uint32_t s, bool on) {
      if (number_[s] == kLocal) {
        local_alive_[s] = on;
        if (on) locals.push_back(s);
      } else if (!all_live_) {
        if (on) globals.add(number_[s]);
        else globals.remove(number_[s]);
      }
    };
    for (size_t i = end_of(b); i-- > starts_[b];) {
      Instruction& at = p_.instructions[i];
      if (at.result != Instruction::kNone) {
        if (!alive(at.result)) at.result = Instruction::kNone;  // its value is not used
        else set(at.result, false);
      }
      for (Operand* o = end(at); o-- != begin(at);) {
        if (o->is_constant()) continue;
        o->set_last(!alive(o->index()));
        at.frees = at.frees || o->is_last();
        set(o->index(), true);
      }
    }
    for (uint32_t s : locals) local_alive_[s] = false;
  }

  // Globals have slots of their own. Locals take free ones of those after them.
  void share_slots() {
    size_t most = globals_;
    std::vector<uint32_t> now(p_.slots, kLocal);
    for (size_t b = 0; b < starts_.size(); ++b) {
      std::vector<uint32_t> free;
      size_t used = globals_;
      for (size_t i = starts_[b]; i < end_of(b); ++i) {
        Instruction& at = p_.instructions[i];
        for (Operand* o = begin(at); o != end(at); ++o) {
          if (o->is_constant()) continue;
          const uint32_t s = o->index();
          const bool local = number_[s] == kLocal;
          o->set_index(local ? now[s] : number_[s]);
          if (local && o->is_last()) free.push_back(now[s]);
        }
        if (at.result == Instruction::kNone) continue;
        const uint32_t s = at.result;
        if (number_[s] != kLocal) {
          at.result = number_[s];
          continue;
        }
        if (free.empty()) free.push_back(static_cast<uint32_t>(used++));
        at.result = now[s] = free.back();
        free.pop_back();
      }
      most = std::max(most, used);
    }
    p_.slots = most;
  }

  void insert_frees() {
    if (all_live_) return;
    const size_t blocks = starts_.size();
    std::vector<Bits> arriving(blocks, Bits(globals_));
    const Bits none(globals_);
    for (size_t g = 0; g < p_.function->parameters.size(); ++g) arriving[0].add(g);
    for (size_t b = 0; b < blocks; ++b)
      for_successors(b, [&](size_t next) { arriving[next].merge(live_out_[b], none); });
    std::vector<Instruction> instructions;
    std::vector<size_t> offsets;
    std::vector<uint32_t> moved(p_.instructions.size() + 1, 0);
    for (size_t b = 0; b < blocks; ++b) {
      moved[starts_[b]] = static_cast<uint32_t>(instructions.size());
      Instruction free;
      free.code = Code::kFree;
      free.first = static_cast<uint32_t>(p_.operands.size());
      for (size_t g = 0; g < globals_; ++g)
        if (arriving[b].has(g) && !live_in_[b].has(g))
          p_.operands.push_back(Operand::slot(static_cast<uint32_t>(g)));
      free.count = static_cast<uint32_t>(p_.operands.size()) - free.first;
      if (free.count > 0) {
        instructions.push_back(free);
        offsets.push_back(p_.offsets[starts_[b]]);
      }
      for (size_t i = starts_[b]; i < end_of(b); ++i) {
        instructions.push_back(p_.instructions[i]);
        offsets.push_back(p_.offsets[i]);
      }
    }
    moved.back() = static_cast<uint32_t>(instructions.size());
    for (Instruction& at : instructions)
      if (jumps(at.code)) at.extra = moved[at.extra];
    p_.instructions = std::move(instructions);
    p_.offsets = std::move(offsets);
  }

  Program& p_;
  std::vector<size_t> starts_;    // of the blocks
  std::vector<size_t> block_of_;  // of each instruction
  std::vector<uint32_t> number_;  // of each slot among the globals, or kLocal
  size_t globals_ = 0;
  std::vector<Bits> live_in_, live_out_;
  std::vector<bool> local_alive_;
  bool all_live_ = false;
};

}  // namespace

void place_values(Program& program) { Placer(program).place(); }

}  // namespace ramet::script
