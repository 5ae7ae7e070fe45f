/* Processes in C: ranks that train together (ramet/c.h says how errors, handles and threads work).
 * A separate library, which links Gloo.
 *
 * Ranks find each other at an address. The program that started them (MPI, a batch system)
 * distributes it:
 *
 *   char address[256] = "";
 *   if (rank == 0) ramet_group_address(NULL, address, sizeof(address));
 *   MPI_Bcast(address, sizeof(address), MPI_CHAR, 0, MPI_COMM_WORLD);
 *   ramet_group* group = ramet_group_new(address, rank, size, 60);
 *   ramet_module_replicate(net, group);         before the optimizer is made
 *   ... forward, loss, backward, step as in one process: gradients are the means over the ranks ...
 *
 * MPI only starts the ranks. They exchange data over Gloo's connections, or through memory that
 * ranks of one host share.
 */
#pragma once
#include "nn/c/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The handle of a group. */
typedef struct ramet_group ramet_group;

/* How all_reduce combines the ranks' values. RAMET_REDUCE_AVERAGE: floating-point tensors only. */
enum {
  RAMET_REDUCE_SUM = 0,
  RAMET_REDUCE_AVERAGE = 1,
  RAMET_REDUCE_PRODUCT = 2,
  RAMET_REDUCE_MIN = 3,
  RAMET_REDUCE_MAX = 4
};

/* Writes "tcp://HOST:PORT" with a port that is free on this host, for ramet_group_new on all ranks.
 * Rank 0 must be a process of this host and call ramet_group_new soon: the port is not reserved.
 * `host`: the host's name or number by which the other ranks reach it; NULL: its own name.
 * `capacity`: the size of `address` in bytes; 256 are enough. */
RAMET_C_API int ramet_group_address(const char* host, char* address, int64_t capacity);
/* Makes this process's rank of a group; returns when all ranks are there. `address` is the same for
 * all ranks. It is tcp://HOST:PORT, or file://PATH (a file that does not exist yet, on a disk that
 * they share). For ranks that are threads of this process it is inproc://NAME. With env:// (RANK,
 * WORLD_SIZE, MASTER_ADDR, MASTER_PORT), rank and world_size are -1. `timeout`: seconds that this
 * and each operation may take. */
RAMET_C_API ramet_group* ramet_group_new(const char* address, int rank, int world_size,
                                         double timeout);
/* Ends the group for this rank. Call ramet_group_barrier before, where other ranks may still be
 * busy. A module that was replicated over the group keeps it until the module is freed. */
RAMET_C_API int ramet_group_free(ramet_group* group);
/* This process's rank, from 0, and the number of ranks: */
RAMET_C_API int ramet_group_rank(const ramet_group* group, int* rank);
RAMET_C_API int ramet_group_size(const ramet_group* group, int* size);

/* All ranks call these in the same order, with tensors of equal sizes and dtypes. A difference is
 * an error on all ranks; a rank that does not come is an error at the timeout. They return when the
 * operation is over. */
RAMET_C_API int ramet_group_barrier(ramet_group* group);
/* The tensor becomes the combination of all ranks' tensors by `op`. */
RAMET_C_API int ramet_group_all_reduce(ramet_group* group, ramet_tensor* tensor, int op);
/* The tensor becomes that of rank `root`. */
RAMET_C_API int ramet_group_broadcast(ramet_group* group, ramet_tensor* tensor, int root);
/* Ends the group on every rank, with this text as their error. */
RAMET_C_API int ramet_group_abort(ramet_group* group, const char* reason);

/* From now on a backward leaves the mean of the ranks' gradients, and buffers stay the same on all
 * ranks. All ranks call it for modules of one description, which take over rank 0's values. Call it
 * before the module's first forward and before its optimizer is made. Parameters may move, so ask
 * for pointers from ramet_tensor_data again. ramet_module_clone makes a module of one process. */
RAMET_C_API int ramet_module_replicate(ramet_module* module, ramet_group* group);
/* With `on` = 0, backwards only add to this rank's gradients. The next backward with 1 reduces all
 * of them over the ranks. */
RAMET_C_API int ramet_module_set_gradient_sync(ramet_module* module, int on);

#ifdef __cplusplus
}
#endif
