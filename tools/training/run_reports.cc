// What a run prints after an epoch, and the files that it writes next to the model.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/atomic_file.h"
#include "runtime/base/thread_pool.h"
#include "tools/training/curve.h"
#include "tools/training/progress.h"
#include "tools/training/run_state.h"

namespace ramet::training {

std::string text_of(const std::vector<Measure>& more, const std::string& prefix) {
  std::string text;
  for (const Measure& m : more) text += prefix + readable(m.name) + " " + fixed(m.value, 4);
  return text;
}

void Run::report_epoch(const EpochRecord& r) const {
  double loss = 0, accuracy = 0;
  std::vector<Measure> more;
  int64_t n = 0;
  for (const StepRecord& s : history_.steps()) {
    if (s.epoch != r.epoch) continue;
    loss += s.loss, accuracy += s.accuracy, ++n;
    more.resize(s.more.size());
    for (size_t i = 0; i < more.size(); ++i)
      more[i] = {s.more[i].name, more[i].value + s.more[i].value};
  }
  const auto steps = static_cast<double>(std::max<int64_t>(1, n));
  for (Measure& m : more) m.value /= steps;
  std::printf(
      "epoch %d/%d  loss %s%s%s  test loss %s  test accuracy %.2f%%%s  %s of "
      "training\n",
      static_cast<int>(r.epoch), static_cast<int>(options_.epochs), fixed(loss / steps, 4).c_str(),
      accuracy_text(accuracy / steps, 2).c_str(), text_of(more, "  ").c_str(),
      fixed(r.test_loss, 4).c_str(), 100 * r.test_accuracy, text_of(r.more, "  test ").c_str(),
      clock_text(seconds_).c_str());
  std::fflush(stdout);
}

void Run::write_curve() const {
  char text[200];
  std::snprintf(text, sizeof(text), "%s, batch %d, AdamW %g with a cosine, %s parameters",
                options_.devices.c_str(), static_cast<int>(options_.batch), options_.lr,
                grouped(parameters_).c_str());
  std::string subtitle = text;
  if (!history_.epochs().empty()) {
    const EpochRecord& r = history_.epochs().back();
    std::snprintf(text, sizeof(text), ": %s%% after %d epoch%s, %.1f s of training",
                  fixed(100 * r.test(job_->score()), 2).c_str(), static_cast<int>(r.epoch),
                  r.epoch == 1 ? "" : "s", r.seconds);
    subtitle += text;
  }
  write_file_atomically(file("curve.png"), draw_curve(history_, steps_per_epoch_,
                                                      options_.model + " on " + job_->data().name,
                                                      subtitle, job_->score()));
}

void Run::write_summary(const EpochRecord& last, const std::string& digest) const {
  nlohmann::ordered_json j;
  const auto number = [](double v) {
    return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json(nullptr);
  };
  j["test_accuracy"] = last.test_accuracy;
  j["test_loss"] = number(last.test_loss);
  for (const Measure& m : last.more) j["test_" + m.name] = number(m.value);
  j["seconds"] = seconds_;
  j["images_per_second"] = seconds_ > 0 ? static_cast<double>(images_) / seconds_ : 0.0;
  j["devices"] = nlohmann::ordered_json::array();
  for (Device d : devices_) j["devices"].push_back(d.str() == "cpu" ? "cpu:0" : d.str());
  j["digest"] = digest;
  j["data"] = options_.data;
  j["model"] = options_.model;
  if (options_.model == "gpt2") {
    j["size"] = options_.size;
    j["length"] = options_.length;
    j["weights"] = options_.weights;
  }
  j["parameters"] = parameters_;
  j["epochs"] = options_.epochs;
  j["steps"] = step_;
  j["batch"] = options_.batch;
  j["lr"] = options_.lr;
  j["dropout"] = options_.dropout;
  j["limit"] = options_.limit;
  j["seed"] = options_.seed;
  j["reduce"] = options_.reduce;
  j["autocast"] = options_.autocast;
  j["threads"] = get_num_threads();
  j["processes"] = processes_->size();
  write_file_atomically(file("summary.json"), j.dump(2) + "\n");
}

}  // namespace ramet::training
