#include "tools/training/recorded_step.h"

#include "tools/see/explore.h"
#include "tools/see/recording.h"
#include "tools/see/recording_file.h"

namespace ramet::training {
namespace {

class Recorded final : public RecordedStep {
 public:
  Recorded(nn::Module& model, const std::string& title)
      : recording_({.title = title, .statistics = true}) {
    recording_.watch(model);
  }
  std::string write(const std::string& path, bool page) override {
    const see::RecordingData data = recording_.data();
    see::write(data, path + ".ramet.gz");
    if (page) see::explore(data, path + ".html");
    return see::summary(data);
  }

 private:
  see::Recording recording_;
};

}  // namespace

std::unique_ptr<RecordedStep> record_step(nn::Module& model, const std::string& title) {
  return std::make_unique<Recorded>(model, title);
}

}  // namespace ramet::training
