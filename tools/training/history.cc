#include "tools/training/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/base/atomic_file.h"

namespace ramet::training {

using Json = nlohmann::ordered_json;

namespace {

// JSON has no NaN: a loss that is none is written as null, which reads back as NaN.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }
double number_of(const Json& j) { return j.is_number() ? j.get<double>() : std::nan(""); }

constexpr const char *kOfSteps[] = {"step", "epoch", "loss", "accuracy", "lr", "seconds"},
                     *kOfEpochs[] = {"epoch", "step", "test_loss", "test_accuracy", "seconds"};

Json to_json(const StepRecord& r) {
  Json j = {{"step", r.step},         {"epoch", r.epoch},
            {"loss", number(r.loss)}, {"accuracy", number(r.accuracy)},
            {"lr", number(r.lr)},     {"seconds", number(r.seconds)}};
  for (const Measure& m : r.more) j[m.name] = number(m.value);
  return j;
}
Json to_json(const EpochRecord& r) {
  Json j = {{"epoch", r.epoch},
            {"step", r.step},
            {"test_loss", number(r.test_loss)},
            {"test_accuracy", number(r.test_accuracy)},
            {"seconds", number(r.seconds)}};
  for (const Measure& m : r.more) j["test_" + m.name] = number(m.value);
  return j;
}
// What a line holds beyond the numbers that every line of its kind has.
template <class Names>
std::vector<Measure> others(const Json& j, const Names& known, const std::string& prefix) {
  std::vector<Measure> more;
  for (const auto& [key, value] : j.items()) {
    if (std::find(std::begin(known), std::end(known), key) == std::end(known) &&
        key.compare(0, prefix.size(), prefix) == 0)
      more.push_back({key.substr(prefix.size()), number_of(value)});
  }
  return more;
}

}  // namespace

std::string readable(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

double EpochRecord::test(const std::string& name) const {
  if (name == "accuracy") return test_accuracy;
  for (const Measure& m : more)
    if (m.name == name) return m.value;
  return std::nan("");
}

void History::open(const std::string& path, int64_t resume_step) {
  std::string kept;
  if (resume_step > 0) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      const Json j = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!j.is_object() || !j.contains("step") || !j["step"].is_number_integer() ||
          j["step"].get<int64_t>() > resume_step)
        continue;
      const auto at = [&](const char* key) {
        return j.contains(key) ? number_of(j[key]) : std::nan("");
      };
      const auto epoch = static_cast<int64_t>(at("epoch")), step = j["step"].get<int64_t>();
      if (j.contains("test_accuracy"))
        epochs_.push_back({epoch, step, at("test_loss"), at("test_accuracy"), at("seconds"),
                           others(j, kOfEpochs, "test_")});
      else
        steps_.push_back({step, epoch, at("loss"), at("accuracy"), at("lr"), at("seconds"),
                          others(j, kOfSteps, "")});
      kept += line + "\n";
    }
  }
  write_file_atomically(path, kept);
  fd_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  RAMET_CHECK(fd_ >= 0, "metrics", "cannot write \"", path, "\" (", std::strerror(errno), ")");
}

History::~History() {
  if (fd_ >= 0) ::close(fd_);
}

void History::write_line(const std::string& line) {
  if (fd_ < 0) return;
  const ssize_t done = ::write(fd_, line.data(), line.size());
  RAMET_CHECK(done == static_cast<ssize_t>(line.size()), "metrics", "cannot write a line (",
              std::strerror(errno), ")");
}

void History::add(const StepRecord& r) {
  steps_.push_back(r);
  write_line(to_json(r).dump() + "\n");
}
void History::add(const EpochRecord& r) {
  epochs_.push_back(r);
  write_line(to_json(r).dump() + "\n");
}

}  // namespace ramet::training
