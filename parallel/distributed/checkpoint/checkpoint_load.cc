#include <algorithm>

#include "parallel/distributed/checkpoint/checkpoint.h"
#include "parallel/distributed/checkpoint/checkpoint_read_internal.h"
#include "runtime/base/logging.h"

namespace ramet::distributed {

using detail::agree;
using detail::CheckpointContent;
using detail::CheckpointName;
using detail::dumped;
using detail::Json;
using detail::json_of;
using detail::state_key;

namespace {

constexpr const char* kLoad = "DistributedCheckpoint.load";

// "a, b, c and 4 more"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 10; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > 10 ? text + " and " + std::to_string(names.size() - 10) + " more" : text;
}

}  // namespace

CheckpointContent DistributedCheckpoint::read(const detail::StoredStep& step, bool strict,
                                              LoadReport& report) const {
  const CheckpointContent now = collect();
  CheckpointContent found{{}, step.manifest().other};
  // Keys first, without values: they are renamed before the values are read.
  for (const auto& entry : step.tensors()) found.tensors[entry.first];
  report.world_size = step.manifest().world_size;
  const std::map<std::string, std::string> stored_as = find_own_parts(now, found, report);
  // Removes parts that were not added here, and other ranks' own parts.
  found.rename([&](const std::string& key) -> std::optional<std::string> {
    return names_.count(detail::part_of(key)) ? std::optional(key) : std::nullopt;
  });
  compare_keys(now, found, report);
  RAMET_CHECK(!strict || (report.missing.empty() && report.surplus.empty()), kLoad, "step ",
              step.manifest().step, " is of other parts",
              report.missing.empty() ? "" : ": it lacks " + listed(report.missing),
              report.surplus.empty() ? "" : "; it has besides " + listed(report.surplus));
  for (const std::string& key : report.missing) found.take(key, now);
  for (const std::string& key : report.surplus) found.tensors.erase(key);

  for (auto& [key, tensor] : found.tensors) {
    if (tensor.defined()) continue;
    const auto renamed = stored_as.find(key);
    tensor = read_tensor(step, renamed == stored_as.end() ? key : renamed->second, key, now);
  }
  return found;
}

// Gives this rank's own parts their keys. A part that the checkpoint has of each rank, but of
// another number of ranks, stays as it is now. Returns the keys that differ in the files.
std::map<std::string, std::string> DistributedCheckpoint::find_own_parts(
    const CheckpointContent& now, CheckpointContent& found, LoadReport& report) const {
  std::map<std::string, std::string> stored_as;
  for (const std::string& part : own_) {
    const std::string mine = detail::of_rank(part, group_->rank());
    bool shared = false, several = false;
    const auto note = [&](const std::string& key) {
      shared = shared || detail::inside(key, part);
      several = several || key.compare(0, part.size() + 1, part + "@") == 0;
    };
    for (const auto& entry : found.tensors) note(entry.first);
    found.other.each([&](const std::string& key, const char*) { note(key); });
    if (shared) continue;
    if (several && report.world_size == group_->size()) {
      for (const auto& entry : found.tensors)
        if (detail::inside(entry.first, mine))
          stored_as[part + entry.first.substr(mine.size())] = entry.first;
      found.rename_part(mine, part);
      continue;
    }
    report.not_restored.push_back(part);
    for (const auto& entry : now.tensors)
      if (detail::inside(entry.first, part)) found.take(entry.first, now);
    now.other.each([&](const std::string& key, const char*) {
      if (detail::inside(key, part)) found.take(key, now);
    });
  }
  return stored_as;
}

// Compares what modules and lists of tensors have with what the checkpoint has for them.
void DistributedCheckpoint::compare_keys(const CheckpointContent& now,
                                         const CheckpointContent& found, LoadReport& report) const {
  for (const auto& entry : now.tensors)
    if (fixed(entry.first) && !found.tensors.count(entry.first))
      report.missing.push_back(entry.first);
  for (const auto& entry : found.tensors) {
    const std::string& key = entry.first;
    bool surplus = fixed(key) && !now.tensors.count(key);
    for (const States& s : optimizers_)
      surplus = surplus || (detail::inside(key, s.name + ".state") && !state_of(key));
    if (surplus) report.surplus.push_back(key);
  }
}

