#include "parallel/distributed/stages/stage_reduction_internal.h"

#include <algorithm>
#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "parallel/distributed/group/collectives_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet::distributed::detail {

namespace {

// Checks what a hook, perhaps a user's, passes on, or leaves of what it was given: `like`.
void check_values(const CommStage& stage, const char* what, const StageValues& v, int ranks,
                  const TensorBase* like = nullptr) {
  const Tensor& t = v.values;
  RAMET_CHECK(t.defined(), "comm_stage", stage.description(), what, v.name,
              "': got an undefined tensor");
  RAMET_CHECK(t.scalar_type() == kFloat && t.is_contiguous() &&
                  (!like || (same_sizes(t, *like) && t.device() == like->device())),
              "comm_stage", stage.description(), what, v.name, "': got ", describe(t),
              ", expected contiguous float32",
              like ? ramet::detail::join(like->sizes(), " on ", like->device()) : "");
  RAMET_CHECK(v.present_on.size() == static_cast<size_t>(ranks), "comm_stage", stage.description(),
              what, v.name, "': present_on: got ", v.present_on.size(),
              " entries, expected one for each of ", ranks, " ranks");
}

void run_stage(ReduceStage& stage, std::vector<StageValues>& list, const StageNext& rest) {
  const std::vector<StageValues> given = list;
  stage.reduce(list, rest);
  RAMET_CHECK(list.size() == given.size(), "comm_stage", stage.description(), ": left ",
              list.size(), " values, expected the ", given.size(), " that it was given");
  for (size_t i = 0; i < list.size(); ++i)
    check_values(stage, ": left as '", list[i], rest.size(), &given[i].values);
}

}  // namespace

void StageChain::reduce(std::vector<StageValues>& list) const {
  if (at_ > 0)
    for (const StageValues& v : list)
      check_values(*run_.stages[at_ - 1], ": handed on '", v, size());
  const auto me = static_cast<size_t>(rank());
  const auto numbers = [&](const auto& bytes_of) {
    uint64_t sum = 0;
    for (const StageValues& v : list)
      if (v.present_on[me]) sum += bytes_of(v.values.numel());
    return sum;
  };
  const uint64_t given =
      numbers([](int64_t n) { return static_cast<uint64_t>(n) * sizeof(float); });
  if (at_ > 0 && !dynamic_cast<const WireFormat*>(run_.stages[at_ - 1].get()))
    bytes_[at_ - 1].after += given;
  if (at_ == run_.stages.size()) return reduce_over_wire(channel_, run_, formats_, list);

  bytes_[at_].before += given;
  CommStage* const stage = run_.stages[at_].get();
  std::vector<const WireFormat*> formats = formats_;
  if (const auto* format = dynamic_cast<const WireFormat*>(stage)) {
    formats.push_back(format);
    bytes_[at_].after += numbers([&](int64_t n) { return format->bytes(n); });
  }
  const StageChain rest(channel_, run_, bytes_, at_ + 1, std::move(formats));
  if (auto* reduces = dynamic_cast<ReduceStage*>(stage)) run_stage(*reduces, list, rest);
  else rest.reduce(list);
}

namespace {

class PlainFormat final : public WireFormat {
 public:
  std::string description() const override { return "float32"; }
  bool lossless() const override { return true; }
  size_t bytes(int64_t n) const override { return static_cast<size_t>(n) * sizeof(float); }
  void encode(const float* in, int64_t n, void* out, const WireKey&) const override {
    std::memcpy(out, in, bytes(n));
  }
  void decode(const void* in, int64_t n, float* out) const override {
    std::memcpy(out, in, bytes(n));
  }
};
const PlainFormat& plain() {  // never destroyed, and not made before main()
  static const auto* format = new PlainFormat;
  return *format;
}

// Elements [first, first + n) of value number `index`.
struct Part {
  size_t index;
  int64_t first, n;
};
using Parts = std::vector<Part>;

class Wire {
 public:
  Wire(Channel& channel, const StageRun& run, std::vector<const WireFormat*> formats,
       std::vector<StageValues>& list)
      : channel_(channel),
        run_(run),
        formats_(std::move(formats)),
        list_(list),
        n_(channel.size()),
        me_(channel.rank()) {
    if (formats_.empty()) formats_.push_back(&plain());
    lossless_ = std::ranges::all_of(formats_, [](const WireFormat* f) { return f->lossless(); });
    cut();
  }

