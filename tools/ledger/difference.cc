#include "tools/ledger/difference.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "tools/ledger/hash.h"

namespace ramet {
namespace ledger {

namespace {

std::string differs(const std::string& what, uint64_t recorded, uint64_t here) {
  const auto text = [](uint64_t hash) { return hash == 0 ? std::string("none") : hex(hash); };
  return what + " differs: recorded " + text(recorded) + ", here " + text(here);
}

std::optional<std::string> first_of(const std::string& what, const std::vector<std::string>& names,
                                    const std::vector<uint64_t>& recorded,
                                    const std::vector<uint64_t>& here) {
  for (size_t i = 0; i < std::max(recorded.size(), here.size()); ++i) {
    const uint64_t a = i < recorded.size() ? recorded[i] : 0, b = i < here.size() ? here[i] : 0;
    if (a != b)
      return differs(what + " " + (i < names.size() ? names[i] : std::to_string(i)), a, b);
  }
  return std::nullopt;
}

// The first one in the order of the file that both steps have under one name and that differs.
std::string first_operation(const std::vector<Operation>& recorded,
                            const std::vector<Operation>& here) {
  if (recorded.empty() || here.empty()) return "";
  for (const Operation& a : recorded) {
    const auto b = std::find_if(here.begin(), here.end(), [&](const Operation& o) {
      return o.shard == a.shard && o.number == a.number && o.backward == a.backward &&
             o.name == a.name;
    });
    if (b == here.end() || b->hash == a.hash) continue;
    return "; the first operation that differs is number " + std::to_string(a.number) +
           (a.shard < 0 ? "" : " of shard " + std::to_string(a.shard)) + ", " + a.name +
           (a.backward ? " in the backward pass" : "");
  }
  return "; no operation that both have differs";
}

}  // namespace

std::optional<std::string> difference(const Header& names, const StepLine& recorded,
                                      const StepLine& here) {
  std::optional<std::string> found;
  const auto also = [&](std::optional<std::string> next) {
    if (!found) found = std::move(next);
  };
  if (recorded.batch != here.batch) also(differs("batch", recorded.batch, here.batch));
  if (recorded.random != here.random) also(differs("random state", recorded.random, here.random));
  for (size_t i = 0; i < std::max(recorded.gradients.size(), here.gradients.size()); ++i) {
    const std::vector<uint64_t> none;
    const std::string pass =
        recorded.gradients.size() > 1 ? " (backward pass " + std::to_string(i + 1) + ")" : "";
    also(first_of("gradient" + pass + " of", names.parameters,
                  i < recorded.gradients.size() ? recorded.gradients[i] : none,
                  i < here.gradients.size() ? here.gradients[i] : none));
  }
  also(first_of("parameter", names.parameters, recorded.parameters, here.parameters));
  also(first_of("buffer", names.buffers, recorded.buffers, here.buffers));
  if (found) *found += first_operation(recorded.operations, here.operations);
  return found;
}

std::optional<std::string> difference(const Header& names, const CheckpointLine& recorded,
                                      const CheckpointLine& here) {
  auto found = first_of("parameter", names.parameters, recorded.parameters, here.parameters);
  if (!found) found = first_of("buffer", names.buffers, recorded.buffers, here.buffers);
  if (!found) found = first_of("state of", names.states, recorded.states, here.states);
  return found;
}

void check_same_run(const Header& recorded, const Header& here) {
  RAMET_CHECK(recorded.order == here.order, "ledger", "order of sums: got ", here.order,
              ", expected ", recorded.order,
              ", as recorded; only under tree:V other numbers of devices have the same bits");
  RAMET_CHECK(recorded.device == here.device, "ledger", "devices: got ", here.device, ", expected ",
              recorded.device, ", as recorded: CPUs and GPUs round differently");
  RAMET_CHECK(recorded.kernels == here.kernels, "ledger", "kernels: got ", here.kernels,
              ", expected ", recorded.kernels, ", as recorded (RAMET_ISA chooses them)");
  RAMET_CHECK(recorded.settings == here.settings, "ledger", "settings: got ", here.settings,
              ", expected ", recorded.settings, ", as recorded");
  const auto same_names = [](const char* what, const std::vector<std::string>& a,
                             const std::vector<std::string>& b) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
      RAMET_CHECK(i < a.size() && i < b.size() && a[i] == b[i], "ledger", what, " number ", i,
                  ": got ", i < b.size() ? b[i] : "none", ", expected ",
                  i < a.size() ? a[i] : "none", ", as recorded");
  };
  same_names("parameter", recorded.parameters, here.parameters);
  same_names("buffer", recorded.buffers, here.buffers);
  same_names("state", recorded.states, here.states);
}

}  // namespace ledger
}  // namespace ramet
