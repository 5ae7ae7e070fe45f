// What a rank shows the others before data moves.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "parallel/distributed/wire/reduce_op.h"

namespace ramet::distributed::detail {

enum class Op : uint32_t {
  broadcast,
  all_reduce,
  reduce,
  all_reduce_members,
  all_gather,
  reduce_scatter,
  all_to_all,
  scatter,
  gather,
  barrier,
  exchange,
  all_reduce_stages,  // of members, through communication hooks
  send,               // shown by both sides of a message
};
const char* name_of(Op op);
std::string name_of(ReduceOp reduction);
std::optional<Op> op_named(const std::string& name);
inline constexpr size_t kOps = static_cast<size_t>(Op::send) + 1;
constexpr bool has_tensors(Op op) { return op != Op::barrier && op != Op::exchange; }
constexpr bool reduces(Op op) {
  return op == Op::all_reduce || op == Op::reduce || op == Op::all_reduce_members ||
         op == Op::reduce_scatter || op == Op::all_reduce_stages;
}

inline constexpr size_t kMaxMembers = 2048;

// Note [Tags]
// A tag names a message between two ranks. From the lowest bit, it has 8 bits for the round in the
// operation, 32 for the operation's number and 23 for the header's fingerprint. The header itself
// has no fingerprint in its tag, since all ranks must be able to read it. One last bit marks send
// and recv, which have their own tag in place of the fingerprint.
inline constexpr int kRoundBits = 8, kFingerprintAt = 40, kFingerprintBits = 23;

/// Identifies the operation: must be equal on all ranks.
struct Shown {
  uint64_t sequence = 0;
  Op op = Op::barrier;
  uint32_t dtype = 0, dims = 0, gap = 0;  // no padding: headers are compared as bytes
  int64_t sizes[8] = {};
  uint64_t elements = 0;
  ReduceOp reduce = ReduceOp::sum;
  uint8_t order = 0, leaves = 0;
  bool over_cards = false;  // from GPU to GPU: Note [Groups of GPUs]
  int32_t root = -1;
  uint64_t members = 0;    // their number
  uint64_t name_hash = 0;  // of the whole name and of the members' shapes
  char name[128] = {};     // its beginning

  void set_name(const std::string& text);
  void set_shape(const Tensor& t);
  /// The name, and how many tensors of which dtype and shapes.
  void set_members(const std::string& name, const std::vector<Tensor>& list);
  bool agrees_with(const Shown& o) const;
  /// A hash of kFingerprintBits bits.
  uint64_t fingerprint() const;
  /// all_reduce(operation 5, "bucket 3", float32[4, 2], sum, fixed)
  std::string text() const;
};

/// Adds what may differ between ranks. Sent as raw bytes: ranks run on one kind of machine.
struct Header : Shown {
  int32_t rank = 0;
  int32_t device = -1;  // k of cuda:k, and an id of that GPU; 0: it cannot be linked to others
  uint64_t card = 0;
  uint64_t bytes = 0;  // exchange: of this rank's part.
  // all_to_all, scatter, gather, send: the bytes that the sender of this header gives to its
  // reader, and the bytes that it expects from the reader
  uint64_t gives = 0, wants = 0;
  double note = 0;
  uint8_t present[kMaxMembers / 8] = {};  // one bit for each member

  bool has(size_t member) const { return present[member / 8] >> (member % 8) & 1; }
  void set_present(size_t member) {
    present[member / 8] = static_cast<uint8_t>(present[member / 8] | 1u << (member % 8));
  }
};

/// Two ranks that differ, and in what; an empty text if all agree.
struct Disagreement {
  std::string text;
  std::vector<int> ranks;
};
Disagreement compare(const std::vector<Header>& all);

}  // namespace ramet::distributed::detail