  void reduce() {
    const Staging memory = channel_.staging(numbers(of(me_)) * sizeof(float));
    float* const sum = reinterpret_cast<float*>(memory.data());
    add_up(sum);
    // For a sum, the mean is sent: it is in range if the contributions are.
    const bool scaled = run_.average == Average::sum && !lossless_ && n_ > 2;
    double divisor = 1, rows = 0, active = 0;
    for (double r : run_.rows)
      if (r >= 0) rows += r, active += 1;
    if (run_.average == Average::mean || scaled) divisor = run_.by_active ? active : n_;
    if (run_.average == Average::weighted) divisor = rows;
    const auto elements = static_cast<int64_t>(numbers(of(me_)));
    if (divisor != 1 && divisor > 0) over_memory(sum, elements, kFloat).div_(divisor);
    if (n_ > 2) {
      hand_out(sum);
    } else {
      const float* from = sum;
      for (const Part& p : of(me_)) {
        std::memcpy(at(p), from, static_cast<size_t>(p.n) * sizeof(float));
        from += p.n;
      }
    }
    for (const StageValues& v : list_)
      if (scaled) v.values.mul_(static_cast<double>(n_));
  }

 private:
  const Parts& of(int rank) const { return parts_[static_cast<size_t>(rank)]; }
  bool has(int rank, const Part& p) const {
    return list_[p.index].present_on[static_cast<size_t>(rank)];
  }
  float* at(const Part& p) const {
    return static_cast<float*>(list_[p.index].values.ptr()) + p.first;
  }
  static size_t numbers(const Parts& parts) {
    size_t sum = 0;
    for (const Part& p : parts) sum += static_cast<size_t>(p.n);
    return sum;
  }
  size_t encoded(const Part& p) const { return formats_.back()->bytes(p.n); }
  // The encoded size of those parts that a rank has.
  size_t encoded(const Parts& parts, int rank) const {
    size_t sum = 0;
    for (const Part& p : parts) sum += has(rank, p) ? encoded(p) : 0;
    return sum;
  }
  size_t encoded(const Parts& parts) const {
    size_t sum = 0;
    for (const Part& p : parts) sum += encoded(p);
    return sum;
  }

  // Decides which rank adds up which parts. With two ranks, both add up all. Parts begin at blocks,
  // whatever the bucket.
  void cut() {
    parts_.resize(static_cast<size_t>(n_));
    int64_t total = 0, block = 1;
    for (const StageValues& v : list_) total += v.values.numel();
    for (const WireFormat* f : formats_) block = std::max(block, f->block());
    for (int r = 0; r < n_; ++r) {
      const int64_t from = n_ == 2 ? 0 : total * r / n_,
                    to = n_ == 2 ? total : total * (r + 1) / n_;
      int64_t offset = 0;
      for (size_t i = 0; i < list_.size(); ++i) {
        const int64_t n = list_[i].values.numel();
        const auto edge = [&](int64_t x) {
          return std::min(n, ceil_div(std::max<int64_t>(x - offset, 0), block) * block);
        };
        const int64_t begin = edge(from), end = edge(to);
        if (begin < end) parts_[static_cast<size_t>(r)].push_back({i, begin, end - begin});
        offset += n;
      }
    }
  }

  char* encode(const float* in, const Part& p, int role, char* out) const {
    const WireKey key{list_[p.index].name, run_.step, role, p.first};
    const size_t earlier = formats_.size() - 1;
    const Staging rounded =
        channel_.staging(earlier ? static_cast<size_t>(p.n) * sizeof(float) : 0);
    for (size_t i = 0; i < earlier; ++i) {
      const Staging coded = channel_.staging(formats_[i]->bytes(p.n));
      formats_[i]->encode(in, p.n, coded.data(), key);
      formats_[i]->decode(coded.data(), p.n, reinterpret_cast<float*>(rounded.data()));
      in = reinterpret_cast<const float*>(rounded.data());
    }
    formats_.back()->encode(in, p.n, out, key);
    return out + encoded(p);
  }

