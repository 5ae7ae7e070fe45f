#include "tools/see/explorer/compare.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <tuple>

namespace ramet {
namespace see {

namespace {

// The joint statistics of several tensors that are pieces of one.
struct Together {
  int pieces = 0;
  bool known = true;
  Statistics all;

  void add(const RecordingData& data, Id tensor) {
    const Id s = tensor < 0 ? -1 : data.tensors[tensor].statistics;
    known = known && s >= 0;
    if (s < 0) return;
    const Statistics& more = data.statistics[s];
    if (pieces++ == 0) {
      all = more;
      return;
    }
    all.count += more.count;
    all.zeros += more.zeros;
    all.nans += more.nans;
    all.infinities += more.infinities;
    all.min = std::min(all.min, more.min);
    all.max = std::max(all.max, more.max);
  }
};

void say(std::ostringstream& out, const char* what, double a, double b) {
  if (a == b || (a != a && b != b)) return;
  if (out.tellp() > 0) out << ", ";
  out << what << " " << a << " and " << b;
}

void judge(ComparedRow& row, const Together& a, const Together& b) {
  if (!a.known || !b.known || !a.pieces || !b.pieces) {
    row.same = "unknown";
    row.text = "no statistics were taken";
    return;
  }
  const Statistics &x = a.all, &y = b.all;
  const bool single = a.pieces == 1 && b.pieces == 1;
  auto out = ramet::detail::classic<std::ostringstream>();
  out.precision(9);
  say(out, "elements", static_cast<double>(x.count), static_cast<double>(y.count));
  say(out, "zeros", static_cast<double>(x.zeros), static_cast<double>(y.zeros));
  say(out, "NaNs", static_cast<double>(x.nans), static_cast<double>(y.nans));
  say(out, "infinities", static_cast<double>(x.infinities), static_cast<double>(y.infinities));
  say(out, "minimum", x.min, y.min);
  say(out, "maximum", x.max, y.max);
  if (single) {
    say(out, "mean", x.mean, y.mean);
    say(out, "deviation", x.deviation, y.deviation);
  }
  row.text = out.str();
  row.same = row.text.empty() ? "statistics" : "differs";
  if (!single || x.digest == 0 || y.digest == 0) return;
  row.same = x.digest == y.digest ? "bits" : "differs";
  if (row.same == "bits") row.text.clear();
  if (row.same == "differs" && row.text.empty())
    row.text = "other bits, with the same statistics to all digits";
}

// Of one recording: calls by (module, name, how many before in this replica), and by replica.
using Key = std::tuple<std::string, std::string, int>;
struct Calls {
  std::map<Key, std::map<int, Id>> by_key;
  std::vector<Key> order;
  std::set<int> replicas;
};

Calls calls_of(const RecordingData& data) {
  Calls out;
  std::vector<Id> by_time(data.operations.size());
  std::iota(by_time.begin(), by_time.end(), 0);
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](Id a, Id b) { return data.operations[a].start < data.operations[b].start; });
  std::map<std::tuple<std::string, std::string, int>, int> seen;
  for (const Id i : by_time) {
    const OperationRow& op = data.operations[i];
    if (op.node >= 0 && data.nodes[op.node].in_backward) continue;
    const int rank = op.device < 0 ? 0 : data.devices[op.device].rank;
    const int replica = std::max(op.replica, 0) + 1000 * rank;
    out.replicas.insert(replica);
    const std::string path = op.module < 0 ? "" : data.modules[op.module].path;
    const Key key{path, op.name, seen[{path, op.name, replica}]++};
    auto& here = out.by_key[key];
    if (here.empty()) out.order.push_back(key);
    here.emplace(replica, i);
  }
  return out;
}

std::string name_of(const Key& key) {
  const auto& [path, name, number] = key;
  return (path.empty() ? "" : path + ": ") + name +
         (number ? " (" + std::to_string(number + 1) + ")" : "");
}

class Comparer {
 public:
  Comparer(const RecordingData& a, const RecordingData& b) : a_(a), b_(b) {}

  Comparison make() {
    parameters();
    operations();
    gradients();
    conclude();
    return std::move(out_);
  }

