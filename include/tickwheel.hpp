/*
 * tickwheel for C++17: services, timers and groups as objects, any callable as a callback,
 * std::chrono durations. Strands, limiters and schedulers are in tickwheel/layers.hpp. Header only;
 * the rules of tickwheel.h hold.
 *
 *     tickwheel::service service;
 *     tickwheel::timer timeout = service.schedule(30s, [&] { connection.close(); });
 *     ...
 *     timeout.cancel();
 *
 * Under C++20, timers that a std::stop_token cancels, and coroutines (GCC 11, Clang 15 or later):
 *
 *     while (bool passed = co_await service.after(1s))
 *             beat();
 *     std::optional<reply> r = co_await with_timeout(
 *         service, [&](std::stop_token stop) { return fetch(url, stop); }, 1s);
 *
 * Errors. An error that must not be overlooked throws std::system_error (generic category, the
 * negated errno of the C function): creating an object, scheduling, submitting. Each such call also
 * has a form with a std::error_code&, which does not throw; only a coroutine's wait has none. It is
 * for builds without exceptions, where the other form prints the error and aborts, and for paths on
 * which an overload (EAGAIN) is an everyday event. An ordinary outcome (too late to cancel) is a
 * value. std::bad_alloc from storing a callable is thrown by both forms.
 *
 * Callables. A callable is stored on the heap, one allocation for each schedule. It is destroyed
 * when its timer, task or job has ended: after the last run, on the thread that cancels, or at
 * close. The form schedule<&connection::on_timeout>(30s, connection) stores and allocates nothing.
 * A callable that throws ends the program, as in a std::thread.
 *
 * Owners. An object that goes ends what it owns: a timer is cancelled, a group's members, a
 * strand's tasks and a limiter's waiting jobs are, too. It then waits for a callback that runs,
 * unless that callback destroys the object. So the callback may refer to what is destroyed next.
 * A service outlives its timers, groups, strands, limiters and schedulers.
 *
 * Threads. Objects are moved, not copied. One timer object is used by one thread at a time. The
 * calls of a service, group, strand, limiter and scheduler may be used by any.
 */
#ifndef TICKWHEEL_HPP
#define TICKWHEEL_HPP

#if __cplusplus < 201703L
#error "tickwheel.hpp needs C++17: compile with -std=c++17 or later"
#else

#include "tickwheel.h"

#include "tickwheel/cpp/after.hpp"
#include "tickwheel/cpp/base.hpp"
#include "tickwheel/cpp/group.hpp"
#include "tickwheel/cpp/service.hpp"
#include "tickwheel/cpp/timer.hpp"

#endif
#endif
