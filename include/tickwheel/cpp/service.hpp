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
 * A service. It is closed with TW_CLOSE_DROP and freed when it goes. That must not happen in one of
 * its own callbacks, nor while strands, limiters and the like exist: they would keep it for good.
 */
class service
{
      public:
	service() : service(tw_service_config{})
	{
	}
	explicit service(const tw_service_config &config)
	{
		std::error_code error;
		*this = service(config, error);
		detail::check(error, "tickwheel: service");
	}

	/*
	 * After an error it is empty: get() is nullptr, and schedules return EINVAL. config.size
	 * may be left 0.
	 */
	service(tw_service_config config, std::error_code &error) noexcept
	{
		tw_service *made = nullptr;
		config.size = sizeof config;
		error = detail::code(tw_service_create(&made, &config));
		service_.reset(made);
	}

	tw_service *get() const noexcept
	{
		return service_.get();
	}
	time_point now() const noexcept
	{
		return detail::now_of(get());
	}

	/* f() after delay, or at a deadline. */
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f)
	{
		return schedule(in(detail::delay_ns(delay)), std::forward<F>(f));
	}
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				     std::error_code &error)
	{
		return schedule(in(detail::delay_ns(delay)), std::forward<F>(f), error);
	}
	template <class F> [[nodiscard]] timer schedule_at(time_point deadline, F &&f)
	{
		return schedule(at(deadline), std::forward<F>(f));
	}
	template <class F>
	[[nodiscard]] timer schedule_at(time_point deadline, F &&f, std::error_code &error)
	{
		return schedule(at(deadline), std::forward<F>(f), error);
	}

	/* (object.*Method)() after delay: nothing is stored. The object must outlive the timer. */
	template <auto Method, class Rep, class Period, class T>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, T &object)
	{
		std::error_code error;
		timer made = schedule<Method>(delay, object, error);
		detail::check(error, "tickwheel: schedule");
		return made;
	}
	template <auto Method, class Rep, class Period, class T>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, T &object,
				     std::error_code &error) noexcept
	{
		tw_timer handle = {0};
		error = detail::code(tw_schedule(get(), detail::delay_ns(delay),
						 detail::call_method<Method, T>,
						 std::addressof(object), &handle));
		return timer(get(), handle);
	}

	/*
	 * f() each period, the first time after one. With TW_FIXED_DELAY the next run comes a
	 * period after the last one has returned.
	 */
	template <class Rep, class Period, class F>
	[[nodiscard]] timer every(std::chrono::duration<Rep, Period> period, F &&f,
				  tw_period_mode mode = TW_FIXED_RATE)
	{
		std::error_code error;
		timer made = every(period, std::forward<F>(f), error, mode);
		detail::check(error, "tickwheel: every");
		return made;
	}
	template <class Rep, class Period, class F>
	[[nodiscard]] timer every(std::chrono::duration<Rep, Period> period, F &&f,
				  std::error_code &error, tw_period_mode mode = TW_FIXED_RATE)
	{
		tw_period series = {};
		series.size = sizeof series;
		series.first_ns = series.period_ns = detail::delay_ns(period);
		series.mode = mode;
		tw_task task = {};
		task.period = &series;
		return schedule(task, std::forward<F>(f), error);
	}

	/*
	 * A persistent timer, disarmed: timer::reset has f() run once, timer::disarm takes that
	 * back, both as often as you like. It ends with its owner.
	 */
	template <class F> [[nodiscard]] timer persistent(F &&f)
	{
		std::error_code error;
		timer made = persistent(std::forward<F>(f), error);
		detail::check(error, "tickwheel: persistent");
		return made;
	}
	template <class F> [[nodiscard]] timer persistent(F &&f, std::error_code &error)
	{
		tw_task task = {};
		task.flags = TW_TASK_PERSISTENT;
		task.when_ns = TW_NEVER;
		return schedule(task, std::forward<F>(f), error);
	}

	/* A task with any options; its fn, arg, release and size are filled in. */
	template <class F> [[nodiscard]] timer schedule(const tw_task &task, F &&f)
	{
		std::error_code error;
		timer made = schedule(task, std::forward<F>(f), error);
		detail::check(error, "tickwheel: schedule");
		return made;
	}
	template <class F> [[nodiscard]] timer schedule(tw_task task, F &&f, std::error_code &error)
	{
		return timer(get(),
			     detail::schedule_callable(get(), task, std::forward<F>(f), error));
	}

#if defined(__cpp_lib_jthread)
	/* A stop request cancels the timer; one that was made before keeps it from running. */
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				     std::stop_token stop)
	{
		std::error_code error;
		timer made = schedule(delay, std::forward<F>(f), std::move(stop), error);
		detail::check(error, "tickwheel: schedule");
		return made;
	}
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				     std::stop_token stop, std::error_code &error)
	{
		return timer(get(), detail::schedule_stoppable(get(), detail::delay_ns(delay),
							       std::forward<F>(f), std::move(stop),
							       error));
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
	void close(tw_close_mode mode, std::chrono::duration<Rep, Period> timeout)
	{
		detail::check(
		    detail::code(tw_service_close(get(), mode, detail::timeout_ns(timeout))),
		    "tickwheel: close");
	}
	template <class Rep, class Period>
	void close(tw_close_mode mode, std::chrono::duration<Rep, Period> timeout,
		   std::error_code &error) noexcept
	{
		error = detail::code(tw_service_close(get(), mode, detail::timeout_ns(timeout)));
	}

      private:
	struct destroy {
		void operator()(tw_service *s) const noexcept
		{
			static_cast<void>(tw_service_destroy(s));
		}
	};

	static tw_task in(std::uint64_t delay_ns) noexcept
	{
		tw_task task = {};
		task.when_ns = delay_ns;
		return task;
	}
	static tw_task at(time_point deadline) noexcept
	{
		tw_task task = in(detail::instant_ns(deadline));
		task.flags = TW_TASK_AT;
		return task;
	}

	std::unique_ptr<tw_service, destroy> service_;
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
