// Communicators of the emulated NCCL, their ranks, and the calls that wait for the end of a group.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tools/emulated_gpu/nccl/collective.h"
#include "tools/emulated_gpu/runtime/control.h"

namespace ramet::emulated {

/// What a collective works on: owned by its meeting, filled in by its ranks.
struct Buffers {
  std::vector<const void*> send;
  std::vector<void*> receive;
};

/// A collective that some ranks have called.
struct OpenCollective {
  OpenCollective(const Collective& c, int ranks);

  const Collective what;
  std::shared_ptr<Buffers> buffers;
  std::shared_ptr<Meeting> meeting;
  std::set<std::thread::id> callers;  // outside groups
  int joined = 0;
};

struct Parcel;  // a message between two ranks: nccl_messages.cc

/// All ranks of one communicator.
struct Clique {
  explicit Clique(int n) : ranks(n), next(size_t(n)) {}
  const int ranks;
  std::mutex mutex;
  std::condition_variable complete;
  int present = 0;
  std::set<int> devices;       // of ranks that came one by one
  std::vector<uint64_t> next;  // number of each rank's next collective
  std::map<uint64_t, std::shared_ptr<OpenCollective>> open;
  // By sender, receiver and number. Of each side, how many there were.
  std::map<std::tuple<int, int, uint64_t>, std::shared_ptr<Parcel>> parcels;
  std::map<std::pair<int, int>, uint64_t> sent, received;
};

/// A call that has not reached its stream. A message, where `peer` is one.
struct PendingCall {
  ncclComm_t comm;
  Collective what;
  const void* send;
  void* receive;
  cudaStream_t stream;
  int peer = -1;
};

/// Puts calls of one rank into their streams, messages together.
ncclResult_t enqueue_all(const std::vector<PendingCall>& calls, bool grouped);
/// The same for messages of one rank and stream alone.
ncclResult_t enqueue_messages(const std::vector<PendingCall>& calls);
/// Operations that `comm` has in streams end without having run.
void give_up_operations(ncclComm_t comm);

// nccl_checks.cc
const char* name_of(const PendingCall& call);
/// "ncclSend of 8 elements by rank 1".
std::string describe(const PendingCall& call);
/// Are the call's arguments valid for NCCL?
ncclResult_t check(const PendingCall& call);
/// Has a communicator that does not block more to do than it has reported as done?
bool in_progress(ncclComm_t comm);
/// May `call` be made on the communicator now?
ncclResult_t ready(ncclComm_t comm, const char* call);
ncclResult_t check_config(const ncclConfig_t* config);
/// The last argument of report_nccl_error().
ncclResult_t reported_nccl_error();

/// Reports the text, returns the result.
ncclResult_t refuse(ncclResult_t result, const std::string& text);

enum class Finalize : uint8_t { No, Asked, Done };

}  // namespace ramet::emulated

struct ncclComm {
  std::shared_ptr<ramet::emulated::Clique> clique;
  int rank, device;
  // Not blocking: calls reach their streams at the program's second question whether they have.
  // Work that is queued on the stream before that runs too early.
  bool blocking = true, asked = false;
  std::vector<ramet::emulated::PendingCall> taken_over_later = {};
  ncclResult_t broken = ncclSuccess;  // fail_next_nccl_group()
  ramet::emulated::Finalize finalize = ramet::emulated::Finalize::No;
};
