#include "parallel/distributed/group/collectives_internal.h"

#include <algorithm>
#include <optional>

#include "runtime/base/checked_size.h"

namespace ramet::distributed::detail {

namespace {

// Below this size, a second round trip costs more than the bytes that it saves.
constexpr size_t kSmall = 32 << 10;
// Between two ranks a second round trip saves no bytes. It only saves half of the additions.
constexpr size_t kSmallForTwo = 8 << 20;
// From this size on, and for at most kSharers ranks, memory that all ranks share is faster.
constexpr size_t kShared = 256 << 10;
constexpr int kSharers = 8;
// Bytes of a piece of a chunk: small enough to be added while it is in the cache.
constexpr int64_t kPieceBytes = 1 << 20;
// The number of pieces under way.
constexpr int64_t kAhead = 2;
// Chunks of ranks begin at multiples of this many elements.
constexpr int64_t kChunkAlign = 64;

struct Chunks {
  int64_t each, total;
  Chunks(int64_t elements, int ranks)
      : each(ceil_div(ceil_div(elements, ranks), kChunkAlign) * kChunkAlign), total(elements) {}
  int64_t begin(int rank) const { return std::min(total, each * rank); }
  int64_t size(int rank) const { return begin(rank + 1) - begin(rank); }
};

// Combines the elements [from, from + n) of a message, member by member. Adjacent members that the
// same ranks have are combined in one call, gaps included. `at`: each rank's element `from`.
void combine_members(const Combiner& combine, const std::vector<Member>& members, char* out,
                     const std::vector<const char*>& at, int64_t from, int64_t n) {
  const auto item = static_cast<int64_t>(item_size(combine.dtype()));
  for (size_t first = 0; first < members.size();) {
    size_t last = first + 1;
    while (last < members.size() && members[last].present_on == members[first].present_on) ++last;
    const Member &a = members[first], &b = members[last - 1];
    const int64_t begin = std::max(from, a.offset), end = std::min(from + n, b.offset + b.numel);
    const bool any = std::ranges::find(a.present_on, true) != a.present_on.end();
    if (any && begin < end) {
      std::vector<const void*> in;
      for (size_t r = 0; r < at.size(); ++r)
        in.push_back(a.present_on[r] ? at[r] + (begin - from) * item : nullptr);
      combine(out + (begin - from) * item, in, end - begin);
    }
    first = last;
  }
}

bool nobody(const Member& m) { return std::ranges::find(m.present_on, true) == m.present_on.end(); }

// Every rank sends all elements to every other rank, in one round.
void reduce_small(Channel& channel, const Reduction& reduction, char* place, int64_t elements,
                  const std::function<std::vector<Member>()>& members) {
  const int n = channel.size(), me = channel.rank();
  const size_t whole = static_cast<size_t>(elements) * item_size(reduction.dtype);
  std::vector<Staging> theirs;
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  std::vector<const char*> at;
  for (int i = 0; i < n; ++i) {
    theirs.push_back(channel.staging(i == me ? 0 : whole));
    at.push_back(i == me ? place : theirs.back().data());
    if (i == me) continue;
    out.push_back({i, place, whole});
    in.push_back({i, theirs.back().data(), whole});
  }
  const Combiner combine(channel, reduction, elements);
  channel.move(out, in);
  combine_members(combine, members(), place, at, 0, elements);
}

// Every rank copies all its elements to shared memory and adds up all ranks' elements itself.
// Nothing is written to `place` before the last message has come. Returns false, without any
// effect, where there is no such memory.
bool reduce_shared(Channel& channel, const Reduction& reduction, char* place, int64_t elements,
                   const std::function<std::vector<Member>()>& members) {
  const int n = channel.size(), me = channel.rank();
  const size_t whole = static_cast<size_t>(elements) * item_size(reduction.dtype);
  SharedMemory* const memory = channel.shared_memory();
  if (!memory || n > kSharers || whole < kShared) return false;
  channel.headers();  // after this, the others have read what they read here before
  if (!memory->reserve(channel, whole)) return false;
  std::memcpy(memory->of(me), place, whole);
  memory->given += whole;
  std::vector<char> written(static_cast<size_t>(n), 1);
  channel.share(written);
  std::vector<const char*> at;
  for (int i = 0; i < n; ++i) at.push_back(i == me ? place : memory->of(i));
  combine_members(Combiner(channel, reduction, elements), members(), place, at, 0, elements);
  return true;
}

// Each rank gets one chunk and adds it up as a whole: between GPUs, smaller pieces gain nothing.
void reduce_chunks(Channel& channel, const Reduction& reduction, char* place, int64_t elements,
                   const std::function<std::vector<Member>()>& members) {
  const int n = channel.size(), me = channel.rank();
  const auto item = static_cast<int64_t>(item_size(reduction.dtype));
  const Chunks chunks(elements, n);
  const auto at = [&](int r) { return place + chunks.begin(r) * item; };
  const auto bytes = [&](int r) { return static_cast<size_t>(chunks.size(r) * item); };
  std::vector<Staging> theirs;
  std::vector<Outgoing> parts, sums;
  std::vector<Incoming> parts_in, sums_in;
  std::vector<const char*> all;
  for (int r = 0; r < n; ++r) {
    theirs.push_back(channel.staging(r == me ? 0 : bytes(me)));
    all.push_back(r == me ? at(me) : theirs.back().data());
    if (r == me) continue;
    parts.push_back({r, at(r), bytes(r)});
    parts_in.push_back({r, theirs.back().data(), bytes(me)});
    sums.push_back({r, at(me), bytes(me)});
    sums_in.push_back({r, at(r), bytes(r)});
  }
  // The sums arrive where the parts were sent from. A member that no rank contributes to arrives
  // with the values of its chunk's owner. This function does not restore the old values.
  const Combiner combine(channel, reduction, chunks.size(me));
  channel.move(parts, parts_in);
  combine_members(combine, members(), at(me), all, chunks.begin(me), chunks.size(me));
  channel.move(sums, sums_in);
}

// Reduces with NCCL's own all-reduce, if NCCL can do it and every rank has every member.
bool reduce_in_any_order(Channel& channel, const Reduction& reduction, char* place,
                         int64_t elements, const std::vector<Member>& members) {
  if (reduction.order.kind() != ReduceOrder::Kind::kAny || reduction.op > ReduceOp::average)
    return false;
  for (const Member& m : members)
    if (std::ranges::find(m.present_on, false) != m.present_on.end()) return false;
  const Combiner combine(channel, reduction, 0);
  if (!channel.sum_in_any_order(place, elements, reduction.dtype)) return false;
  if (reduction.op == ReduceOp::average)
    combine.divide(place, elements, static_cast<size_t>(channel.size()));
  return true;
}

// Each rank adds up one chunk, in pieces. While it adds one piece, the next ones are on their way,
// and a piece's sum goes out at once. The sums of other ranks' chunks arrive where those chunks
// were sent from. That is safe: an owner has our part of a piece before it sends the sum of that
// piece.
class Pieces {
 public:
  Pieces(Channel& channel, const Reduction& reduction, char* place, int64_t elements, char* undo)
      : channel_(channel),
        place_(place),
        undo_(undo),
        item_(static_cast<int64_t>(item_size(reduction.dtype))),
        chunks_(elements, channel.size()) {
    const int64_t fewest = Channel::kMaxRounds / 2;
    piece_ = std::max(kPieceBytes / item_, ceil_div(chunks_.each, fewest));
    piece_ = ceil_div(piece_, kChunkAlign) * kChunkAlign;
    count_ = ceil_div(chunks_.each, piece_);
    combine_.emplace(channel, reduction, piece_);
    for (int64_t i = 0; i < std::min<int64_t>(kAhead, count_); ++i)
      for (int r = 0; r < channel.size(); ++r)
        theirs_.push_back(channel.staging(
            r == channel.rank() ? 0 : static_cast<size_t>(size(channel.rank(), i) * item_)));
  }

