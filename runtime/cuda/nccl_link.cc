// gpu::Link by an NCCL communicator and a separate stream. So groups that share a GPU do not wait
// for each other's operations in one queue, which each rank might have filled in another order.
//
// Communicators are made with blocking = 0. Then no call of NCCL waits for another rank, so the
// caller's deadline holds, and an abort reaches everything. After such a call nothing may be queued
// before the communicator reports that it has accepted the call (settled()).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "runtime/base/logging.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/kept_memory.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/devices/gpu_link.h"

namespace ramet {
namespace cuda {
namespace {

constexpr const char* kOp = "process_group";
constexpr int kOldest = 21400;  // blocking = 0 and ncclCommInitRankConfig
using Deadline = std::chrono::steady_clock::time_point;

struct OwnStream {
  cudaStream_t stream = nullptr;
  OwnStream(int device) {
    const CardGuard card(kOp, device);
    RAMET_CUDA_ALLOCATING(kOp, device, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~OwnStream() {
    if (use_any_card()) ignore(cudaStreamDestroy(stream));
  }
  OwnStream(const OwnStream&) = delete;
};

Deadline patience() { return std::chrono::steady_clock::now() + gpu::kLinkAbortTakes; }

// Waits until `done` returns true; false at the deadline.
template <class F> bool comes_by(Deadline deadline, const F& done) {
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

class NcclLink final : public gpu::Link {
 public:
  NcclLink(const std::string& id, int device, int rank, int size)
      : device_(device),
        state_(device_state(device, kOp)),
        library_(*nccl_library(nullptr)),
        stream_(device),
        mark_(kOp, device),
        between_(kOp, device),
        end_(std::make_shared<EventHandle>(kOp, device)) {
    ncclUniqueId unique{};
    static_assert(sizeof(unique) == gpu::kLinkId);
    RAMET_CHECK(id.size() == sizeof(unique), kOp, "the id of a link: got ", id.size(),
                " bytes, expected ", sizeof(unique));
    std::memcpy(&unique, id.data(), sizeof(unique));
    ncclConfig_t config{};
    config.size = sizeof(config);
    config.magic = 0xcafebeef;
    config.version = kOldest;
    config.blocking = 0;
    const CardGuard card(kOp, state_);
    const ncclResult_t code = library_.init_rank(&comm_, size, unique, rank, &config);
    if (code != ncclSuccess && code != ncclInProgress) {
      const std::string text = failure("ncclCommInitRankConfig", code);
      abort(patience());
      throw gpu::LinkError(text, code == ncclRemoteError);
    }
  }

  ~NcclLink() override {
    if (!comm_ || !existing_state(device_)) return;
    try {
      const CardGuard card(kOp, state_);
      const ncclResult_t code = library_.finalize(comm_);
      if ((code == ncclSuccess || code == ncclInProgress) &&
          comes_by(patience(), [this] { return settled(); })) {
        (void)library_.destroy(comm_);
        return;
      }
    } catch (const Error& e) { log(LogLevel::Info, e.what()); }
    abort(patience());
  }

  bool settled() override {
    ncclResult_t state = ncclSuccess;
    check("ncclCommGetAsyncError", library_.async_error(comm_, &state));
    if (state == ncclInProgress) return false;
    check("an operation", state);
    return true;
  }

  void exchange(const std::vector<Outgoing>& out, const std::vector<Incoming>& in) override {
    const CardGuard card(kOp, state_);
    check("ncclGroupStart", library_.group_start());
    ncclResult_t code = ncclSuccess;
    const auto next = [&](ncclResult_t c) {
      if (c != ncclSuccess && c != ncclInProgress && code == ncclSuccess) code = c;
    };
    for (const Incoming& m : in)
      if (m.bytes)
        next(library_.receive(m.data, m.bytes, ncclUint8, m.from, comm_, stream_.stream));
    for (const Outgoing& m : out)
      if (m.bytes) next(library_.send(m.data, m.bytes, ncclUint8, m.to, comm_, stream_.stream));
    const ncclResult_t end = library_.group_end();  // also after an error
    check("ncclSend and ncclRecv", code);
    check("ncclGroupEnd", end);
  }

  bool can_sum(ScalarType dtype) const override { return nccl_type(dtype) >= 0; }
  void sum(void* data, int64_t n, ScalarType dtype) override {
    const CardGuard card(kOp, state_);
    check("ncclAllReduce", library_.all_reduce(data, data, static_cast<size_t>(n),
                                               static_cast<ncclDataType_t>(nccl_type(dtype)),
                                               ncclSum, comm_, stream_.stream));
  }

  void come_after(gpu::Event& earlier) override {
    const ComputeStreamGuard instead(device_, stream_.stream);
    earlier.wait(here());
  }
  void come_after_kernels() override {
    const CardGuard card(kOp, state_);
    RAMET_CUDA(kOp, device_, cudaEventRecord(between_.get(), state_.stream(Queue::kCompute, kOp)));
    RAMET_CUDA(kOp, device_, cudaStreamWaitEvent(stream_.stream, between_.get(), 0));
  }
  void come_before_kernels() override {
    const CardGuard card(kOp, state_);
    RAMET_CUDA(kOp, device_, cudaEventRecord(between_.get(), stream_.stream));
    RAMET_CUDA(kOp, device_,
               cudaStreamWaitEvent(state_.stream(Queue::kCompute, kOp), between_.get(), 0));
  }
  void run(const std::function<void()>& work) override {
    const ComputeStreamGuard instead(device_, stream_.stream);
    work();
  }

  void mark() override {
    const CardGuard card(kOp, state_);
    RAMET_CUDA(kOp, device_, cudaEventRecord(mark_.get(), stream_.stream));
  }
  bool reached() override {
    const CardGuard card(kOp, state_);
    const cudaError_t code = cudaEventQuery(mark_.get());
    if (is_not_ready(code)) {
      (void)settled();  // throws where an operation failed
      return false;
    }
    RAMET_CUDA(kOp, device_, code);
    return true;
  }

  void begin_abort() noexcept override {
    const ncclComm_t comm = std::exchange(comm_, nullptr);
    if (!comm) return;
    try {
      aborts_.emplace(library_, std::vector{std::pair(state_.card, comm)});
    } catch (const std::exception& e) { log(LogLevel::Warning, e.what()); }
  }
  void abort(Deadline deadline) noexcept override {
    begin_abort();
    if (!aborts_) return;
    try {
      const CardGuard card(kOp, state_);
      if (!aborts_->are_back_by(deadline)) {
        log(LogLevel::Warning, ramet::detail::join("[process_group] ncclCommAbort on cuda:",
                                                   device_, " did not return in time"));
      } else if (!comes_by(deadline,
                           [this] { return !is_not_ready(cudaStreamQuery(stream_.stream)); })) {
        log(LogLevel::Warning, ramet::detail::join("[process_group] NCCL's work on cuda:", device_,
                                                   " goes on although it was aborted"));
        keep_memory_until_the_end();
      }
      (void)cudaGetLastError();
    } catch (const std::exception& e) { log(LogLevel::Warning, e.what()); }
    aborts_.reset();
  }

 private:
  void keep_memory_until_the_end() {
    RAMET_CUDA(kOp, device_, cudaEventRecord(end_->get(), stream_.stream));
    keep_memory_until(state_.card, [end = end_] {
      return !use_any_card() || !is_not_ready(cudaEventQuery(end->get()));
    });
  }
  Stream here() const { return {Device(kCUDA, static_cast<DeviceIndex>(device_)), gpu::kCompute}; }
  std::string failure(const char* call, ncclResult_t code) const {
    const char* more = comm_ ? library_.last_error(comm_) : nullptr;
    return ramet::detail::join("NCCL on cuda:", device_, ": ", call,
                               " failed: ", library_.text(code), more && *more ? " (" : "",
                               more ? more : "", more && *more ? ")" : "");
  }
  void check(const char* call, ncclResult_t code) const {
    if (code != ncclSuccess && code != ncclInProgress)
      throw gpu::LinkError(failure(call, code), code == ncclRemoteError);
  }

  const int device_;
  DeviceState& state_;
  const Nccl& library_;
  const OwnStream stream_;
  const EventHandle mark_, between_;
  const std::shared_ptr<EventHandle> end_;  // marks the end of work that goes on after its abort
  ncclComm_t comm_ = nullptr;
  std::optional<Aborts> aborts_;  // under way
};

std::string version_text(int version) {
  return ramet::detail::join(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace
}  // namespace cuda

std::string gpu::why_no_links() {
  std::string why;
  const cuda::Nccl* n = cuda::nccl_library(&why);
  int version = 0;
  if (!n || n->version(&version) != ncclSuccess) return "NCCL cannot be used: " + why;
  if (version < cuda::kOldest || !n->unique_id || !n->init_rank || !n->async_error ||
      !n->finalize || !n->abort || !n->last_error || !n->send || !n->receive || !n->all_reduce)
    return "NCCL " + cuda::version_text(version) + " is too old, expected " +
           cuda::version_text(cuda::kOldest) + " or newer";
  return "";
}

std::string gpu::make_link_id() {
  const std::string why = why_no_links();
  RAMET_CHECK(why.empty(), cuda::kOp, why);
  const cuda::Nccl& n = *cuda::nccl_library(nullptr);
  ncclUniqueId id{};
  const ncclResult_t code = n.unique_id(&id);
  if (code != ncclSuccess)
    throw LinkError(std::string("NCCL: ncclGetUniqueId failed: ") + n.text(code), false);
  return std::string(reinterpret_cast<const char*>(&id), sizeof(id));
}

std::unique_ptr<gpu::Link> gpu::make_link(const std::string& id, int device, int rank, int size) {
  return std::make_unique<cuda::NcclLink>(id, device, rank, size);
}

// By the host's boot and the GPU's place on its bus.
uint64_t gpu::card_identity(int device) {
  static const std::string host = [] {
    std::string line;
    ramet::detail::classic<std::ifstream>("/proc/sys/kernel/random/boot_id") >> line;
    return line;
  }();
  char bus[64] = {};
  RAMET_CUDA(cuda::kOp, device,
             cudaDeviceGetPCIBusId(bus, sizeof(bus), cuda::device_state(device, cuda::kOp).card));
  return std::hash<std::string>()(host + "/" + bus) | 1;
}

}  // namespace ramet
