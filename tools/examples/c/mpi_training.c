/* Ranks of an MPI program that train together:
 *
 *   mpicc mpi_training.c $(pkg-config --cflags --libs ramet-c_processes)      mpirun -np 4 ./a.out
 *
 * MPI has started the ranks and tells them their numbers; the address at which they find each other
 * in Ramet travels by MPI_Bcast. Gradients go over Ramet's own connections, so any MPI will do, and
 * what the program sends by MPI is its own. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

#include "parallel/c/c_processes.h"

enum { kRows = 64, kInputs = 2, kSteps = 300 };

static void check(int ok) {
  if (ok) return;
  fprintf(stderr, "mpi_training: %s\n", ramet_last_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  static float points[kRows][kInputs], values[kRows];
  const int64_t in[2] = {kRows, kInputs}, out[2] = {kRows, 1};
  char address[256] = "";
  int rank, size, i, step;
  double first = 0, value = 0, sum, difference, least, most;
  ramet_group* group;
  ramet_module* net;
  ramet_optimizer* adam;
  ramet_tensor *x, *y, *weight, *total;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  if (rank == 0) check(ramet_group_address(NULL, address, sizeof(address)) == RAMET_OK);
  MPI_Bcast(address, sizeof(address), MPI_CHAR, 0, MPI_COMM_WORLD);
  check((group = ramet_group_new(address, rank, size, 60)) != NULL);

  /* Each rank starts with weights of its own; rank 0's count. */
  ramet_manual_seed((uint64_t)rank + 1);
  net = ramet_module_new(
      "{\"layers\": [{\"type\": \"Linear\", \"in_features\": 2, \"out_features\": 24}, {\"type\": "
      "\"Tanh\"},"
      " {\"type\": \"Linear\", \"in_features\": 24, \"out_features\": 1}]}",
      NULL);
  check(net && ramet_module_replicate(net, group) == RAMET_OK);
  check((adam = ramet_optimizer_new(net, "Adam", "{\"lr\": 0.01}")) != NULL);

  /* This rank's part of the plane: no other rank has it. */
  for (i = 0; i < kRows; ++i) {
    points[i][0] = (float)(2 * (rank + (i % 8 + 0.5) / 8) / size - 1);
    points[i][1] = (float)(2 * (i / 8 + 0.5) / 8 - 1);
    values[i] = (float)(sin(3 * points[i][0]) * points[i][1]);
  }
  x = ramet_tensor_from_memory(points, RAMET_FLOAT32, 2, in, NULL);
  y = ramet_tensor_from_memory(values, RAMET_FLOAT32, 2, out, NULL);
  check(x && y);
  for (step = 0; step < kSteps; ++step) {
    ramet_tensor *outputs = ramet_module_forward(net, x),
                 *loss = ramet_mse_loss(outputs, y, RAMET_MEAN);
    check(ramet_tensor_item(loss, &value) == RAMET_OK &&
          ramet_optimizer_zero_grad(adam, 1) == RAMET_OK &&
          ramet_tensor_backward(loss, NULL) == RAMET_OK && ramet_optimizer_step(adam) == RAMET_OK);
    if (step == 0) first = value;
    ramet_tensor_free(loss);
    ramet_tensor_free(outputs);
  }

  /* MPI's own reductions, of what Ramet computed: the mean loss, and whether the ranks still have
   * one model. */
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  check((weight = ramet_module_parameter(net, "2.weight")) != NULL);
  check((total = ramet_tensor_sum(weight)) != NULL &&
        ramet_tensor_item(total, &difference) == RAMET_OK);
  MPI_Allreduce(&difference, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&difference, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0)
    printf(
        "mpi_training: %d ranks, loss of rank 0 %.4f at first, mean loss %.6f in the end; weights "
        "differ by %g\n",
        size, first, sum / size, most - least);

  check(ramet_group_barrier(group) == RAMET_OK);
  ramet_tensor_free(total);
  ramet_tensor_free(weight);
  ramet_tensor_free(y);
  ramet_tensor_free(x);
  ramet_optimizer_free(adam);
  ramet_module_free(net);
  ramet_group_free(group);
  MPI_Finalize();
  return sum / size < 0.01 && most == least ? 0 : 1;
}
