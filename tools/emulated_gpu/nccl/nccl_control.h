// The NCCL double beyond NCCL's API: faults for tests.
#pragma once
#include "tools/emulated_gpu/nccl/nccl_api.h"

namespace ramet::emulated {

/// While set, ncclCommAbort() does not go on: NCCL's waits for its kernels and threads to end.
/// Without, returns when all such calls have ended.
void hold_nccl_aborts(bool hold);
/// Calls of ncclCommAbort() that are not back.
int nccl_aborts_under_way();
/// What all communicators report from now on; ncclSuccess: nothing.
void report_nccl_error(ncclResult_t error);
/// The next group that ends with calls in it fails with this, without any of them; its
/// communicators answer everything so from then on.
void fail_next_nccl_group(ncclResult_t error);
/// While set, messages between ranks that reach their streams stop there until their communicator
/// is aborted.
void hold_nccl_messages(bool hold);

}  // namespace ramet::emulated
