#include <algorithm>
#include <iterator>

#include "parallel/distributed/group/caps_table_internal.h"
#include "runtime/devices/gpu_link.h"

namespace ramet::distributed {

using detail::kOps;
using detail::name_of;
using detail::Op;

struct CapsTable {
  static constexpr BackendCaps inproc{"inproc", false}, gloo{"gloo", false}, nccl{"nccl", true};
};

namespace {

constexpr int kReductions = 5;
constexpr unsigned bit(ReduceOp r) { return 1u << static_cast<unsigned>(r); }
constexpr unsigned kNone = 0, kSums = bit(ReduceOp::sum) | bit(ReduceOp::average),
                   kAll = (1u << kReductions) - 1;

struct Row {
  Op op;
  unsigned reductions;
  bool over_cards;
};
// Every engine moves bytes of any dtype, and all operations are built on that. Communication hooks
// compute on the host.
constexpr Row kRows[] = {{Op::broadcast, kNone, true},  {Op::all_reduce, kAll, true},
                         {Op::reduce, kAll, true},      {Op::all_reduce_members, kSums, true},
                         {Op::all_gather, kNone, true}, {Op::reduce_scatter, kAll, true},
                         {Op::all_to_all, kNone, true}, {Op::scatter, kNone, true},
                         {Op::gather, kNone, true},     {Op::barrier, kNone, false},
                         {Op::exchange, kNone, false},  {Op::all_reduce_stages, kSums, false},
                         {Op::send, kNone, true}};
static_assert(std::size(kRows) == kOps);
constexpr bool rows_fit() {
  for (size_t i = 0; i < kOps; ++i)
    if (kRows[i].op != static_cast<Op>(i) ||
        detail::reduces(kRows[i].op) != (kRows[i].reductions != kNone))
      return false;
  return true;
}
static_assert(rows_fit());
const Row& row(Op op) { return kRows[static_cast<size_t>(op)]; }

// Which dtypes a reduction takes.
struct Rule {
  bool (*takes)(ScalarType);
  const char* expected;
};
const Rule& rule_of(ReduceOp r) {
  static constexpr Rule any{[](ScalarType) { return true; }, "any dtype"},
      floating{[](ScalarType t) { return is_floating(t); }, "a floating-point dtype"},
      numbers{[](ScalarType t) { return t != kBool; }, "numbers (the sum of bool is \"or\")"};
  return r == ReduceOp::sum ? any : r == ReduceOp::average ? floating : numbers;
}

std::vector<ReduceOp> reductions_of(Op op) {
  std::vector<ReduceOp> out;
  for (int i = 0; i < kReductions; ++i)
    if (const auto r = static_cast<ReduceOp>(i); row(op).reductions & bit(r)) out.push_back(r);
  return out;
}

// Communication hooks (all_reduce_stages) are not an operation that a caller can name here.
Op listed(const std::string& operation) {
  const auto op = detail::op_named(operation);
  RAMET_CHECK(op && *op != Op::all_reduce_stages, "caps", "operation: got \"", operation,
              "\", expected \"all_reduce\", \"broadcast\", ...");
  return *op;
}

}  // namespace

std::string BackendCaps::why_not() const {
  if (!of_cards_) return "";
  return gpu::why_no_links ? gpu::why_no_links() : "the program was linked without GPUs";
}

bool BackendCaps::takes(DeviceType device) const { return device == kCUDA || !of_cards_; }

std::vector<std::string> BackendCaps::operations() const {
  std::vector<std::string> out;
  for (const Row& r : kRows)
    if (r.op != Op::all_reduce_stages && (r.over_cards || !of_cards_)) out.push_back(name_of(r.op));
  return out;
}

std::vector<ReduceOp> BackendCaps::reductions(const std::string& operation) const {
  const Op op = listed(operation);
  return row(op).over_cards || !of_cards_ ? reductions_of(op) : std::vector<ReduceOp>();
}

bool BackendCaps::supports(const std::string& operation, ScalarType dtype,
                           ReduceOp reduction) const {
  const Row& r = row(listed(operation));
  if (of_cards_ && !r.over_cards) return false;
  if (!r.reductions) return detail::has_tensors(r.op);
  return (r.reductions & bit(reduction)) && rule_of(reduction).takes(dtype);
}

bool BackendCaps::same_bits(ReduceOrder::Kind order) const {
  return !of_cards_ || order != ReduceOrder::Kind::kAny;
}

const BackendCaps& backend_caps(const std::string& backend) {
  for (const BackendCaps* caps : {&CapsTable::inproc, &CapsTable::gloo, &CapsTable::nccl})
    if (backend == caps->backend()) return *caps;
  fail("backend_caps", "backend: got \"", backend, "\", expected \"inproc\", \"gloo\" or \"nccl\"");
}

const BackendCaps& ProcessGroup::caps(DeviceType device) const {
  return backend_caps(backend(device));
}

namespace detail {

bool goes_over_cards(Op op) { return row(op).over_cards; }

void check_reduction(Op op, ReduceOp reduction, ScalarType dtype) {
  if (!(row(op).reductions & bit(reduction))) {
    std::string all;
    for (const ReduceOp r : reductions_of(op)) all += (all.empty() ? "" : ", ") + name_of(r);
    fail(name_of(op), "reduction: got ", name_of(reduction), ", expected one of ", all);
  }
  const Rule& rule = rule_of(reduction);
  RAMET_CHECK(rule.takes(dtype), name_of(op), name_of(reduction), ": got ", short_name_of(dtype),
              ", expected ", rule.expected);
}

}  // namespace detail

}  // namespace ramet::distributed
