! Ranks that train together, for Fortran 2008: based on ramet.f90 and the C functions that c_processes.h describes.
!
!   character(256) :: address
!   if (rank == 0) address = ramet_group_address()
!   call MPI_Bcast(address, len(address), MPI_CHARACTER, 0, MPI_COMM_WORLD)
!   group = ramet_group_new(address, rank, size, 60.0_real64)
!   call ramet_replicate(net, group)               ! before the optimizer is made
module ramet_processes
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real64
  use ramet
  implicit none
  private

  type, public :: ramet_group
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! The constants of c_processes.h.
  integer(c_int), parameter, public :: ramet_reduce_sum = 0, ramet_reduce_average = 1, ramet_reduce_product = 2, &
    ramet_reduce_min = 3, ramet_reduce_max = 4

  public :: ramet_group_address, ramet_group_new, ramet_group_free, ramet_barrier, ramet_all_reduce, ramet_broadcast
  public :: ramet_replicate, ramet_gradient_sync

  interface
    integer(c_int) function c_group_address(host, address, capacity) bind(c, name="ramet_group_address")
      import
      type(c_ptr), value :: host
      character(kind=c_char), intent(out) :: address(*)
      integer(c_int64_t), value :: capacity
    end function
    type(c_ptr) function c_group_new(address, rank, world_size, timeout) bind(c, name="ramet_group_new")
      import
      character(kind=c_char), intent(in) :: address(*)
      integer(c_int), value :: rank, world_size
      real(c_double), value :: timeout
    end function
    integer(c_int) function c_group_free(group) bind(c, name="ramet_group_free")
      import
      type(c_ptr), value :: group
    end function
    integer(c_int) function c_group_barrier(group) bind(c, name="ramet_group_barrier")
      import
      type(c_ptr), value :: group
    end function
    integer(c_int) function c_group_all_reduce(group, tensor, op) bind(c, name="ramet_group_all_reduce")
      import
      type(c_ptr), value :: group, tensor
      integer(c_int), value :: op
    end function
    integer(c_int) function c_group_broadcast(group, tensor, root) bind(c, name="ramet_group_broadcast")
      import
      type(c_ptr), value :: group, tensor
      integer(c_int), value :: root
    end function
    integer(c_int) function c_module_replicate(net, group) bind(c, name="ramet_module_replicate")
      import
      type(c_ptr), value :: net, group
    end function
    integer(c_int) function c_module_set_gradient_sync(net, on) bind(c, name="ramet_module_set_gradient_sync")
      import
      type(c_ptr), value :: net
      integer(c_int), value :: on
    end function
  end interface

contains

  ! An address of this host, with a port that is free now.
  function ramet_group_address(status) result(address)
    integer, intent(out), optional :: status
    character(256) :: address
    character(kind=c_char) :: letters(256)
    integer(c_int) :: code
    integer :: i
    address = ''
    code = c_group_address(c_null_ptr, letters, size(letters, kind=c_int64_t))
    if (code == 0) then
      do i = 1, size(letters)
        if (letters(i) == c_null_char) exit
        address(i:i) = letters(i)
      end do
    end if
    call ramet_settle(code, status)
  end function

  type(ramet_group) function ramet_group_new(address, rank, world_size, timeout, status) result(group)
    character(*), intent(in) :: address
    integer, intent(in) :: rank, world_size
    real(real64), intent(in) :: timeout
    integer, intent(out), optional :: status
    group%handle = c_group_new(trim(address) // c_null_char, int(rank, c_int), int(world_size, c_int), timeout)
    call ramet_settle(merge(0_c_int, 1_c_int, c_associated(group%handle)), status)
  end function

  subroutine ramet_group_free(group, status)
    type(ramet_group), intent(inout) :: group
    integer, intent(out), optional :: status
    call ramet_settle(c_group_free(group%handle), status)
    group%handle = c_null_ptr
  end subroutine

  subroutine ramet_barrier(group, status)
    type(ramet_group), intent(in) :: group
    integer, intent(out), optional :: status
    call ramet_settle(c_group_barrier(group%handle), status)
  end subroutine

  subroutine ramet_all_reduce(group, tensor, op, status)
    type(ramet_group), intent(in) :: group
    type(ramet_tensor), intent(in) :: tensor
    integer(c_int), intent(in) :: op
    integer, intent(out), optional :: status
    call ramet_settle(c_group_all_reduce(group%handle, tensor%handle, op), status)
  end subroutine

  subroutine ramet_broadcast(group, tensor, root, status)
    type(ramet_group), intent(in) :: group
    type(ramet_tensor), intent(in) :: tensor
    integer, intent(in) :: root
    integer, intent(out), optional :: status
    call ramet_settle(c_group_broadcast(group%handle, tensor%handle, int(root, c_int)), status)
  end subroutine

  subroutine ramet_replicate(net, group, status)
    type(ramet_module), intent(in) :: net
    type(ramet_group), intent(in) :: group
    integer, intent(out), optional :: status
    call ramet_settle(c_module_replicate(net%handle, group%handle), status)
  end subroutine

  subroutine ramet_gradient_sync(net, on, status)
    type(ramet_module), intent(in) :: net
    logical, intent(in) :: on
    integer, intent(out), optional :: status
    call ramet_settle(c_module_set_gradient_sync(net%handle, merge(1_c_int, 0_c_int, on)), status)
  end subroutine
end module ramet_processes
