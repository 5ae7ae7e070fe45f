#include "nn/formats/tensorboard/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "nn/formats/proto_internal.h"
#include "nn/formats/tensorboard/png_internal.h"

namespace ramet {

using formats::ProtoMessage;

namespace {

constexpr const char* kOp = "EventWriter";

// ---- records ------------------------------------------------------------------------------------

// CRC-32C (Castagnoli), bits reversed, as iSCSI's.
uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0u);
      t[i] = c;
    }
    return t;
  }();
  uint32_t c = ~0u;
  for (unsigned char b : bytes) c = c >> 8 ^ table[(c ^ b) & 255];
  return ~c;
}
// Masks a checksum: rotated, and a number added. Otherwise checksums of bytes that contain
// checksums would be weak.
uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

template <class T> void put_raw(std::string& out, T value) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// ---- values -------------------------------------------------------------------------------------

// The upper ends of TensorFlow's buckets: 1e-12 * 1.1^k below 1e20, their negatives, 0, and at the
// end the largest double.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    constexpr double kLargest = std::numeric_limits<double>::max();
    std::vector<double> all{-kLargest};
    for (size_t i = positive.size(); i-- > 0;) all.push_back(-positive[i]);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    all.push_back(kLargest);
    return all;
  }();
  return limits;
}

ProtoMessage buckets_of(const Tensor& values) {
  const Tensor flat = values.detach().to(Device(kCPU, 0), kDouble).contiguous();
  const double* v = flat.data_ptr<double>();
  const std::vector<double>& limits = bucket_limits();
  std::vector<double> counts(limits.size());
  double low = 0, high = 0, number = 0, sum = 0, squares = 0;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (!std::isfinite(v[i])) continue;
    low = number ? std::min(low, v[i]) : v[i];
    high = number ? std::max(high, v[i]) : v[i];
    number += 1, sum += v[i], squares += v[i] * v[i];
    const auto place = std::upper_bound(limits.begin(), limits.end() - 1, v[i]);
    counts[static_cast<size_t>(place - limits.begin())] += 1;
  }
  // Runs of empty buckets are one.
  std::vector<double> ends, kept;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!kept.empty() && counts[i] == 0 && kept.back() == 0) ends.back() = limits[i];
    else ends.push_back(limits[i]), kept.push_back(counts[i]);
  }
  if (kept.size() > 1 && kept.back() == 0) ends.pop_back(), kept.pop_back();
  ProtoMessage m;
  m.real64(1, low).real64(2, high).real64(3, number).real64(4, sum).real64(5, squares);
  return m.packed_real64(6, ends).packed_real64(7, kept);
}

ProtoMessage picture(const Tensor& image) {
  constexpr const char* kAdd = "add_image";
  RAMET_CHECK(image.defined(), kAdd, "undefined tensor");
  const bool plain = image.dim() == 2;
  RAMET_CHECK(plain || image.dim() == 3, kAdd, "got ", describe(image),
              ", expected (channels, height, width) or (height, width)");
  const int64_t channels = plain ? 1 : image.size(0);
  RAMET_CHECK(channels == 1 || channels == 3 || channels == 4, kAdd, "got ", channels,
              " channels, expected 1, 3 or 4");
  const int64_t height = image.size(-2), width = image.size(-1);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  RAMET_CHECK(height > 0 && width > 0 && height <= kMost && width <= kMost, kAdd, "got a picture ",
              "of ", height, " x ", width, ", expected 1 to ", kMost, " each way");
  RAMET_CHECK(image.scalar_type() == kByte || image.is_floating_point(), kAdd, "got ",
              describe(image), ", expected uint8, or floating-point numbers from 0 to 1");
  Tensor x = image.detach().to(Device(kCPU, 0));
  if (plain) x = x.unsqueeze(0);
  if (x.is_floating_point())
    x = (x.to(kDouble).nan_to_num(0.0, 1.0, 0.0).clamp(0, 1) * 255).round().to(kByte);
  x = x.permute({1, 2, 0}).contiguous();
  ProtoMessage m;
  m.integer(1, height).integer(2, width).integer(3, channels);
  return m.text(4, formats::png(x.data_ptr<uint8_t>(), height, width, channels));
}

// TensorBoard takes '/' for the border of a box. A node's name must begin with a letter or digit.
std::string node_name(std::string name) {
  for (char& c : name) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-';
    if (c == '.') c = '/';
    else if (!kept) c = '_';
  }
  if (name.empty() || name[0] == '_' || name[0] == '-' || name[0] == '/') name.insert(0, "x");
  return name;
}

}  // namespace

struct EventWriter::File {
  std::string path, buffer;
  size_t buffer_bytes;
  int descriptor = -1;

  ~File() {
    if (descriptor >= 0) ::close(descriptor);
  }

