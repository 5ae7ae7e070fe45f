! TorchScript files for Fortran 2008: based on ramet.f90 and the C functions that c_script.h describes.
!
!   net = ramet_script_load('net.pt')
!   y = ramet_forward(net, x)
module ramet_script
  use, intrinsic :: iso_c_binding
  use ramet
  implicit none
  private

  public :: ramet_script_load, ramet_script_forward, ramet_script_save

  interface
    type(c_ptr) function c_script_load(path, device) bind(c, name="ramet_script_load")
      import
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), value :: device
    end function
    integer(c_int) function c_script_forward(net, inputs, count, results, capacity, made) bind(c, name="ramet_script_forward")
      import
      type(c_ptr), value :: net
      type(c_ptr), intent(in) :: inputs(*)
      integer(c_int64_t), value :: count
      type(c_ptr), intent(out) :: results(*)
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(out) :: made
    end function
    integer(c_int) function c_script_save(net, path) bind(c, name="ramet_script_save")
      import
      type(c_ptr), value :: net
      character(kind=c_char), intent(in) :: path(*)
    end function
  end interface

contains

  ! device: where the file's tensors go ('cpu', 'cuda:0'); without it where the file says.
  type(ramet_module) function ramet_script_load(path, device, status) result(net)
    character(*), intent(in) :: path
    character(*), intent(in), optional :: device
    integer, intent(out), optional :: status
    character(kind=c_char), target :: name(64)
    integer :: i
    if (present(device)) then
      name = c_null_char
      do i = 1, min(len_trim(device), size(name) - 1)
        name(i) = device(i:i)
      end do
      net%handle = c_script_load(trim(path) // c_null_char, c_loc(name))
    else
      net%handle = c_script_load(trim(path) // c_null_char, c_null_ptr)
    end if
    call ramet_settle(merge(0_c_int, 1_c_int, c_associated(net%handle)), status)
  end function

  ! The tensors of the result of several tensors; made: how many there are.
  subroutine ramet_script_forward(net, inputs, results, made, status)
    type(ramet_module), intent(in) :: net
    type(ramet_tensor), intent(in) :: inputs(:)
    type(ramet_tensor), intent(inout) :: results(:)
    integer, intent(out) :: made
    integer, intent(out), optional :: status
    type(c_ptr) :: given(size(inputs)), got(size(results))
    integer(c_int64_t) :: count
    integer(c_int) :: code
    integer :: i
    do i = 1, size(inputs)
      given(i) = inputs(i)%handle
    end do
    code = c_script_forward(net%handle, given, size(inputs, kind=c_int64_t), got, size(results, kind=c_int64_t), count)
    made = 0
    if (code == 0) then
      made = int(count)
      do i = 1, made
        results(i)%handle = got(i)
      end do
    end if
    call ramet_settle(code, status)
  end subroutine

  subroutine ramet_script_save(net, path, status)
    type(ramet_module), intent(in) :: net
    character(*), intent(in) :: path
    integer, intent(out), optional :: status
    call ramet_settle(c_script_save(net%handle, trim(path) // c_null_char), status)
  end subroutine
end module ramet_script
