#include "parallel/distributed/wire/header_internal.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ramet::distributed::detail {

const char* name_of(Op op) {
  static const char* const names[] = {
      "broadcast",  "all_reduce",     "reduce",     "all_reduce_members",
      "all_gather", "reduce_scatter", "all_to_all", "scatter",
      "gather",     "barrier",        "exchange",   "all_reduce_stages",
      "send"};
  static_assert(std::size(names) == kOps);
  return names[static_cast<size_t>(op)];
}

std::string name_of(ReduceOp reduction) {
  static const char* const names[] = {"sum", "average", "product", "min", "max"};
  const auto i = static_cast<size_t>(reduction);
  return i < std::size(names) ? names[i] : "?";
}

std::optional<Op> op_named(const std::string& name) {
  for (size_t i = 0; i < kOps; ++i)
    if (name == name_of(static_cast<Op>(i))) return static_cast<Op>(i);
  return std::nullopt;
}

void Shown::set_name(const std::string& text) {
  std::memset(name, 0, sizeof(name));
  std::memcpy(name, text.data(), std::min(text.size(), sizeof(name) - 1));
  name_hash = XXH3_64bits_withSeed(text.data(), text.size(), name_hash);
}

void Shown::set_shape(const Tensor& t) {
  dtype = static_cast<uint32_t>(t.scalar_type());
  dims = static_cast<uint32_t>(t.dim());
  elements = static_cast<uint64_t>(t.numel());
  for (int64_t d = 0; d < std::min<int64_t>(t.dim(), 8); ++d) sizes[d] = t.size(d);
  for (int64_t d = 8; d < t.dim(); ++d) {
    const int64_t size = t.size(d);
    name_hash = XXH3_64bits_withSeed(&size, sizeof(size), name_hash);
  }
}

void Shown::set_members(const std::string& text, const std::vector<Tensor>& list) {
  std::string shapes;
  for (const Tensor& t : list) shapes += ramet::detail::join(t.sizes()) + ";";
  set_shape(list[0]);
  members = list.size();
  name_hash = 0;
  set_name(text + "|" + shapes);
  std::memset(name, 0, sizeof(name));
  text.copy(name, sizeof(name) - 1);
}

bool Shown::agrees_with(const Shown& o) const { return std::memcmp(this, &o, sizeof(Shown)) == 0; }

uint64_t Shown::fingerprint() const {
  return XXH3_64bits(this, sizeof(Shown)) >> (64 - kFingerprintBits);
}

std::string Shown::text() const {
  std::string out = name_of(op);
  out += "(operation " + std::to_string(sequence);
  if (name[0]) out += ", \"" + std::string(name) + "\"";
  if (has_tensors(op)) {
    const auto type = static_cast<ScalarType>(dtype);
    out += std::string(", ") + (dtype < kScalarTypes ? short_name_of(type) : "?");
    if (op == Op::all_reduce_members || op == Op::all_reduce_stages) {
      out +=
          ", " + std::to_string(members) + " members of " + std::to_string(elements) + " elements";
    } else if (op != Op::all_to_all) {
      out += "[";
      for (uint32_t d = 0; d < std::min(dims, 8u); ++d)
        out += (d ? ", " : "") + std::to_string(sizes[d]);
      out += "]";
    }
  }
  if (reduces(op)) {
    out += ", " + name_of(reduce);
    if (reduce <= ReduceOp::average)
      out += order == 0   ? ", fixed"
             : order == 1 ? ", tree:" + std::to_string(leaves)
                          : std::string(", any");
  }
  if (over_cards) out += ", nccl";
  if (root >= 0) out += ", root " + std::to_string(root);
  return out + ")";
}

Disagreement compare(const std::vector<Header>& all) {
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r].agrees_with(all[0])) continue;
    const std::string a = all[0].text(), b = all[r].text();
    // The error names only the first rank that differs from rank 0. If one rank is out of step,
    // many other ranks may equal neither of the two.
    return {
        "Detected mismatch between collectives on ranks. Rank 0 is running collective: " + a +
            ", but Rank " + std::to_string(r) + " is running collective: " + b +
            (a == b ? " (they differ in the end of the name, in sizes after the eighth or in the "
                      "members' shapes)"
                    : ""),
        {0, static_cast<int>(r)}};
  }
  return {};
}

}  // namespace ramet::distributed::detail