  [[noreturn]] void failed(const char* what) const {
    fail(kOp, path, ": ", what, ": ", std::generic_category().message(errno));
  }
  void write_out() {
    size_t done = 0;
    while (done < buffer.size()) {
      const ssize_t n = ::write(descriptor, buffer.data() + done, buffer.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        buffer.erase(0, done);  // a later flush goes on where this one stopped
        failed("cannot write");
      }
      done += static_cast<size_t>(n);
    }
    buffer.clear();
  }
  void record(const std::string& event) {
    RAMET_CHECK(event.size() <= std::numeric_limits<int32_t>::max(), kOp, "got an event of ",
                event.size(), " bytes, expected less than 2^31, which is what its readers read");
    std::string whole;
    put_raw(whole, uint64_t{event.size()});
    put_raw(whole, masked(crc32c(whole)));
    whole += event;
    put_raw(whole, masked(crc32c(event)));
    buffer += whole;  // all of it or nothing
    if (buffer.size() < buffer_bytes) return;
    try {
      write_out();
    } catch (const Error&) {
      // If the file has the beginning of this event, the next event reports the failure.
      if (buffer.size() < whole.size()) return;
      buffer.resize(buffer.size() - whole.size());
      throw;
    }
  }
  void event(std::optional<double> wall_time, int64_t step, uint32_t field,
             std::string_view content) {
    ProtoMessage e;
    record(
        e.real64(1, wall_time ? *wall_time : now()).integer(2, step).text(field, content).bytes());
  }
  void value(const std::string& tag, const ProtoMessage& value, int64_t step,
             std::optional<double> wall_time) {
    ProtoMessage tagged, summary;
    constexpr uint32_t kSummary = 5;
    tagged.text(1, tag);
    const std::string both = tagged.bytes() + value.bytes();
    event(wall_time, step, kSummary, summary.text(1, both).bytes());
  }
};

EventWriter::EventWriter(const std::string& folder, size_t buffer_bytes)
    : file_(std::make_unique<File>()) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  RAMET_CHECK(std::filesystem::is_directory(folder), kOp, folder, ": cannot make the folder: ",
              error ? error.message() : "there is a file of that name");
  char host[256] = "host";
  (void)::gethostname(host, sizeof host - 1);
  static std::atomic<int> number{0};
  const auto seconds = static_cast<int64_t>(now());
  do {  // another writer's file is never touched
    file_->path = folder + "/events.out.tfevents." + std::to_string(seconds) + '.' + host + '.' +
                  std::to_string(::getpid()) + '.' + std::to_string(number++);
    file_->descriptor =
        ::open(file_->path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  } while (file_->descriptor < 0 && errno == EEXIST);
  if (file_->descriptor < 0) file_->failed("cannot make it");
  file_->buffer_bytes = buffer_bytes;
  constexpr uint32_t kFileVersion = 3;
  file_->event(std::nullopt, 0, kFileVersion, "brain.Event:2");
  flush();
}
EventWriter::~EventWriter() {
  try {
    if (file_) file_->write_out();
  } catch (const Error&) {}
}
EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&& o) noexcept {
  std::swap(file_, o.file_);
  return *this;
}

void EventWriter::add_scalar(const std::string& tag, double value, int64_t step,
                             std::optional<double> wall_time) {
  constexpr uint32_t kSimpleValue = 2;
  ProtoMessage m;
  file_->value(tag, m.real32(kSimpleValue, static_cast<float>(value)), step, wall_time);
}
void EventWriter::add_histogram(const std::string& tag, const Tensor& values, int64_t step,
                                std::optional<double> wall_time) {
  RAMET_CHECK(values.defined(), "add_histogram", "undefined tensor");
  constexpr uint32_t kHistogram = 5;
  ProtoMessage m;
  file_->value(tag, m.message(kHistogram, buckets_of(values)), step, wall_time);
}
void EventWriter::add_image(const std::string& tag, const Tensor& image, int64_t step,
                            std::optional<double> wall_time) {
  constexpr uint32_t kImage = 4;
  ProtoMessage m;
  file_->value(tag, m.message(kImage, picture(image)), step, wall_time);
}

void EventWriter::add_graph(const autograd::GraphPicture& graph, std::optional<double> wall_time) {
  // A gradient flows from an operation to its inputs; TensorBoard draws data, the other way.
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.vertices.size(); ++i) {
    const auto& v = graph.vertices[i];
    const std::string own = v.label.substr(0, v.label.find(' '));
    names.push_back(own.empty() ? node_name(v.name) + "_" + std::to_string(i) : node_name(own));
  }
  std::vector<ProtoMessage> nodes(graph.vertices.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto& v = graph.vertices[i];
    nodes[i].text(1, names[i]).text(2, v.leaf ? "Parameter" : v.name);
    nodes[i].text(4, "/device:" + v.device.str());
  }
  for (const auto& edge : graph.edges) nodes[edge.from].text(3, names[edge.to]);
  ProtoMessage definition;
  for (const ProtoMessage& node : nodes) definition.message(1, node);
  ProtoMessage versions;
  definition.message(4, versions.integer(1, 22));
  constexpr uint32_t kGraph = 4;
  file_->event(wall_time, 0, kGraph, definition.bytes());
}

void EventWriter::flush(bool to_disk) {
  file_->write_out();
  if (to_disk && ::fdatasync(file_->descriptor) != 0 && errno != EINVAL)
    file_->failed("cannot sync");
}
const std::string& EventWriter::path() const { return file_->path; }

}  // namespace ramet
