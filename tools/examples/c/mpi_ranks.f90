! Ranks of an MPI program in Fortran: each has a number of its own, the gradient is that of their mean.
!
!   mpifort include/ramet/{ramet,ramet_processes}.f90 mpi_ranks.f90 $(pkg-config --libs ramet-c_processes)      mpirun -np 4 ./a.out
program mpi_ranks
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi
  use ramet
  use ramet_processes
  implicit none
  integer :: rank, ranks, ierror
  character(256) :: address
  real(real64), target :: mine(1, 1), slope(1, 1), sum_of_ranks(1)
  type(ramet_group) :: group
  type(ramet_module) :: net
  type(ramet_tensor) :: x, y, loss, weight, gradient, total

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  if (rank == 0) address = ramet_group_address()
  call MPI_Bcast(address, len(address), MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
  group = ramet_group_new(address, rank, ranks, 60.0_real64)

  ! y = w x, so d(sum y)/dw = x: of all ranks together the mean of 1, 2, ...
  net = ramet_module_new('{"type": "Linear", "in_features": 1, "out_features": 1, "bias": false, "dtype": "float64"}')
  call ramet_replicate(net, group)
  mine = rank + 1
  x = ramet_view(mine, reversed=.true.)
  y = ramet_forward(net, x)
  loss = ramet_sum(y)
  call ramet_backward(loss)
  weight = ramet_parameter(net, 'weight')
  gradient = ramet_gradient(weight)
  call ramet_get(gradient, slope, reversed=.true.)
  sum_of_ranks = rank + 1
  total = ramet_view(sum_of_ranks)
  call ramet_all_reduce(group, total, ramet_reduce_sum)
  call ramet_barrier(group)
  if (rank == 0) print '(a, i0, 2(a, f6.2))', 'mpi_ranks: ', ranks, ' ranks, gradient ', slope, ', sum ', sum_of_ranks
  if (abs(slope(1, 1) - 0.5_real64 * (ranks + 1)) > 1e-12_real64 .or. &
      abs(sum_of_ranks(1) - 0.5_real64 * ranks * (ranks + 1)) > 1e-12_real64) call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  call ramet_free(x)
  call ramet_free(y)
  call ramet_free(loss)
  call ramet_free(weight)
  call ramet_free(gradient)
  call ramet_free(total)
  call ramet_free(net)
  call ramet_group_free(group)
  call MPI_Finalize(ierror)
end program
