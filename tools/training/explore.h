// --explore: one step of the run as a page.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/module/sequential.h"

namespace ramet::training {

/// One process's recording of a step, under way until text().
class StepRecording {
 public:
  virtual ~StepRecording() = default;
  /// Ends it. Returns the recording as one line for write().
  virtual std::string text() = 0;
  /// Writes the page to `page`, and its recording to recording_beside(page). `ranks` holds every
  /// rank's text; together they become one recording.
  virtual void write(const std::vector<std::string>& ranks, const std::string& page) const = 0;
};

/// Records everything from here on, with statistics of values and gradients. Null in a program that
/// is linked without recordings (./tools/train builds that unless --explore is given). It is a
/// separate library, since it needs the one that reads debugging information.
[[gnu::weak]] std::unique_ptr<StepRecording> record_step(const nn::Sequential& model,
                                                         const std::string& title);

/// The page's name in the folder of the results, where the option gives none.
inline constexpr const char* kPage = "step.html";
/// "a/step.ramet.gz" of "a/step.html": what ./tools/explore reads.
std::string recording_beside(const std::string& page);
/// An Error where the page could not be written. `made`: a folder that will be there.
void check_page(const std::string& page, const std::string& made);

}  // namespace ramet::training
