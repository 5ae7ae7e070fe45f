// --ddp: a separate library, since it brings process groups with it.
#include <algorithm>

#include "autograd/ops.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "tools/training/processes.h"

namespace ramet::training {

namespace {

class Joined : public Processes {
 public:
  explicit Joined(std::shared_ptr<distributed::ProcessGroup> group) : group_(std::move(group)) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }

  std::unique_ptr<Replicas> replicate(const nn::Sequential& model,
                                      const std::vector<Device>& devices,
                                      const std::string& reduce) override {
    distributed::DdpOptions options;
    options.devices = devices;
    options.order = parse_order(reduce);
    options.average = distributed::Average::sum;
    options.batch = distributed::Batch::whole;
    auto made = std::make_unique<distributed::DistributedDataParallel<nn::Sequential>>(
        model, group_, options);
    model_ = made.get();
    return made;
  }

  Tensor own_rows(const Tensor& targets) const override {
    const auto [first, count] = model_->rows();
    return targets.slice(0, first, first + count);
  }

  void sum(std::vector<double>& values) const override {
    Tensor t = tensor(values, TensorOptions(kDouble));
    group_->all_reduce(t, "sums of a step").wait();
    std::copy_n(t.data_ptr<double>(), values.size(), values.begin());
  }

  std::vector<int64_t> of_rank_0(std::vector<int64_t> numbers) const override {
    Tensor t = tensor(numbers);
    group_->broadcast(t, 0, "random numbers").wait();
    std::copy_n(t.data_ptr<int64_t>(), numbers.size(), numbers.begin());
    return numbers;
  }

  std::vector<std::string> of_all_ranks(const std::string& mine) const override {
    return group_->exchange(mine, "recordings");
  }

  void finish(const std::string& digest) const override {
    const std::vector<std::string> all = group_->exchange(digest, "digests");
    for (size_t r = 0; r < all.size(); ++r)
      RAMET_CHECK(all[r] == all[0], "train", "rank ", r, " ended with the digest ", all[r],
                  ", expected ", all[0], " as rank 0");
  }

 private:
  std::shared_ptr<distributed::ProcessGroup> group_;
  const distributed::DistributedDataParallel<nn::Sequential>* model_ = nullptr;
};

}  // namespace

std::unique_ptr<Processes> join_processes(std::chrono::milliseconds timeout) {
  distributed::GroupOptions options;
  options.name = "train";
  auto group = distributed::init_process_group("env://", options);  // hosts may start much later
  group->set_timeout(timeout);
  return std::make_unique<Joined>(std::move(group));
}

}  // namespace ramet::training
