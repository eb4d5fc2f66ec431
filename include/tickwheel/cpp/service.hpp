/* tickwheel::service. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_SERVICE_HPP
#define TICKWHEEL_CPP_SERVICE_HPP

#include <memory>
#include <system_error>
#include <utility>

#include "../service.h"
#include "after.hpp"
#include "base.hpp"
#include "stoppable.hpp"
#include "timer.hpp"

namespace tickwheel
{

/*
 * A service that goes is closed with TW_CLOSE_DROP and freed: not in one of its own callbacks, nor
 * while strands, limiters and the like exist, which would keep it for good.
 */
class service : public detail::owner<tw_service, tw_service_destroy>
{
      public:
	service() : service(tw_service_config{})
	{
	}
	/*
	 * After an error it is empty: get() is nullptr, and schedules return EINVAL. config.size
	 * may be left 0.
	 */
	explicit service(tw_service_config config, on_error error = {})
	{
		config.size = sizeof config;
		create(error, "tickwheel: service", tw_service_create, &config);
	}

	time_point now() const noexcept
	{
		return detail::now_of(get());
	}

	/* f() after delay, or at a deadline. */
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				     on_error error = {})
	{
		return schedule(detail::task_in(detail::delay_ns(delay)), std::forward<F>(f),
				error);
	}
	template <class F>
	[[nodiscard]] timer schedule_at(time_point deadline, F &&f, on_error error = {})
	{
		return schedule(detail::task_at(deadline), std::forward<F>(f), error);
	}

	/* (object.*Method)() after delay: nothing is stored. The object must outlive the timer. */
	template <auto Method, class Rep, class Period, class T>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, T &object,
				     on_error error = {})
	{
		tw_fn *call = [](void *self) noexcept { (static_cast<T *>(self)->*Method)(); };
		tw_timer handle = {0};
		error(tw_schedule(get(), detail::delay_ns(delay), call, std::addressof(object),
				  &handle),
		      "tickwheel: schedule");
		return timer(get(), handle);
	}

	/*
	 * f() each period, the first time after one. With TW_FIXED_DELAY the next run is due a
	 * period after the last one has returned.
	 */
	template <class Rep, class Period, class F>
	[[nodiscard]] timer every(std::chrono::duration<Rep, Period> period, F &&f,
				  tw_period_mode mode = TW_FIXED_RATE)
	{
		return every(period, std::forward<F>(f), on_error(), mode);
	}
	template <class Rep, class Period, class F>
	[[nodiscard]] timer every(std::chrono::duration<Rep, Period> period, F &&f, on_error error,
				  tw_period_mode mode = TW_FIXED_RATE)
	{
		tw_period series = detail::period_of(detail::delay_ns(period), mode);
		tw_task task = {};
		task.period = &series;
		return schedule(task, std::forward<F>(f), error);
	}

	/*
	 * A persistent timer, disarmed: timer::reset arms it for one run of f, timer::disarm takes
	 * that back. It ends with its owner.
	 */
	template <class F> [[nodiscard]] timer persistent(F &&f, on_error error = {})
	{
		tw_task task = detail::task_in(TW_NEVER);
		task.flags = TW_TASK_PERSISTENT;
		return schedule(task, std::forward<F>(f), error);
	}

	/* A task with any options; its fn, arg, release and size are filled in. */
	template <class F>
	[[nodiscard]] timer schedule(const tw_task &task, F &&f, on_error error = {})
	{
		return timer(get(), detail::schedule_task(get(), task, std::forward<F>(f), error));
	}

#if defined(__cpp_lib_jthread)
	/* A stop request cancels the timer; one that was made before keeps it from running. */
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				     std::stop_token stop, on_error error = {})
	{
		using stored = detail::stoppable<std::decay_t<F>>;
		return timer(get(), stored::schedule(get(), detail::delay_ns(delay),
						     std::forward<F>(f), std::move(stop), error));
	}
#endif

#if defined(__cpp_impl_coroutine)
	/* For `co_await`: after.hpp. */
	template <class Rep, class Period>
	[[nodiscard]] after_awaitable after(std::chrono::duration<Rep, Period> delay) const noexcept
	{
		return after_awaitable(get(), delay);
	}
	template <class Rep, class Period>
	[[nodiscard]] after_awaitable after(std::chrono::duration<Rep, Period> delay,
					    std::stop_token stop) const noexcept
	{
		return after(delay).stop_when(std::move(stop));
	}
	[[nodiscard]] after_awaitable until(time_point deadline) const noexcept
	{
		return after_awaitable(get(), deadline);
	}
#endif

	/* As tw_service_close: ETIMEDOUT, EDEADLK. */
	template <class Rep, class Period>
	void close(tw_close_mode mode, std::chrono::duration<Rep, Period> timeout,
		   on_error error = {})
	{
		error(tw_service_close(get(), mode, detail::timeout_ns(timeout)),
		      "tickwheel: close");
	}
};

#if defined(__cpp_impl_coroutine)
/* with_timeout of after.hpp, by the service itself. */
template <class F, class Rep, class Period>
auto with_timeout(const service &of, F f, std::chrono::duration<Rep, Period> limit)
{
	return with_timeout(of.get(), std::move(f), limit);
}
#endif

} // namespace tickwheel

#endif