  void run(const std::function<std::vector<Member>()>& members) {
    std::vector<Round> parts, sums;
    for (int64_t k = 0; k < std::min<int64_t>(kAhead, count_); ++k) parts.push_back(begin_parts(k));
    std::vector<Member> plan;
    // Members that no rank contributes to arrive with their owner's values: keep the values from
    // here.
    std::vector<std::pair<char*, std::vector<char>>> kept;
    for (int64_t k = 0; k < count_; ++k) {
      channel_.end(parts[static_cast<size_t>(k)]);
      if (k == 0) {
        plan = members();
        for (const Member& m : plan) {
          char* const here = place_ + m.offset * item_;
          if (nobody(m)) kept.emplace_back(here, std::vector<char>(here, here + m.numel * item_));
        }
      }
      save(k);
      add(plan, k);
      sums.push_back(begin_sums(k));
      if (k + kAhead < count_) parts.push_back(begin_parts(k + kAhead));
    }
    for (const Round& r : sums) channel_.end(r);
    for (const auto& [here, bytes] : kept) std::copy(bytes.begin(), bytes.end(), here);
  }
  // Restores the old values of the pieces that have begun to change.
  void take_back() const {
    for (int64_t k = 0; undo_ && k < saved_; ++k)
      for (int r = 0; r < channel_.size(); ++r)
        if (bytes(r, k)) std::memcpy(at(r, k), undo_ + begin(r, k) * item_, bytes(r, k));
  }

