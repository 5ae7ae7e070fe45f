! A time stepper that learns what it does not resolve, while it runs.
!
! The two-scale system of Lorenz (1996): slow variables X_k on a circle, each coupled to ten fast ones Y_jk:
!
!   dX_k/dt  = -X_{k-1} (X_{k-2} - X_{k+1}) - X_k + F - (h c / b) sum_j Y_jk
!   dY_jk/dt = -c b Y_{j+1} (Y_{j+2} - Y_{j-1}) - c Y_jk + (h c / b) X_k
!
! A coarse model has the X alone. What the Y do to X_k is to come from a closure: a small network of X_k, trained by one step of
! Adam after each time step of the full system, on the values that are there anyway. Then the coarse model forecasts with it, and
! without it.
program closure
  use, intrinsic :: iso_fortran_env, only: real32, real64
  use ramet
  implicit none
  integer, parameter :: slow = 36, fast = 10, training = 3000, unseen = 400, forecast = 200
  real(real64), parameter :: dt = 0.002_real64, force = 10, h = 1, c = 10, b = 10
  real(real64) :: x(slow), y(fast, slow), with(slow), without(slow), error_with, error_without, scatter, misfit
  real(real64) :: start, finish
  ! What the network sees, a sample in each column; and what it is to say.
  real(real32), target :: features(1, slow), wanted(1, slow), said(1, slow)
  type(ramet_module) :: net
  type(ramet_optimizer) :: adam
  type(ramet_tensor) :: inputs, goals
  integer :: step, k

  call ramet_seed(1)
  net = ramet_module_new('{"layers": [{"type": "Linear", "in_features": 1, "out_features": 16}, {"type": "Tanh"},' // &
                         ' {"type": "Linear", "in_features": 16, "out_features": 16}, {"type": "Tanh"},' // &
                         ' {"type": "Linear", "in_features": 16, "out_features": 1}]}')
  adam = ramet_optimizer_new(net, 'Adam', '{"lr": 0.005}')
  ! Over the arrays, once: [samples, features] to the network, and it sees what the stepper writes there.
  inputs = ramet_view(features, reversed=.true.)
  goals = ramet_view(wanted, reversed=.true.)

  do k = 1, slow
    x(k) = force * sin(0.7_real64 * k * k)
    y(:, k) = 0.1_real64 * x(k) * [(cos(1.3_real64 * step * k), step=1, fast)]
  end do
  do step = 1, 1000  ! to where it belongs
    call advance(x, y)
  end do

  call cpu_time(start)
  do step = 1, training
    call advance(x, y)
    call show(x)
    wanted(1, :) = real(coupling(y) / 10, real32)
    call learn(adam)
    if (step == training / 2) call ramet_set_lr(adam, 0.001_real64)
  end do
  call cpu_time(finish)

  ! On values that it was not trained with: which part of the scatter is left?
  scatter = 0
  misfit = 0
  do step = 1, unseen
    call advance(x, y)
    with = closed(x)
    without = coupling(y)
    misfit = misfit + sum((with - without)**2)
    scatter = scatter + sum((without - sum(without) / slow)**2)
  end do
  print '(a, f6.3)', 'closure: part of the coupling that the network explains  ', 1 - misfit / scatter

  ! A forecast by the coarse model, from here.
  with = x
  without = x
  do step = 1, forecast
    call advance(x, y)
    call advance_coarse(with, .true.)
    call advance_coarse(without, .false.)
  end do
  error_with = sqrt(sum((with - x)**2) / slow)
  error_without = sqrt(sum((without - x)**2) / slow)
  print '(a, f5.2, 2(a, f6.3), a)', 'closure: error of X after ', forecast * dt, ' time units: ', &
    error_with, ' with it, ', error_without, ' without'
  print '(a, f6.3, a)', 'closure: a step of full system and training took ', 1000 * (finish - start) / training, ' ms'

  call ramet_free(inputs)
  call ramet_free(goals)
  call ramet_free(adam)
  call ramet_free(net)
  if (1 - misfit / scatter < 0.5 .or. error_with > error_without / 2) error stop 'closure: it has not learned'

contains

  subroutine learn(optimizer)
    type(ramet_optimizer), intent(in) :: optimizer
    type(ramet_tensor) :: outputs, loss
    outputs = ramet_forward(net, inputs)
    loss = ramet_mse_loss(outputs, goals)
    call ramet_zero_grad(optimizer)
    call ramet_backward(loss)
    call ramet_step(optimizer)
    call ramet_free(loss)
    call ramet_free(outputs)
  end subroutine

  subroutine show(at)
    real(real64), intent(in) :: at(:)
    features(1, :) = real(at / 10, real32)
  end subroutine

  ! What the network says that the fast variables do.
  function closed(at) result(to)
    real(real64), intent(in) :: at(:)
    real(real64) :: to(slow)
    type(ramet_tensor) :: outputs
    call show(at)
    call ramet_record(.false.)
    outputs = ramet_forward(net, inputs)
    call ramet_record(.true.)
    call ramet_get(outputs, said, reversed=.true.)
    call ramet_free(outputs)
    to = 10 * real(said(1, :), real64)
  end function

  function coupling(of) result(to)
    real(real64), intent(in) :: of(:, :)
    real(real64) :: to(slow)
    to = -h * c / b * sum(of, dim=1)
  end function

  function slow_rate(at) result(rate)
    real(real64), intent(in) :: at(:)
    real(real64) :: rate(slow)
    rate = -cshift(at, -1) * (cshift(at, -2) - cshift(at, 1)) - at + force
  end function

  ! The fast variables are one circle.
  function fast_rate(at, of) result(rate)
    real(real64), intent(in) :: at(:), of(:, :)
    real(real64) :: rate(fast, slow), ring(fast * slow)
    ring = reshape(of, [fast * slow])
    ring = -c * b * cshift(ring, 1) * (cshift(ring, 2) - cshift(ring, -1)) - c * ring
    rate = reshape(ring, [fast, slow]) + h * c / b * spread(at, 1, fast)
  end function

  ! Runge and Kutta's fourth order.
  subroutine advance(at, of)
    real(real64), intent(inout) :: at(:), of(:, :)
    real(real64) :: kx(slow, 4), ky(fast, slow, 4)
    real(real64), parameter :: part(4) = [0.0_real64, 0.5_real64, 0.5_real64, 1.0_real64]
    real(real64) :: xs(slow), ys(fast, slow)
    integer :: stage
    do stage = 1, 4
      xs = at
      ys = of
      if (stage > 1) then
        xs = xs + part(stage) * dt * kx(:, stage - 1)
        ys = ys + part(stage) * dt * ky(:, :, stage - 1)
      end if
      kx(:, stage) = slow_rate(xs) + coupling(ys)
      ky(:, :, stage) = fast_rate(xs, ys)
    end do
    at = at + dt / 6 * (kx(:, 1) + 2 * kx(:, 2) + 2 * kx(:, 3) + kx(:, 4))
    of = of + dt / 6 * (ky(:, :, 1) + 2 * ky(:, :, 2) + 2 * ky(:, :, 3) + ky(:, :, 4))
  end subroutine

  ! Heun's second order: two calls of the network.
  subroutine advance_coarse(at, use_closure)
    real(real64), intent(inout) :: at(:)
    logical, intent(in) :: use_closure
    real(real64) :: first(slow), second(slow)
    first = slow_rate(at)
    if (use_closure) first = first + closed(at)
    second = slow_rate(at + dt * first)
    if (use_closure) second = second + closed(at + dt * first)
    at = at + dt / 2 * (first + second)
  end subroutine
end program