// Reads this rank's part of a tensor. `name`: its key in the files.
Tensor DistributedCheckpoint::read_tensor(const detail::StoredStep& step, const std::string& name,
                                          const std::string& key,
                                          const CheckpointContent& now) const {
  const detail::StoredStep::Stored& stored = step.tensors().at(name);
  if (fixed(key)) {
    const Tensor& mine = now.tensors.at(key);
    const TensorPart wanted = described(key, mine);
    RAMET_CHECK(wanted.sizes == stored.sizes && mine.scalar_type() == stored.dtype, kLoad, "\"",
                key, "\": got ", short_name_of(stored.dtype), IntArrayRef(stored.sizes),
                " in step ", step.manifest().step, ", expected ", short_name_of(mine.scalar_type()),
                IntArrayRef(wanted.sizes));
    return step.read(name, wanted.cuts, mine.sizes().vec());
  }
  const TensorPart* parameter = state_of(key);
  if (parameter && parameter->sizes == stored.sizes)
    return step.read(name, parameter->cuts, parameter->local.sizes().vec());
  return step.read(name, {}, stored.sizes);
}

void DistributedCheckpoint::restore(CheckpointContent content) {
  for (const States& s : optimizers_) {
    const std::vector<std::string> names = s.names();
    std::map<std::string, size_t> number;
    for (size_t i = 0; i < names.size(); ++i) number[names[i]] = i;
    content.rename([&](const std::string& key) -> std::optional<std::string> {
      if (!detail::inside(key, s.name + ".state")) return key;
      const TensorPart* p = state_of(key);
      const auto found = p ? number.find(p->name) : number.end();
      if (found == number.end()) return std::nullopt;  // a parameter that it does not have
      return state_key(s.name, found->second) + key.substr(state_key(s.name, p->name).size());
    });
  }
  serialize::InputArchive archive = content.to_archive();
  parts_.load(archive);
}

std::optional<LoadReport> DistributedCheckpoint::try_load(const std::string& folder,
                                                          const LoadOptions& o) {
  const auto listed = agree(*group_, kLoad, "steps", o.timeout, [&] {
    Json names = Json::array();
    if (group_->rank() == 0)
      for (const detail::CheckpointFile& f : detail::list_checkpoints(folder))
        if (f.is_manifest()) names.push_back({f.name.number, f.name.step});
    return dumped(Json{o.step ? Json(*o.step) : Json(), o.strict, names});
  });
  const Json first = json_of(listed[0]);
  for (size_t r = 0; r < listed.size(); ++r) {
    const Json other = json_of(listed[r]);
    RAMET_CHECK(other[0] == first[0] && other[1] == first[1], kLoad, "options: got step ",
                dumped(other[0]), ", strict ", dumped(other[1]), " on rank ", r, ", expected step ",
                dumped(first[0]), ", strict ", dumped(first[1]), " as on rank 0");
  }
  if (first[2].empty()) return std::nullopt;

  std::vector<std::string> passed_over;
  for (size_t i = first[2].size(); i-- > 0;) {
    const CheckpointName name{first[2][i][0].get<int64_t>(), first[2][i][1].get<int64_t>()};
    if (o.step && name.step != *o.step) continue;
    LoadReport report;
    CheckpointContent content;
    const auto verdicts = agree(*group_, kLoad, "data", o.timeout, [&]() -> std::string {
      try {
        const detail::StoredStep step(folder, name);
        content = read(step, o.strict, report);
        return {};
      } catch (const detail::Damaged& e) { return e.what(); }
    });
    const auto bad = std::find_if(verdicts.begin(), verdicts.end(),
                                  [](const std::string& v) { return !v.empty(); });
    if (bad != verdicts.end()) {
      passed_over.push_back("step " + std::to_string(name.step) + ": " + *bad);
      if (group_->rank() == 0) RAMET_WARN("[", kLoad, "] passed over ", passed_over.back());
      continue;
    }
    agree(*group_, kLoad, "parts", o.timeout, [&]() -> std::string {
      restore(std::move(content));
      return {};
    });
    for (const auto& set : last_) set();
    report.step = name.step;
    report.passed_over = std::move(passed_over);
    return report;
  }
  std::string text;
  for (const std::string& why : passed_over) text += "; " + why;
  fail(kLoad, "got no whole checkpoint ",
       o.step ? "of step " + std::to_string(*o.step) + " " : std::string(), "in ", folder,
       ", expected one", text);
}

LoadReport DistributedCheckpoint::load(const std::string& folder, const LoadOptions& o) {
  std::optional<LoadReport> report = try_load(folder, o);
  RAMET_CHECK(report, kLoad, "got no checkpoint in ", folder, ", expected one");
  return std::move(*report);
}

}  // namespace ramet::distributed
