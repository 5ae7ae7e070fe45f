#include "parallel/distributed/checkpoint/checkpoint_plan_internal.h"

#include <algorithm>

namespace ramet::distributed::detail {
namespace {

constexpr const char* kOp = "DistributedCheckpoint.save";

// One part of a tensor, with the ranks that hold it.
struct Part {
  const HeldTensor* tensor;
  int64_t length;            // elements
  std::vector<int> holders;  // ranks
};

std::string text_of(const HeldTensor& t) {
  std::string text = std::string(short_name_of(t.dtype)) + "[";
  for (size_t i = 0; i < t.sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(t.sizes[i]);
  return text + "]";
}

void check_coverage(const std::string& name, const std::vector<Part>& parts) {
  const HeldTensor& t = *parts[0].tensor;
  std::vector<PartRun> missing = runs_of(name, t.sizes, {});
  for (const Part& p : parts) {
    if (p.tensor->cuts.empty()) return;
    missing = subtract(missing, runs_of(name, t.sizes, p.tensor->cuts));
  }
  RAMET_CHECK(missing.empty(), kOp, "\"", name, "\", ", text_of(t), ": no rank holds elements ",
              missing[0].whole, " to ", missing[0].whole + missing[0].length - 1);
}

// The different parts of each tensor.
std::map<std::string, std::vector<Part>> parts_of(const std::vector<CheckpointTable>& tables) {
  std::map<std::string, std::vector<Part>> all;
  for (size_t rank = 0; rank < tables.size(); ++rank) {
    for (const auto& [name, held] : tables[rank].tensors) {
      std::vector<Part>& parts = all[name];
      if (!parts.empty()) {
        const Part& first = parts[0];
        RAMET_CHECK(held.dtype == first.tensor->dtype && held.sizes == first.tensor->sizes, kOp,
                    "\"", name, "\": got ", text_of(held), " on rank ", rank, ", expected ",
                    text_of(*first.tensor), " as on rank ", first.holders[0]);
      }
      const auto same = std::find_if(parts.begin(), parts.end(), [&held = held](const Part& p) {
        return p.tensor->cuts == held.cuts;
      });
      if (same == parts.end()) {
        parts.push_back(
            {&held, elements_of(name, held.sizes, held.cuts), {static_cast<int>(rank)}});
        continue;
      }
      RAMET_CHECK(same->length == 0 || same->tensor->digest == held.digest, kOp, "\"", name, "\", ",
                  text_of(held), ": rank ", rank, " has other values than rank ", same->holders[0],
                  ", expected the same: both hold ", held.cuts.empty() ? "all" : "the same part",
                  " of it (add_own saves what each rank has for itself)");
      same->holders.push_back(static_cast<int>(rank));
    }
  }
  for (const auto& [name, parts] : all) check_coverage(name, parts);
  return all;
}

CheckpointValues merged(const std::vector<CheckpointTable>& tables) {
  CheckpointValues all;
  std::map<std::string, std::pair<size_t, const char*>> seen;  // the first rank that has the key,
                                                               // and its kind there
  for (size_t rank = 0; rank < tables.size(); ++rank) {
    const auto note = [&](const std::string& key, const char* kind) {
      const auto [at, fresh] = seen.try_emplace(key, rank, kind);
      RAMET_CHECK(fresh || std::string(at->second.second) == kind, kOp, "\"", key, "\": got ", kind,
                  " on rank ", rank, ", expected ", at->second.second, " as on rank ",
                  at->second.first);
    };
    for (const auto& entry : tables[rank].tensors) note(entry.first, "a tensor");
    tables[rank].other.each(note);
    for (const auto& [key, value] : tables[rank].other.values) {
      const Json& first = all.values.try_emplace(key, value).first->second;
      RAMET_CHECK(first == value, kOp, "value \"", key, "\": got ", dumped(value), " on rank ",
                  rank, ", expected ", dumped(first), " as on rank ", seen.at(key).first,
                  " (add_own saves what each rank has for itself)");
    }
    all.undefined.insert(tables[rank].other.undefined.begin(), tables[rank].other.undefined.end());
    all.archives.insert(tables[rank].other.archives.begin(), tables[rank].other.archives.end());
  }
  return all;
}

}  // namespace

std::string CheckpointTable::pack() const {
  Json list = Json::object();
  for (const auto& [name, t] : tensors)
    list[name] = {short_name_of(t.dtype), t.sizes, to_json(t.cuts), t.digest};
  return dumped(Json{{"tensors", list}, {"other", other.to_json()}});
}

CheckpointTable CheckpointTable::unpack(const std::string& text) {
  const Json json = json_of(text);
  CheckpointTable table;
  for (const auto& [name, t] : json.at("tensors").items())
    table.tensors[name] = {dtype_named(t[0].get<std::string>()), t[1].get<std::vector<int64_t>>(),
                           cuts_of(t[2]), t[3].get<std::string>()};
  table.other = CheckpointValues::of(json.at("other"));
  return table;
}

SavePlan plan_save(const std::vector<CheckpointTable>& tables) {
  SavePlan plan;
  plan.pieces.resize(tables.size());
  plan.other = merged(tables);
  const auto all = parts_of(tables);

  // One row of bytes for each set of holders; every holder writes the same share of it.
  std::map<std::vector<int>, std::vector<std::pair<const std::string*, const Part*>>> rows;
  for (const auto& [name, parts] : all)
    for (const Part& p : parts)
      if (p.length > 0 || elements_of(p.tensor->sizes) == 0)
        rows[p.holders].emplace_back(&name, &p);
  for (const auto& [holders, row] : rows) {
    const int64_t n = static_cast<int64_t>(holders.size());
    const auto bytes_of = [](const Part& p) {
      return p.length * static_cast<int64_t>(item_size(p.tensor->dtype));
    };
    int64_t total = 0, at = 0;
    for (const auto& [name, part] : row) total += bytes_of(*part);
    for (const auto& [name, part] : row) {
      const int64_t bytes = bytes_of(*part),
                    item = static_cast<int64_t>(item_size(part->tensor->dtype));
      const auto give = [&, name = name](int64_t holder, int64_t begin, int64_t end) {
        const int rank = holders[static_cast<size_t>(holder)];
        plan.pieces[static_cast<size_t>(rank)].push_back({*name, begin, end - begin});
      };
      if (bytes <= kWholeTensor) {
        give(total ? std::min(n - 1, at * n / total) : 0, 0, part->length);
      } else {
        // Holder i writes bytes [total * i / n, total * (i + 1) / n) of the row, rounded to whole
        // elements.
        const auto first = [&](int64_t holder) {
          return std::clamp<int64_t>((total * holder / n - at) / item, 0, part->length);
        };
        for (int64_t i = 0; i < n; ++i) {
          const int64_t end = i + 1 == n ? part->length : first(i + 1);
          if (first(i) < end) give(i, first(i), end);
        }
      }
      at += bytes;
    }
  }
  return plan;
}

}  // namespace ramet::distributed::detail
