// Post-local SGD: the step determines which ranks' gradients are averaged.
#include <numeric>

#include "parallel/distributed/stages/stages.h"

namespace ramet::distributed {
namespace {

class PostLocalSgd final : public RouteStage {
 public:
  PostLocalSgd(std::shared_ptr<ProcessGroup> subgroup, int64_t start)
      : subgroup_(std::move(subgroup)), start_(start) {
    constexpr const char* op = "post_local_sgd_stage";
    RAMET_CHECK(subgroup_, op,
                "subgroup: got none, expected the one that this rank is in (new_subgroups)");
    RAMET_CHECK(start >= 0, op, "start: got ", start, ", expected 0 or more steps");
  }
  // Subgroups may have different sizes, so the text does not include the size.
  std::string description() const override {
    return "post_local_sgd(start " + std::to_string(start_) + ")";
  }
  bool lossless() const override { return false; }
  bool exclusive() const override { return true; }
  void attach(const StageSetting& setting) override {
    RAMET_CHECK(subgroup_->size() <= setting.group.size(), "post_local_sgd_stage",
                "subgroup: got one of ", subgroup_->size(), " ranks, expected some of the group's ",
                setting.group.size());
  }
  std::shared_ptr<ProcessGroup> group(int64_t step) const override {
    return step < start_ ? nullptr : subgroup_;
  }

 private:
  const std::shared_ptr<ProcessGroup> subgroup_;
  const int64_t start_;
};

}  // namespace

std::shared_ptr<CommStage> post_local_sgd_stage(std::shared_ptr<ProcessGroup> subgroup,
                                                int64_t start) {
  return std::make_shared<PostLocalSgd>(std::move(subgroup), start);
}

std::shared_ptr<ProcessGroup> new_subgroups(ProcessGroup& group, int ranks_each) {
  RAMET_CHECK(ranks_each > 0 && group.size() % ranks_each == 0, "new_subgroups", "ranks_each: got ",
              ranks_each, ", expected a divisor of the ", group.size(), " ranks");
  std::shared_ptr<ProcessGroup> mine;
  for (int first = 0; first < group.size(); first += ranks_each) {
    std::vector<int> ranks(static_cast<size_t>(ranks_each));
    std::iota(ranks.begin(), ranks.end(), first);
    GroupOptions o;
    o.timeout = group.timeout();
    if (auto made = group.subgroup(ranks, o)) mine = std::move(made);
  }
  return mine;
}

}  // namespace ramet::distributed