 private:
  // The first element of piece k of a rank's chunk.
  int64_t begin(int r, int64_t k) const {
    return std::min(chunks_.begin(r + 1), chunks_.begin(r) + k * piece_);
  }
  int64_t size(int r, int64_t k) const { return begin(r, k + 1) - begin(r, k); }
  size_t bytes(int r, int64_t k) const { return static_cast<size_t>(size(r, k) * item_); }
  char* at(int r, int64_t k) const { return place_ + begin(r, k) * item_; }
  char* staging(int r, int64_t k) const {
    return theirs_[static_cast<size_t>(k % kAhead * channel_.size() + r)].data();
  }
  void save(int64_t k) {
    for (int r = 0; undo_ && r < channel_.size(); ++r)
      if (bytes(r, k)) std::memcpy(undo_ + begin(r, k) * item_, at(r, k), bytes(r, k));
    saved_ = k + 1;
  }

  Round begin_parts(int64_t k) const {
    const int me = channel_.rank();
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (int r = 0; r < channel_.size(); ++r) {
      if (r == me) continue;
      out.push_back({r, at(r, k), bytes(r, k)});
      in.push_back({r, staging(r, k), bytes(me, k)});
    }
    return channel_.begin(out, in);
  }
  void add(const std::vector<Member>& plan, int64_t k) const {
    const int me = channel_.rank();
    std::vector<const char*> all;
    for (int r = 0; r < channel_.size(); ++r) all.push_back(r == me ? at(me, k) : staging(r, k));
    combine_members(*combine_, plan, at(me, k), all, begin(me, k), size(me, k));
  }
  Round begin_sums(int64_t k) const {
    const int me = channel_.rank();
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (int r = 0; r < channel_.size(); ++r) {
      if (r == me) continue;
      out.push_back({r, at(me, k), bytes(me, k)});
      in.push_back({r, at(r, k), bytes(r, k)});
    }
    return channel_.begin(out, in);
  }

