#include "parallel/distributed/ddp/companion_internal.h"

#include <cstring>

#include "parallel/distributed/group/group_state_internal.h"
#include "parallel/distributed/meet/socket_internal.h"

namespace ramet::distributed::detail {
namespace {

constexpr uint64_t kHere = 1, kFinished = 2;

}  // namespace

Companion::Companion(const std::shared_ptr<ProcessGroup>& group, const std::string& name)
    : group_(group), beside_(twin_of(*group, name + "/beside of " + group->name())) {}

std::vector<std::string> Companion::round(const std::string& message) {
  CollectiveOptions o("beside");
  o.timeout = group_->timeout();
  return beside_->exchange(message, o);
}

std::vector<std::optional<std::string>> Companion::exchange(const std::string& what,
                                                            const std::string& mine) {
  const auto all = round(Packer().number(kHere).text(what).text(mine).bytes());
  std::vector<std::optional<std::string>> out(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    Unpacker u(all[r]);
    if (u.number() != kHere) continue;
    const std::string theirs = u.text();
    out[r] = u.text();
    RAMET_CHECK(u.good() && theirs == what, "ddp", "rank ", r, " is at '", theirs, "', and rank ",
                rank(), " at '", what, "': expected the same on all ranks");
  }
  return out;
}

void Companion::answer_until_all_are_here() {
  for (;;) {
    bool others = false;
    for (const std::string& theirs : round(Packer().number(kFinished).bytes())) {
      Unpacker u(theirs);
      others = others || u.number() != kFinished;
    }
    if (!others) return;
  }
}

std::vector<std::vector<double>> RankShards::gather(const std::string& what,
                                                    const std::vector<std::vector<double>>& mine) {
  Packer message;
  message.number(mine.size());
  for (const auto& row : mine)
    message.text(
        std::string(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(double)));
  std::vector<std::vector<double>> out;
  for (const auto& theirs : companion_->exchange(what, message.bytes())) {
    if (!theirs) continue;
    Unpacker u(*theirs);
    for (uint64_t left = u.number(); left > 0 && u.good(); --left) {
      const std::string bytes = u.text();
      auto& row = out.emplace_back(bytes.size() / sizeof(double));
      if (!row.empty()) std::memcpy(row.data(), bytes.data(), row.size() * sizeof(double));
    }
    RAMET_CHECK(u.good(), "ddp", what, ": another rank's part is incomplete");
  }
  return out;
}

}  // namespace ramet::distributed::detail
