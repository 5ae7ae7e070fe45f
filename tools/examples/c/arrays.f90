! Fortran's arrays as tensors: whose index is whose, what is wrong, files. Each line that fails says which.
program arrays
  use, intrinsic :: iso_fortran_env, only: real32, real64, int64
  use ramet
  implicit none
  real(real64), target :: a(2, 3), back(2, 3), turned(3, 2), cube(2, 3, 2), cube_back(2, 3, 2)
  real(real32), target :: single(2, 3)
  integer(int64), target :: classes(2)
  type(ramet_tensor) :: t, v, row, scores, labels, loss
  type(ramet_module) :: net, twin
  type(ramet_optimizer) :: sgd
  character(*), parameter :: linear = '{"type": "Linear", "in_features": 2, "out_features": 3, "dtype": "float64"}'
  integer :: i, j, status

  do j = 1, 3
    do i = 1, 2
      a(i, j) = 10 * i + j
      cube(i, j, :) = [100 * i + 10 * j + 1, 100 * i + 10 * j + 2]
    end do
  end do

  ! The same index on both sides.
  t = ramet_view(a)
  call ramet_get(t, back)
  call check(all(back == a), 'an array comes back')
  call ramet_get(t, turned, reversed=.true.)
  call check(all(turned == transpose(a)), 'reversed, it is the transpose')
  call ramet_get(t, single)
  call check(all(single == real(a, real32)), 'another kind of real')
  ! The tensor is the array.
  a(1, 1) = -5
  call ramet_get(t, back)
  call check(back(1, 1) == -5, 'what Fortran writes the tensor shows')
  v = ramet_view(back)
  call ramet_assign(t, v)
  back = 0
  call ramet_assign(t, v)
  call check(all(a == 0), 'what the tensor is given Fortran sees')
  call ramet_free(t)
  call ramet_free(v)
  t = ramet_view(cube)
  call ramet_get(t, cube_back)
  call check(all(cube_back == cube), 'three dimensions')
  call ramet_free(t)

  ! A column of a(features, samples) is a sample.
  a = reshape([1, 2, 3, 4, 5, 6], [2, 3])
  call ramet_seed(1)
  net = ramet_module_new(linear)
  t = ramet_view(a, reversed=.true.)
  row = ramet_forward(net, t)
  call ramet_get(row, cube(1, :, :), status=status)
  call check(status /= 0 .and. index(ramet_last_error(), 'got a section with gaps') > 0, 'a section is no memory')
  twin = ramet_module_new(linear)
  call ramet_save(net, 'arrays.safetensors')
  call ramet_load(twin, 'arrays.safetensors')
  call check(same(net, twin, t), 'a file carries the weights')
  call ramet_free(row)

  ! A classifier's step makes its loss smaller.
  classes = [2_int64, 0_int64]
  labels = ramet_view(classes)
  call ramet_free(t)
  t = ramet_view(a(:, 1:2), reversed=.true.)
  sgd = ramet_optimizer_new(net, 'SGD', '{"lr": 0.1}')
  scores = ramet_forward(net, t)
  loss = ramet_cross_entropy_loss(scores, labels)
  cube(1, 1, 1) = ramet_item(loss)
  call ramet_backward(loss)
  call ramet_step(sgd)
  call ramet_free(scores)
  call ramet_free(loss)
  scores = ramet_forward(net, t)
  loss = ramet_cross_entropy_loss(scores, labels)
  call check(ramet_item(loss) < cube(1, 1, 1), 'a step learns')
  call ramet_set_lr(sgd, 0.5_real64)
  call check(ramet_lr(sgd) == 0.5_real64, 'the rate')
  call ramet_free(scores)
  call ramet_free(loss)
  call ramet_free(labels)
  call ramet_free(t)

  ! What is wrong is a status and a text.
  row = ramet_forward(net, scores, status)
  call check(status /= 0 .and. index(ramet_last_error(), 'input: expected a tensor, got NULL') > 0, 'a freed handle')
  twin%handle = net%handle
  t = ramet_tensor(net%handle)
  loss = ramet_sum(t, status)
  call check(status /= 0 .and. index(ramet_last_error(), 'expected a tensor, got a module') > 0, 'a module for a tensor')
  twin = ramet_module_new('{"layers": [{"type": "Linear", "in_features": -3, "out_features": 1}]}', status=status)
  call check(status /= 0 .and. &
             index(ramet_last_error(), 'layers[0].in_features: expected a positive integer, got -3') > 0, 'a description')
  call ramet_free(sgd)
  call ramet_free(net)
  print '(a)', 'arrays: OK'

contains

  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (.not. ok) then
      print '(2a)', 'arrays: FAILED: ', what
      print '(a)', ramet_last_error()
      error stop 1
    end if
  end subroutine

  logical function same(one, two, input)
    type(ramet_module), intent(in) :: one, two
    type(ramet_tensor), intent(in) :: input
    real(real64), target :: first(3, 3), second(3, 3)
    type(ramet_tensor) :: y
    y = ramet_forward(one, input)
    call ramet_get(y, first)
    call ramet_free(y)
    y = ramet_forward(two, input)
    call ramet_get(y, second)
    call ramet_free(y)
    same = all(first == second) .and. any(first /= 0)
  end function
end program