  Channel& channel_;
  std::optional<Combiner> combine_;
  char* const place_;
  char* const undo_;
  const int64_t item_;
  const Chunks chunks_;
  int64_t piece_ = 0, count_ = 0, saved_ = 0;
  std::vector<Staging> theirs_;  // [piece ahead][rank]
};

}  // namespace

void reduce_everywhere(Channel& channel, const Reduction& reduction, char* place, int64_t elements,
                       const std::function<std::vector<Member>()>& members, bool undo) {
  if (channel.size() == 1 && reduction.op <= ReduceOp::average) {
    members();
    return;
  }
  const size_t whole = static_cast<size_t>(elements) * item_size(reduction.dtype);
  const bool small = whole <= (channel.size() == 2 ? kSmallForTwo : kSmall);
  if (channel.over_cards()) {
    const std::vector<Member> plan = members();
    if (reduce_in_any_order(channel, reduction, place, elements, plan)) return;
    const auto known = [&] { return plan; };
    if (small) reduce_small(channel, reduction, place, elements, known);
    else reduce_chunks(channel, reduction, place, elements, known);
    return;
  }
  if (reduce_shared(channel, reduction, place, elements, members)) return;
  if (small) return reduce_small(channel, reduction, place, elements, members);
  const Staging before = channel.staging(undo ? whole : 0);
  Pieces pieces(channel, reduction, place, elements, undo ? before.data() : nullptr);
  try {
    pieces.run(members);
  } catch (...) {
    pieces.take_back();  // no message is under way any more
    throw;
  }
}

void reduce_to(Channel& channel, const Reduction& reduction, const char* from, int64_t elements,
               int root, const std::function<void(const char*)>& commit) {
  const int n = channel.size(), me = channel.rank();
  const auto item = static_cast<int64_t>(item_size(reduction.dtype));
  const Chunks chunks(elements, n);
  const auto offset = [&](int r) { return chunks.begin(r) * item; };
  const auto bytes = [&](int r) { return static_cast<size_t>(chunks.size(r) * item); };
  std::vector<Staging> theirs;
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  std::vector<const void*> at;
  for (int i = 0; i < n; ++i) {
    theirs.push_back(channel.staging(i == me ? 0 : bytes(me)));
    at.push_back(i == me ? from + offset(me) : theirs.back().data());
    if (i == me) continue;
    out.push_back({i, from + offset(i), bytes(i)});
    in.push_back({i, theirs.back().data(), bytes(me)});
  }
  const Staging result =
      channel.staging(me == root ? static_cast<size_t>(elements * item) : bytes(me));
  const Combiner combine(channel, reduction, chunks.size(me));
  channel.move(out, in);
  char* mine = result.data() + (me == root ? offset(me) : 0);
  combine(mine, at, chunks.size(me));
  out.clear();
  in.clear();
  if (me != root) out.push_back({root, mine, bytes(me)});
  for (int i = 0; me == root && i < n; ++i)
    if (i != me) in.push_back({i, result.data() + offset(i), bytes(i)});
  channel.move(out, in);
  if (me == root) commit(result.data());
}

void broadcast_from(Channel& channel, int root, const char* from, size_t bytes, char* landing,
                    const std::function<void(const char*)>& commit) {
  const int n = channel.size(), me = channel.rank();
  const Staging staging = channel.staging(me == root || landing ? 0 : bytes);
  char* const result = landing ? landing : staging.data();
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  if (n <= 2 || bytes <= kSmall) {
    for (int i = 0; me == root && i < n; ++i)
      if (i != me) out.push_back({i, from, bytes});
    if (me != root) in.push_back({root, result, bytes});
    channel.move(out, in);
  } else {
    // Sends one part to each rank, which passes it on: the root's link carries the bytes once, not
    // n times.
    const Chunks parts(static_cast<int64_t>(bytes), n);
    const auto size = [&](int r) { return static_cast<size_t>(parts.size(r)); };
    for (int i = 0; me == root && i < n; ++i)
      if (i != me) out.push_back({i, from + parts.begin(i), size(i)});
    if (me != root) in.push_back({root, result + parts.begin(me), size(me)});
    channel.move(out, in);
    out.clear();
    in.clear();
    const char* mine = me == root ? from : result;
    for (int i = 0; i < n; ++i) {
      if (i == me) continue;
      if (i != root) out.push_back({i, mine + parts.begin(me), size(me)});
      if (me != root) in.push_back({i, result + parts.begin(i), size(i)});
    }
    channel.move(out, in);
  }
  if (me != root) commit(result);
}

}  // namespace ramet::distributed::detail
