#include "tools/training/processes.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/thread_pool.h"

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

std::unique_ptr<Replicas> Processes::replicate(const nn::Sequential& model,
                                               const std::vector<Device>& devices,
                                               const std::string& reduce) {
  return make_replicas(model, devices, reduce);
}

}  // namespace ramet::training
