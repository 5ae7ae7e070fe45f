// --explore: a separate library, since it brings recordings and the explorer's page with it.
#include "tools/see/explore.h"
#include "tools/see/recording.h"
#include "tools/see/recording_file.h"
#include "tools/training/explore.h"

namespace ramet::training {

namespace {

class Recorded : public StepRecording {
 public:
  Recorded(const nn::Sequential& model, const std::string& title)
      : recording_({.title = title, .statistics = true}) {
    recording_.watch(model);
  }

  std::string text() override { return see::to_json(recording_.data()); }

  void write(const std::vector<std::string>& ranks, const std::string& page) const override {
    std::vector<see::RecordingData> all;
    for (size_t r = 0; r < ranks.size(); ++r)
      all.push_back(see::from_json(ranks[r], "rank " + std::to_string(r)));
    const see::RecordingData one = all.size() == 1 ? std::move(all[0]) : see::merge(all);
    see::write(one, recording_beside(page));
    see::explore(one, page);
  }

 private:
  see::Recording recording_;
};

}  // namespace

std::unique_ptr<StepRecording> record_step(const nn::Sequential& model, const std::string& title) {
  return std::make_unique<Recorded>(model, title);
}

}  // namespace ramet::training
