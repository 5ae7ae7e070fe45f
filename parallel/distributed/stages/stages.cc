#include "parallel/distributed/stages/stages.h"

#include <algorithm>
#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/serialize/archive.h"
#include "parallel/distributed/group/agree_internal.h"
#include "parallel/distributed/group/arguments_internal.h"
#include "parallel/distributed/group/collectives_internal.h"
#include "parallel/distributed/group/group_state_internal.h"
#include "parallel/distributed/stages/stage_reduction_internal.h"

namespace ramet::distributed {

using detail::Channel;
using detail::Operand;
using detail::over_memory;
using detail::Staging;

struct CommStages::Counts {
  std::mutex mutex;
  std::vector<StageBytes> bytes;  // [stage]
};

CommStages::CommStages(std::shared_ptr<ProcessGroup> group, std::string name, Average average,
                       ReduceOrder order, std::map<std::string, std::vector<int64_t>> parameters)
    : group_(std::move(group)),
      name_(std::move(name)),
      average_(average),
      order_(order),
      parameters_(std::move(parameters)),
      counts_(std::make_shared<Counts>()) {}

CommStages::~CommStages() {
  for (const auto& s : stages_) s->registered_ = false;
}

void CommStages::add(const std::shared_ptr<CommStage>& stage) {
  constexpr const char* op = "register_comm_stage";
  std::string what;
  const auto all = detail::agree(*group_, op, name_ + "/stages", {}, [&] {
    RAMET_CHECK(stage, op, "got no stage");
    what = stage->description();
    RAMET_CHECK(!stage->registered_, op, what,
                " has a place already, expected a stage of its own for each module");
    const auto same = std::ranges::find_if(stages_, [](const auto& s) { return s->exclusive(); });
    RAMET_CHECK(!stage->exclusive() || same == stages_.end(), op,
                "can only be called once with an exclusive stage: got ", what, " after ",
                (*same)->description());
    RAMET_CHECK(
        stage->lossless() || !order_.is_tree(), op, what, " with tree(", order_.leaves(),
        "), the same bits for every number of ranks, which a stage that rounds cannot give: "
        "expected the order fixed");
    if (const auto* format = dynamic_cast<const WireFormat*>(stage.get())) {
      const int64_t block = format->block();
      RAMET_CHECK(block > 0 && block <= 65536 && (block & (block - 1)) == 0, op, what,
                  ": block: got ", block, ", expected a power of two up to 65536");
    }
    return what;
  });
  for (size_t r = 1; r < all.size(); ++r)
    RAMET_CHECK(all[r] == all[0], op, "the ranks have different stages: rank 0 has ", all[0],
                ", rank ", r, " has ", all[r]);
  stage->attach({*group_, parameters_});
  stage->registered_ = true;
  stages_.push_back(stage);
  const std::lock_guard lock(counts_->mutex);
  counts_->bytes.push_back({what, 0, 0});
}

std::vector<std::string> CommStages::descriptions() const {
  std::vector<std::string> out;
  for (const auto& s : stages_) out.push_back(s->description());
  return out;
}
int64_t CommStages::step() const {
  const std::lock_guard lock(mutex_);
  return step_;
}
void CommStages::step_done(bool failed) {
  if (failed) {
    if (group_now() != group_) group_->abort("a reduction in a subgroup failed on this rank");
    return;
  }
  const std::lock_guard lock(mutex_);
  ++step_;
}
std::vector<StageBytes> CommStages::bytes() const {
  const std::lock_guard lock(counts_->mutex);
  return counts_->bytes;
}

bool CommStages::computes() const {
  return std::ranges::any_of(
      stages_, [](const auto& s) { return !dynamic_cast<const RouteStage*>(s.get()); });
}

bool CommStages::routes() const {
  return std::ranges::any_of(
      stages_, [](const auto& s) { return dynamic_cast<const RouteStage*>(s.get()) != nullptr; });
}

std::shared_ptr<ProcessGroup> CommStages::group_now() const {
  for (const auto& s : stages_)
    if (const auto* route = dynamic_cast<const RouteStage*>(s.get()))
      if (auto group = route->group(step())) return group;
  return group_;
}

void CommStages::abort(const std::string& reason) const {
  const auto now = group_now();
  if (now != group_) now->abort(reason);
  group_->abort(reason);
}

// ---- one bucket ---------------------------------------------------------------------------------

namespace {

// The values of members that some rank has, in separate memory. The members are written when all is
// complete.
class WorkingCopy {
 public:
  WorkingCopy(Channel& channel, const std::vector<Operand>& members,
              const std::vector<std::string>& names, const MemberReport& report)
      : members_(members), memory_(channel.staging(bytes(members))) {
    const std::vector<detail::Header>& headers = channel.headers();
    char* at = memory_.data();
    for (size_t i = 0; i < members.size(); ++i) {
      if (!report.present[i]) continue;
      const Operand& from = members[i];
      const Tensor place = over_memory(at, from.numel(), kFloat);
      StageValues v{names[i], place.view(from.tensor().sizes()), {}};
      for (const detail::Header& h : headers) v.present_on.push_back(h.has(i));
      if (v.present_on[static_cast<size_t>(channel.rank())])
        autograd::copy_values(place, over_memory(from.data(channel), from.numel(), from.dtype()));
      at += aligned(members[i].numel());
      list.push_back(std::move(v));
      index_.push_back(i);
    }
  }
  void write(Channel& channel) const {
    for (size_t k = 0; k < list.size(); ++k) {
      const Operand& to = members_[index_[k]];
      const Tensor result = list[k].values.to(to.dtype());
      to.write(channel, "all_reduce_stages", result.ptr());
    }
  }
  std::vector<StageValues> list;

