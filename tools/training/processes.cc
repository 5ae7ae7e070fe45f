#include "tools/training/processes.h"

#include <algorithm>
#include <cstdlib>

#include "autograd/ops.h"
#include "runtime/thread_pool.h"

namespace ramet::training {

namespace {

// Of the first variable that is set.
int number(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (const char* text = std::getenv(name); text && *text) return std::max(0, std::atoi(text));
  return otherwise;
}

}  // namespace

int threads_beside_others() {
  const int beside = number({"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, 1);
  return std::max(1, get_num_threads() / std::max(1, beside));
}

int number_on_host() {
  return number({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}, 0);
}

bool started_again() { return number({"RAMET_RESTARTS"}, 0) > 0; }
std::string launch_id() {
  const char* text = std::getenv("RAMET_LAUNCH_ID");
  return text ? text : "";
}

Processes Processes::join(distributed::Milliseconds timeout) {
  Processes p;
  distributed::GroupOptions options;
  options.name = "train";
  p.group_ = distributed::init_process_group("env://", options);  // hosts may start much later
  p.group_->set_timeout(timeout);
  return p;
}

std::unique_ptr<Replicas> Processes::replicate(const nn::Sequential& model,
                                               const std::vector<Device>& devices,
                                               const std::string& reduce) {
  if (!group_) return make_replicas(model, devices, reduce);
  distributed::DdpOptions options;
  options.devices = devices;
  options.order = parse_order(reduce);
  options.average = distributed::Average::sum;
  options.batch = distributed::Batch::whole;
  auto made = std::make_unique<distributed::DistributedDataParallel<nn::Sequential>>(model, group_,
                                                                                     options);
  model_ = made.get();
  return made;
}

std::pair<int64_t, int64_t> Processes::rows() const { return model_->rows(); }

void Processes::sum(std::vector<double>& values) const {
  if (!group_) return;
  Tensor t = tensor(values, TensorOptions(kDouble));
  group_->all_reduce(t, "sums of a step").wait();
  std::copy_n(t.data_ptr<double>(), values.size(), values.begin());
}

std::vector<int64_t> Processes::of_rank_0(std::vector<int64_t> numbers) const {
  if (!group_) return numbers;
  Tensor t = tensor(numbers);
  group_->broadcast(t, 0, "random numbers").wait();
  std::copy_n(t.data_ptr<int64_t>(), numbers.size(), numbers.begin());
  return numbers;
}

void Processes::finish(const std::string& digest) const {
  if (!group_) return;
  const std::vector<std::string> all = group_->exchange(digest, "digests");
  for (size_t r = 0; r < all.size(); ++r)
    RAMET_CHECK(all[r] == all[0], "train", "rank ", r, " ended with the digest ", all[r],
                ", expected ", all[0], " as rank 0");
}

}  // namespace ramet::training
