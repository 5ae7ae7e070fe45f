/* Processes in C: ranks that train together (ramet/c.h says how errors, handles and threads work).
 * A library of its own, which links Gloo.
 *
 * Ranks find each other at an address. Whatever has started them (MPI, a batch system) hands it
 * around:
 *
 *   char address[256] = "";
 *   if (rank == 0) ramet_group_address(NULL, address, sizeof(address));
 *   MPI_Bcast(address, sizeof(address), MPI_CHAR, 0, MPI_COMM_WORLD);
 *   ramet_group* group = ramet_group_new(address, rank, size, 60);
 *   ramet_module_replicate(net, group);         before the optimizer is made
 *   ... forward, loss, backward, step as in one process: gradients are the means over the ranks ...
 *
 * MPI only starts the ranks; what they exchange goes over Gloo's connections, or memory that ranks
 * of one host share.
 */
#pragma once
#include "nn/c/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The handle of a group. */
typedef struct ramet_group ramet_group;

/* What all_reduce makes of the ranks' values. RAMET_REDUCE_AVERAGE: floating-point tensors only. */
enum {
  RAMET_REDUCE_SUM = 0,
  RAMET_REDUCE_AVERAGE = 1,
  RAMET_REDUCE_PRODUCT = 2,
  RAMET_REDUCE_MIN = 3,
  RAMET_REDUCE_MAX = 4
};

/* Writes "tcp://HOST:PORT" with a port that is free on this host, for ramet_group_new on all ranks;
 * rank 0 is to be a process of this host, and to come soon: the port is not kept. `host`: its name
 * or number as the other ranks reach it; NULL: as it knows itself. `capacity`: of `address`, in
 * bytes; 256 are enough. */
RAMET_C_API int ramet_group_address(const char* host, char* address, int64_t capacity);
/* This process's rank of a group; returns when all of them are there. `address` is the same for all
 * ranks: tcp://HOST:PORT, file://PATH (a file that is not there yet, on a disk that they share),
 * inproc://NAME (ranks that are threads of this process), or env:// (RANK, WORLD_SIZE, MASTER_ADDR,
 * MASTER_PORT), where rank and world_size are -1. `timeout`: seconds that this and each operation
 * may take. */
RAMET_C_API ramet_group* ramet_group_new(const char* address, int rank, int world_size,
                                         double timeout);
/* Ends the group for this rank; ramet_group_barrier before, where others may still be busy. A
 * module that was replicated over it keeps it until it is freed itself. */
RAMET_C_API int ramet_group_free(ramet_group* group);
/* This process's number, from 0, and how many there are: */
RAMET_C_API int ramet_group_rank(const ramet_group* group, int* rank);
RAMET_C_API int ramet_group_size(const ramet_group* group, int* size);

/* All ranks call these in one order, with tensors of equal sizes and dtypes; what differs is an
 * error on all of them, a rank that does not come one at the timeout. Return when the operation is
 * over. */
RAMET_C_API int ramet_group_barrier(ramet_group* group);
/* The tensor becomes what `op` makes of all ranks' tensors. */
RAMET_C_API int ramet_group_all_reduce(ramet_group* group, ramet_tensor* tensor, int op);
/* The tensor becomes that of rank `root`. */
RAMET_C_API int ramet_group_broadcast(ramet_group* group, ramet_tensor* tensor, int root);
/* Ends the group on every rank, with this text as their error. */
RAMET_C_API int ramet_group_abort(ramet_group* group, const char* reason);

/* From now on a backward leaves the mean of the ranks' gradients, and buffers stay the same on all
 * ranks. All ranks call it for modules of one description, which take over rank 0's values, before
 * the module's first forward and before its optimizer is made: parameters may move, so pointers
 * from ramet_tensor_data are to be asked for again. ramet_module_clone copies to a module of one
 * process. */
RAMET_C_API int ramet_module_replicate(ramet_module* module, ramet_group* group);
/* With `on` = 0, backwards add to this rank's gradients alone; the next one with 1 brings all of it
 * together. */
RAMET_C_API int ramet_module_set_gradient_sync(ramet_module* module, int on);

#ifdef __cplusplus
}
#endif
