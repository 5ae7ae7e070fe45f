#include "tools/training/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/atomic_file.h"

namespace ramet::training {

using Json = nlohmann::ordered_json;

namespace {

// JSON has no NaN: a loss that is none is written as null, which reads back as NaN.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }
double number_of(const Json& j) { return j.is_number() ? j.get<double>() : std::nan(""); }

Json to_json(const StepRecord& r) {
  return {{"step", r.step},         {"epoch", r.epoch},
          {"loss", number(r.loss)}, {"accuracy", number(r.accuracy)},
          {"lr", number(r.lr)},     {"seconds", number(r.seconds)}};
}
Json to_json(const EpochRecord& r) {
  return {{"epoch", r.epoch},
          {"step", r.step},
          {"test_loss", number(r.test_loss)},
          {"test_accuracy", number(r.test_accuracy)},
          {"seconds", number(r.seconds)}};
}

}  // namespace

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
        epochs_.push_back({epoch, step, at("test_loss"), at("test_accuracy"), at("seconds")});
      else steps_.push_back({step, epoch, at("loss"), at("accuracy"), at("lr"), at("seconds")});
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