  // Computes the sum of the parts that this rank adds up.
  void add_up(float* sum) const {
    // Encodes the parts for each rank. With two ranks, the parts for this rank are the same.
    std::vector<Staging> mine, theirs;
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    std::vector<const char*> from;
    for (int r = 0; r < n_; ++r) {
      mine.push_back(channel_.staging(n_ == 2 && r != me_ ? 0 : encoded(of(r), me_)));
      theirs.push_back(channel_.staging(r == me_ ? 0 : encoded(of(me_), r)));
      from.push_back(r == me_ ? mine.back().data() : theirs.back().data());
      if (n_ == 2 && r != me_) continue;
      char* to = mine.back().data();
      for (const Part& p : of(r))
        if (has(me_, p)) to = encode(at(p), p, me_, to);
    }
    for (int r = 0; r < n_; ++r) {
      if (r == me_) continue;
      out.push_back({r, mine[static_cast<size_t>(n_ == 2 ? me_ : r)].data(), encoded(of(r), me_)});
      in.push_back({r, theirs[static_cast<size_t>(r)].data(), encoded(of(me_), r)});
    }
    channel_.move(out, in);

    std::vector<Staging> decoded;
    int64_t longest = 0;
    for (const Part& p : of(me_)) longest = std::max(longest, p.n);
    for (int r = 0; r < n_; ++r)
      decoded.push_back(channel_.staging(static_cast<size_t>(longest) * sizeof(float)));
    const Combiner combine(channel_, {ReduceOp::sum, run_.order, kFloat}, longest);
    for (const Part& p : of(me_)) {
      std::vector<const void*> summands;
      for (int r = 0; r < n_; ++r) {
        const auto k = static_cast<size_t>(r);
        summands.push_back(has(r, p) ? decoded[k].data() : nullptr);
        if (!has(r, p)) continue;
        auto* const x = reinterpret_cast<float*>(decoded[k].data());
        formats_.back()->decode(from[k], p.n, x);
        from[k] += encoded(p);
        if (run_.average == Average::weighted) over_memory(x, p.n, kFloat).mul_(run_.rows[k]);
      }
      combine(sum, summands, p.n);
      sum += p.n;
    }
  }

  // Sends each owner's means to all ranks.
  void hand_out(const float* sum) const {
    const Staging mine = channel_.staging(encoded(of(me_)));
    char* to = mine.data();
    for (const Part& p : of(me_)) {
      to = encode(sum, p, n_, to);
      sum += p.n;
    }
    std::vector<Staging> theirs;
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (int r = 0; r < n_; ++r) {
      theirs.push_back(channel_.staging(r == me_ ? 0 : encoded(of(r))));
      if (r == me_) continue;
      out.push_back({r, mine.data(), encoded(of(me_))});
      in.push_back({r, theirs.back().data(), encoded(of(r))});
    }
    channel_.move(out, in);
    for (int r = 0; r < n_; ++r) {
      const char* from = r == me_ ? mine.data() : theirs[static_cast<size_t>(r)].data();
      for (const Part& p : of(r)) {
        formats_.back()->decode(from, p.n, at(p));
        from += encoded(p);
      }
    }
  }

  Channel& channel_;
  const StageRun& run_;
  std::vector<const WireFormat*> formats_;
  std::vector<StageValues>& list_;
  const int n_, me_;
  bool lossless_;
  std::vector<Parts> parts_;  // [rank]: the parts that it adds up
};

}  // namespace

void reduce_over_wire(Channel& channel, const StageRun& run,
                      const std::vector<const WireFormat*>& formats,
                      std::vector<StageValues>& list) {
  const NoGradGuard off;
  if (channel.size() > 1 && !list.empty()) Wire(channel, run, formats, list).reduce();
}

}  // namespace ramet::distributed::detail
