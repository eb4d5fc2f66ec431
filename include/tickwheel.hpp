/*
 * tickwheel for C++17, header only: services, timers and groups as objects, any callable as a
 * callback, std::chrono durations. The rules of tickwheel.h hold.
 *
 *     tickwheel::service service;
 *     tickwheel::timer timeout = service.schedule(30s, [&] { connection.close(); });
 *     ...
 *     timeout.cancel();
 *
 * Errors. Calls throw std::system_error (generic category, the negated errno of the C function). A
 * call that takes an on_error can be given a std::error_code in place of that; it then throws only
 * std::bad_alloc, from storing a callable. Without exceptions an error that would be thrown is
 * printed, and the program aborts. An ordinary outcome (too late to cancel) is a value.
 *
 * Callables are stored on the heap, one allocation for each, and destroyed when their timer, task
 * or job has ended. schedule<&connection::on_timeout>(30s, connection) stores nothing. A callable
 * that throws ends the program.
 *
 * Owners. An object that goes ends what it owns: a timer, a group's members, a strand's tasks, a
 * limiter's waiting jobs. It waits for a callback that runs, unless that callback destroys the
 * object. A service outlives its timers, groups, strands, limiters and schedulers.
 *
 * Threads. Objects are moved, not copied. One timer object is used by one thread at a time; a
 * service, group, strand, limiter or scheduler by any.
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
