// The emulated NCCL beyond NCCL's API: faults for tests.
#pragma once
#include "tools/emulated_gpu/nccl/nccl_api.h"

namespace ramet::emulated {

/// While set, ncclCommAbort() does not return: NCCL's waits for its kernels and threads to end.
/// hold_nccl_aborts(false) returns when all such calls have ended.
void hold_nccl_aborts(bool hold);
/// The number of calls of ncclCommAbort() that have not returned.
int nccl_aborts_under_way();
/// The error that all communicators report from now on; ncclSuccess: none.
void report_nccl_error(ncclResult_t error);
/// The next group that ends with calls in it fails with this error and runs none of them. From then
/// on its communicators answer every call with it.
void fail_next_nccl_group(ncclResult_t error);
/// While set, messages between ranks that reach their streams stop there until their communicator
/// is aborted.
void hold_nccl_messages(bool hold);

}  // namespace ramet::emulated
