#include "parallel/distributed/wire/shared_memory_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed::detail {
namespace {

constexpr size_t kHead = SharedMemory::kHead;
constexpr size_t kGrain = size_t{2} << 20;  // sizes of blocks are multiples of this
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::string name_of(const BlockOffer& offer) {
  return "ramet-" + std::to_string(offer.number[0]) + "-" + std::to_string(offer.number[1]);
}

// Closes a descriptor.
struct Opened {
  const int fd;
  ~Opened() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

bool shared_memory_wanted() {
  const char* text = std::getenv("RAMET_SHARED_MEMORY");
  const std::string value = text ? text : "1";
  RAMET_CHECK(value == "0" || value == "1", "process_group", "RAMET_SHARED_MEMORY: got \"", value,
              "\", expected 0 or 1");
  return value == "1";
}

Mapping::~Mapping() {
  if (at_) munmap(at_, bytes_);
}

OwnBlock::~OwnBlock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<OwnBlock> OwnBlock::make(size_t bytes) {
  OwnBlock b;
  b.offer.bytes = kHead + bytes;
  rlimit limit{};
  // Writing beyond the limit would be a signal, not an error.
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < b.offer.bytes) return {};
  if (getrandom(b.offer.number, sizeof(b.offer.number), 0) != sizeof(b.offer.number)) return {};
  b.descriptor_ = memfd_create(name_of(b.offer).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (b.descriptor_ < 0) return {};
  b.offer.pid = getpid();
  b.offer.descriptor = b.descriptor_;
  // Allocates all pages now: a lack of memory is an error here, but would be a signal later.
  if (fallocate(b.descriptor_, 0, 0, static_cast<off_t>(b.offer.bytes)) != 0 ||
      fcntl(b.descriptor_, F_ADD_SEALS, kSeals) != 0)
    return {};
  void* at = mmap(nullptr, b.offer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                  b.descriptor_, 0);
  if (at == MAP_FAILED) return {};
  b.memory = Mapping(at, b.offer.bytes);
  std::memcpy(at, b.offer.number, sizeof(b.offer.number));
  return b;
}

std::optional<Mapping> open_block(const BlockOffer& offer) {
  if (offer.bytes < kHead) return {};
  const std::string path =
      "/proc/" + std::to_string(offer.pid) + "/fd/" + std::to_string(offer.descriptor);
  // Checked before it is opened: in another namespace it may be anything, for example a device.
  std::array<char, 128> link{};
  const std::string expected = "/memfd:" + name_of(offer);
  if (readlink(path.c_str(), link.data(), link.size() - 1) < 0 ||
      std::strncmp(link.data(), expected.c_str(), expected.size()) != 0)
    return {};
  const Opened file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  struct stat found {};
  if (file.fd < 0 || fstat(file.fd, &found) != 0 ||
      static_cast<uint64_t>(found.st_size) != offer.bytes ||
      (fcntl(file.fd, F_GET_SEALS) & kSeals) != kSeals)
    return {};
  void* at = mmap(nullptr, offer.bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, file.fd, 0);
  if (at == MAP_FAILED) return {};
  Mapping memory(at, offer.bytes);
  if (std::memcmp(at, offer.number, sizeof(offer.number)) != 0) return {};
  return memory;
}

bool SharedMemory::reserve(Channel& channel, size_t bytes) {
  if (bytes <= capacity_) return true;
  if (bytes > most_) return false;
  const int n = channel.size(), me = channel.rank();
  const size_t wanted =
      std::min(kMost, (std::max(bytes, capacity_ * 3 / 2) + kGrain - 1) / kGrain * kGrain);
  const auto each = static_cast<size_t>(n);

  std::optional<OwnBlock> own = wanted_ ? OwnBlock::make(wanted) : std::nullopt;
  std::vector<BlockOffer> offers(each);
  if (own) offers[static_cast<size_t>(me)] = own->offer;
  channel.share(offers);

  std::vector<Mapping> blocks(each);
  std::vector<char> opened_all(each, 0);
  opened_all[static_cast<size_t>(me)] = own.has_value();
  for (int i = 0; i < n && opened_all[static_cast<size_t>(me)]; ++i) {
    if (i == me) continue;
    std::optional<Mapping> other = open_block(offers[static_cast<size_t>(i)]);
    if (other) blocks[static_cast<size_t>(i)] = std::move(*other);
    else opened_all[static_cast<size_t>(me)] = 0;
  }
  channel.share(opened_all);
  if (std::ranges::find(opened_all, 0) != opened_all.end()) {
    most_ = capacity_;  // not tried again
    return false;
  }
  blocks[static_cast<size_t>(me)] = std::move(own->memory);
  blocks_ = std::move(blocks);
  capacity_ = wanted;
  return true;
}

}  // namespace ramet::distributed::detail