 private:
  static size_t aligned(int64_t numel) {
    return (static_cast<size_t>(numel) * sizeof(float) + 63) / 64 * 64;
  }
  static size_t bytes(const std::vector<Operand>& members) {
    size_t sum = 0;
    for (const Operand& m : members) sum += aligned(m.numel());
    return sum;
  }
  const std::vector<Operand>& members_;
  const Staging memory_;
  std::vector<size_t> index_;
};

}  // namespace

Work CommStages::all_reduce(std::vector<Tensor> members, const std::vector<std::string>& names,
                            CollectiveOptions o, const std::vector<bool>& present, double rows,
                            const std::shared_ptr<MemberReport>& report) {
  const auto group = group_now();
  if (!computes()) {
    const ScopedValue<uint8_t> told(ramet::detail::tls.watching, 0);  // ddp/ reports the bucket to
                                                                      // observers
    return group->all_reduce_members(std::move(members), o, present, rows, report);
  }
  constexpr const char* op = "all_reduce_stages";
  RAMET_CHECK(!members.empty() && members.size() <= detail::kMaxMembers, op, "members: got ",
              members.size(), ", expected 1 to ", detail::kMaxMembers);

  const bool by_active = average_ == Average::mean && o.op == ReduceOp::sum;
  detail::StageRun run{stages_, step(), average_, order_, by_active, {}};
  o.name += ", step " + std::to_string(run.step);  // differs in a resumed run, for example
  detail::Task task;
  task.timeout = o.timeout.value_or(group->timeout());
  detail::Header& h = task.header;
  h.op = detail::Op::all_reduce_stages;
  h.reduce = o.op;
  h.order = static_cast<uint8_t>(order_.kind());
  h.leaves = static_cast<uint8_t>(order_.leaves());
  h.note = rows;
  h.set_members(o.name, members);
  std::vector<Operand> operands;
  for (size_t i = 0; i < members.size(); ++i) {
    operands.emplace_back(op, "member", members[i]);
    if (present[i]) h.set_present(i);
  }
  task.place.device = detail::CommonDevice(op).add(operands).device();
  task.run = [operands = std::move(operands), names, run, report,
              counts = counts_](Channel& channel) mutable {
    const NoGradGuard off;
    *report = detail::report_of(channel.headers(), names.size());
    run.rows = report->notes;
    WorkingCopy copy(channel, operands, names, *report);
    std::vector<StageBytes> bytes(run.stages.size());
    if (!copy.list.empty()) detail::StageChain(channel, run, bytes).reduce(copy.list);
    copy.write(channel);
    const std::lock_guard lock(counts->mutex);
    for (size_t i = 0; i < bytes.size(); ++i) {
      counts->bytes[i].before += bytes[i].before;
      counts->bytes[i].after += bytes[i].after;
    }
  };
  return group->state_->start(std::move(task));
}

// ---- checkpoints --------------------------------------------------------------------------------

namespace {
std::string lines(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& s : list) out += s + '\n';
  return out;
}
std::vector<std::string> of_lines(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    out.push_back(text.substr(at, end - at));
  return out;
}
}  // namespace

void CommStages::save(serialize::OutputArchive& archive) const {
  archive.write("stages", IValue(lines(descriptions())));
  archive.write("step", IValue(step()));
  archive.write("rank", IValue(group_->rank()));
  archive.write("ranks", IValue(group_->size()));
  for (size_t i = 0; i < stages_.size(); ++i) {
    serialize::OutputArchive nested;
    std::vector<std::string> keys;
    for (const auto& [key, value] : stages_[i]->state()) {
      nested.write(key, value);
      keys.push_back(key);
    }
    archive.write("keys" + std::to_string(i), IValue(lines(keys)));
    archive.write("state" + std::to_string(i), nested);
  }
}

void CommStages::load(serialize::InputArchive& archive) {
  constexpr const char* op = "load_stages";
  const auto value = [&](const std::string& key) {
    IValue v;
    archive.read(key, v);
    return v;
  };
  const std::string theirs = value("stages").toStringRef(), ours = lines(descriptions());
  const auto shown = [](std::string text) {
    std::ranges::replace(text, '\n', ';');
    return text.empty() ? "none" : text;
  };
  RAMET_CHECK(theirs == ours, op, "got the state of other stages: ", shown(theirs), " expected ",
              shown(ours));
  const int64_t step = value("step").toInt(), rank = value("rank").toInt(),
                ranks = value("ranks").toInt();
  std::vector<std::map<std::string, Tensor>> states(stages_.size());
  for (size_t i = 0; i < stages_.size(); ++i) {
    serialize::InputArchive nested;
    const auto keys = of_lines(value("keys" + std::to_string(i)).toStringRef());
    if (keys.empty()) continue;
    archive.read("state" + std::to_string(i), nested);
    for (const std::string& key : keys) nested.read(key, states[i][key]);
    RAMET_CHECK(rank == group_->rank() && ranks == group_->size(), op, stages_[i]->description(),
                ": got the state of rank ", rank, " of ", ranks, ", expected that of rank ",
                group_->rank(), " of ", group_->size());
  }
  std::vector<std::map<std::string, Tensor>> before;
  for (const auto& s : stages_) before.push_back(s->state());
  size_t loaded = 0;
  try {
    for (; loaded < stages_.size(); ++loaded) stages_[loaded]->load_state(states[loaded]);
  } catch (...) {
    while (loaded > 0) --loaded, stages_[loaded]->load_state(before[loaded]);
    throw;
  }
  const std::lock_guard lock(mutex_);
  step_ = step;
}

}  // namespace ramet::distributed