 private:
  void operations() {
    const Calls a = calls_of(a_), b = calls_of(b_);
    const bool alike = a.replicas == b.replicas;
    for (const Key& key : a.order) {
      const auto other = b.by_key.find(key);
      const auto& mine = a.by_key.at(key);
      if (other == b.by_key.end()) {
        missing("operation", name_of(key), mine.begin()->second, -1);
        continue;
      }
      if (!alike) {
        ComparedRow row{
            "operation", name_of(key), mine.begin()->second, other->second.begin()->second, "", ""};
        outputs(row, mine, other->second);
        continue;
      }
      for (const auto& [replica, i] : mine) {
        const auto twin = other->second.find(replica);
        const std::string name =
            name_of(key) +
            (mine.size() > 1 ? ", replica " + std::to_string(replica % 1000) : std::string());
        if (twin == other->second.end()) {
          missing("operation", name, i, -1);
        } else {
          ComparedRow row{"operation", name, i, twin->second, "", ""};
          outputs(row, {{0, i}}, {{0, twin->second}});
        }
      }
    }
    for (const Key& key : b.order)
      if (!a.by_key.count(key))
        missing("operation", name_of(key), -1, b.by_key.at(key).begin()->second);
  }

  void outputs(ComparedRow& row, const std::map<int, Id>& a, const std::map<int, Id>& b) {
    Together x, y;
    for (const auto& [replica, i] : a)
      if (!a_.operations[i].outputs.empty()) x.add(a_, a_.operations[i].outputs[0]);
    for (const auto& [replica, i] : b)
      if (!b_.operations[i].outputs.empty()) y.add(b_, b_.operations[i].outputs[0]);
    judge(row, x, y);
    out_.rows.push_back(std::move(row));
  }

  void missing(const char* kind, const std::string& name, Id first, Id second) {
    out_.rows.push_back({kind, name, first, second, "missing",
                         first < 0 ? "only in the second" : "only in the first"});
  }

  // By name; gradients in the order in which they were complete.
  void by_name(const char* kind, Id ParameterRow::*tensor, const std::vector<Id>& order) {
    std::map<std::string, Id> others;
    for (size_t i = 0; i < b_.parameters.size(); ++i)
      others.emplace(b_.parameters[i].name, static_cast<Id>(i));
    for (const Id i : order) {
      const ParameterRow& mine = a_.parameters[i];
      const auto found = others.find(mine.name);
      const Id other = found == others.end() ? -1 : found->second;
      const Id x = mine.*tensor, y = other < 0 ? -1 : b_.parameters[other].*tensor;
      if (x < 0 && y < 0) continue;
      if (x < 0 || y < 0) {
        missing(kind, mine.name, x < 0 ? -1 : i, y < 0 ? -1 : other);
        continue;
      }
      ComparedRow row{kind, mine.name, i, other, "", ""};
      Together one, two;
      one.add(a_, x);
      two.add(b_, y);
      judge(row, one, two);
      out_.rows.push_back(std::move(row));
    }
  }

  void parameters() {
    std::vector<Id> order(a_.parameters.size());
    std::iota(order.begin(), order.end(), 0);
    by_name("parameter", &ParameterRow::tensor, order);
  }

  void gradients() {
    std::vector<Id> order;
    std::set<Id> seen;
    for (const EventRow& e : a_.events) {
      if (e.kind != "accumulated" || e.node < 0) continue;
      const Id p = a_.nodes[e.node].parameter;
      if (p >= 0 && seen.insert(p).second) order.push_back(p);
    }
    for (size_t i = 0; i < a_.parameters.size(); ++i)
      if (!seen.count(static_cast<Id>(i))) order.push_back(static_cast<Id>(i));
    by_name("gradient", &ParameterRow::gradient, order);
  }

  void conclude() {
    size_t bits = 0, statistics = 0, unknown = 0;
    for (size_t i = 0; i < out_.rows.size(); ++i) {
      const ComparedRow& row = out_.rows[i];
      bits += row.same == "bits";
      statistics += row.same == "statistics";
      unknown += row.same == "unknown";
      const bool differs = row.same == "differs" || row.same == "missing";
      if (differs && out_.first_difference < 0) out_.first_difference = static_cast<int>(i);
    }
    if (out_.first_difference >= 0) {
      const ComparedRow& row = out_.rows[out_.first_difference];
      out_.text = "The first " + row.kind + " that differs is " + row.name + ": " + row.text + ".";
    } else if (bits + statistics == 0) {
      out_.text = "Nothing can be compared: no statistics were taken.";
    } else if (statistics == 0) {
      out_.text = "The same bits, in all " + std::to_string(bits) + " values that both have.";
    } else {
      out_.text = "Nothing differs: " + std::to_string(bits) + " values have the same bits, " +
                  std::to_string(statistics) + " the same statistics.";
    }
    if (unknown && bits + statistics > 0)
      out_.text += " Of " + std::to_string(unknown) + " there are no statistics.";
  }

  const RecordingData &a_, &b_;
  Comparison out_;
};

}  // namespace

Comparison compare(const RecordingData& first, const RecordingData& second) {
  return Comparer(first, second).make();
}

}  // namespace see
}  // namespace ramet
