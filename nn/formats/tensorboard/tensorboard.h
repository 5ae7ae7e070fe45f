// Event files that TensorBoard shows: scalars, histograms, pictures and graphs.
//
//   EventWriter events("runs/first");             // tensorboard --logdir runs
//   events.add_scalar("loss", loss.item<double>(), step);
//   events.add_histogram("fc.weight", fc->weight, step);
//
// A writer makes one file in the folder, events.out.tfevents.<seconds>.<host>.<process>.<number>.
// TensorBoard joins the files of a folder, so a resumed run writes another file. The file is a
// sequence of records: length (8 bytes), its checksum, an Event message, its checksum. Checksums
// are CRC-32C, masked. Records are only ever appended: a program that is killed leaves a file with
// complete records, and readers skip a record that is cut off.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "autograd/graph_print.h"
#include "autograd/tensor.h"

namespace ramet {

/// A writer belongs to one thread, as a stream does. Errors name the file and the reason. The
/// destructor writes the remaining records and reports no errors.
class RAMET_API EventWriter {
 public:
  /// Makes the folder, if it does not exist, and the file. Records are collected and written when
  /// there are `buffer_bytes` of them; 0: each at once.
  explicit EventWriter(const std::string& folder, size_t buffer_bytes = size_t{1} << 16);
  ~EventWriter();
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;

  // `wall_time` in seconds since 1970; now by default.

  /// One number at `step` of the curve `tag`.
  void add_scalar(const std::string& tag, double value, int64_t step,
                  std::optional<double> wall_time = std::nullopt);
  /// How often each value occurs, in TensorFlow's buckets, which grow by a tenth each. Any dtype,
  /// shape and device. NaN and infinities are left out.
  void add_histogram(const std::string& tag, const Tensor& values, int64_t step,
                     std::optional<double> wall_time = std::nullopt);
  /// (channels, height, width) of 1, 3 or 4 channels, or (height, width): bytes, or floating-point
  /// numbers from 0 to 1 (others are clipped; NaN is 0). Written as PNG.
  void add_image(const std::string& tag, const Tensor& image, int64_t step,
                 std::optional<double> wall_time = std::nullopt);
  /// The graph that computed a tensor, from autograd::collect_graph. Each operation is a node; a
  /// parameter "fc.weight" stands in a box "fc".
  void add_graph(const autograd::GraphPicture& graph,
                 std::optional<double> wall_time = std::nullopt);

  /// Writes everything to the system, so that it survives if the program is killed. `to_disk`: also
  /// waits until the disk has it.
  void flush(bool to_disk = false);
  /// The file that it writes.
  const std::string& path() const;

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace ramet
