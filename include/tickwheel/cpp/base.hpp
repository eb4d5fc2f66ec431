/* Times, errors and callables. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_BASE_HPP
#define TICKWHEEL_CPP_BASE_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include "../service.h"

namespace tickwheel
{

/* The results of a cancel: enum tw_outcome says what they mean. */
enum class outcome {
	cancelled = TW_CANCELLED,
	gone = TW_GONE,
	running = TW_RUNNING,
	finished = TW_FINISHED,
	self = TW_SELF,
	disarmed = TW_DISARMED
};

/* No end to waiting. */
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/*
 * The scale of a service's deadlines: service::now() reads it. There is no now() without a service,
 * and no conversion from another clock, since a service may run on any (tw_clock).
 */
struct clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<clock>;
	static constexpr bool is_steady = true;
};
using time_point = clock::time_point;

namespace detail
{

/* Rounded up, so nothing runs early. A negative time is due immediately. The library refuses one
 * that is too long. */
template <class Rep, class Period> std::uint64_t delay_ns(std::chrono::duration<Rep, Period> d)
{
	using namespace std::chrono;
	if (!(d > d.zero()))
		return 0;
	if (duration<long double, std::nano>(d).count() > static_cast<long double>(TW_MAX_DELAY_NS))
		return UINT64_MAX;
	return static_cast<std::uint64_t>(std::chrono::ceil<nanoseconds>(d).count());
}

template <class Rep, class Period> std::uint64_t timeout_ns(std::chrono::duration<Rep, Period> d)
{
	return delay_ns(d) > TW_MAX_DELAY_NS ? TW_FOREVER : delay_ns(d);
}

/* For the functions that take an instant. What lies before the scale's zero is due immediately. */
inline std::uint64_t instant_ns(time_point at) noexcept
{
	return static_cast<std::uint64_t>(std::max(at, time_point()).time_since_epoch().count());
}

inline time_point now_of(const tw_service *service) noexcept
{
	return time_point(
	    std::chrono::nanoseconds(static_cast<std::int64_t>(tw_service_now(service))));
}

inline std::error_code code(int negative_errno) noexcept
{
	return negative_errno < 0 ? std::error_code(-negative_errno, std::generic_category())
				  : std::error_code();
}

inline void check(const std::error_code &error, const char *what)
{
	if (!error)
		return;
#if defined(__cpp_exceptions)
	throw std::system_error(error, what);
#else
	std::fprintf(stderr, "%s: %s\n", what, error.message().c_str());
	std::abort();
#endif
}

/* The result of a cancel. In a forked child (-EPERM) nothing runs either. */
inline outcome answer(int r) noexcept
{
	return r < 0 ? outcome::gone : static_cast<outcome>(r);
}

/* What a callable that returns void or int means for a C function. */
template <class F> int result_of(F &&f)
{
	if constexpr (std::is_void_v<decltype(f())>)
		return f(), 0;
	else
		return f();
}

template <class F> struct callable {
	F f;
	static void run(void *self) noexcept
	{
		static_cast<callable *>(self)->f();
	}
	static void release(void *self, enum tw_fate) noexcept
	{
		delete static_cast<callable *>(self);
	}
	static void run_once(void *self) noexcept
	{
		std::unique_ptr<callable> kept(static_cast<callable *>(self));
		kept->f();
	}
};

template <class F> std::unique_ptr<callable<std::decay_t<F>>> keep(F &&f)
{
	static_assert(std::is_invocable_v<std::decay_t<F> &>,
		      "a callback is called without arguments");
	return std::unique_ptr<callable<std::decay_t<F>>>(
	    new callable<std::decay_t<F>>{std::forward<F>(f)});
}

/* Schedules f with a task's options. The timer owns it until its end. */
template <class F>
tw_timer schedule_callable(tw_service *service, tw_task task, F &&f, std::error_code &error)
{
	using stored = callable<std::decay_t<F>>;
	auto kept = keep(std::forward<F>(f));
	tw_timer handle = {0};
	task.size = sizeof task;
	task.fn = stored::run;
	task.arg = kept.get();
	task.release = stored::release;
	error = code(tw_schedule_task(service, &task, &handle));
	if (!error)
		static_cast<void>(kept.release());
	return handle;
}

template <auto Method, class T> void call_method(void *object) noexcept
{
	(static_cast<T *>(object)->*Method)();
}

} // namespace detail

} // namespace tickwheel

#endif
