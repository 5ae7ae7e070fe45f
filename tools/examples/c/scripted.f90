! A model that Python trained and wrote with torch.jit.save(): run, trained on and written for Python again.
! usage: scripted FILE      (inputs [rows, 5], results [rows, 3]: tests/nn/script/goldens/mlp_scripted.pt)
program scripted
  use, intrinsic :: iso_fortran_env, only: real32
  use ramet
  use ramet_script
  implicit none
  real(real32), target :: rows(5, 4), before(3, 4), after(3, 4)
  type(ramet_module) :: net, again
  type(ramet_optimizer) :: adam
  type(ramet_tensor) :: x, y, loss, results(2)
  character(1024) :: path
  double precision :: first, last
  integer :: made, step, status

  call get_command_argument(1, path)
  if (len_trim(path) == 0) then
    print '(a)', 'usage: scripted FILE'
    stop
  end if
  net = ramet_script_load(path)
  rows = reshape([(sin(real(step, real32)), step = 1, 20)], [5, 4])
  x = ramet_view(rows, reversed=.true.)              ! a column is a row of the batch
  adam = ramet_optimizer_new(net, 'Adam', '{"lr": 0.05}')
  do step = 1, 20
    call ramet_zero_grad(adam)
    y = ramet_forward(net, x)
    loss = ramet_mean(y)
    last = ramet_item(loss)
    if (step == 1) first = last
    call ramet_backward(loss)
    call ramet_step(adam)
    call ramet_free(y)
    call ramet_free(loss)
  end do
  call check(last < first, 'training makes the loss smaller')

  call ramet_script_save(net, 'scripted.pt')
  again = ramet_script_load('scripted.pt')
  call ramet_script_forward(again, [x], results, made)
  call check(made == 1, 'one result')
  call ramet_get(results(1), before, reversed=.true.)
  y = ramet_forward(net, x)
  call ramet_get(y, after, reversed=.true.)
  call check(all(before == after), 'a file carries the code and the weights')
  again = ramet_script_load('no such file.pt', status=status)
  call check(status /= 0 .and. index(ramet_last_error(), 'no such file.pt') > 0, 'a file that is not there is named')
  print '(a)', 'OK: scripted'

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(2a)', 'FAILED: ', what
    error stop 1
  end subroutine
end program scripted
