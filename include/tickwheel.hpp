/*
 * tickwheel for C++17: a service and its timers as objects, any callable as a callback, std::chrono durations. Header only; the rules of
 * tickwheel.h hold.
 *
 *     tickwheel::service service;
 *     tickwheel::timer timeout = service.schedule(30s, [&] { connection.close(); });
 *     ...
 *     timeout.cancel();
 *
 * Errors. What must not be overlooked throws std::system_error (generic category, the negated errno of the C function): making a
 * service, scheduling. Each such call also comes with a std::error_code& as its last argument and then does not throw, as in the
 * standard's filesystem and in Asio: for builds without exceptions, and for paths on which an overload (EAGAIN) is an everyday
 * thing. What is an ordinary outcome (too late to cancel) is a value. std::bad_alloc from storing a callable is thrown by both forms.
 *
 * A callable is stored on the heap, one allocation for each schedule, and destroyed when its timer has come to its end: after
 * its last run, on the thread that cancels, or at close. The form schedule<&connection::on_timeout>(30s, connection) stores nothing
 * and allocates nothing. A callable that throws ends the program, as in a std::thread.
 *
 * A tickwheel::timer owns its timer: when it goes, the timer is cancelled, and a callback that runs is waited for (unless it is that
 * callback that destroys it), so what the callback refers to may be destroyed next. detach() lets the timer go on without an owner. A
 * service outlives its owned timers. Objects are moved, not copied; one object is used by one thread at a time, but a service's
 * schedule, every and now by any.
 */
#ifndef TICKWHEEL_HPP
#define TICKWHEEL_HPP

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include "tickwheel.h"

namespace tickwheel
{

/* What the answers of cancel mean stands at enum tw_outcome. */
enum class outcome {
	cancelled = TW_CANCELLED,
	gone = TW_GONE,
	running = TW_RUNNING,
	finished = TW_FINISHED,
	self = TW_SELF
};

/* No end to waiting. */
inline constexpr std::chrono::nanoseconds forever = std::chrono::nanoseconds::max();

/* The scale of a service's deadlines; there is no now() without a service. */
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

/* Rounded up, so that nothing runs early; what is negative is due at once; what is too long is refused by the library. */
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
};

template <auto Method, class T> void call_method(void *object) noexcept
{
	(static_cast<T *>(object)->*Method)();
}

} // namespace detail

/* A timer that is cancelled when its owner goes. */
class timer
{
      public:
	timer() noexcept = default;
	timer(tw_service *service, tw_timer handle) noexcept : service_(service), handle_(handle)
	{
	}
	timer(timer &&other) noexcept : service_(other.service_), handle_(other.detach())
	{
	}
	timer &operator=(timer &&other) noexcept
	{
		if (this != &other) {
			cancel_wait();
			service_ = other.service_;
			handle_ = other.detach();
		}
		return *this;
	}
	timer(const timer &) = delete;
	timer &operator=(const timer &) = delete;
	~timer()
	{
		cancel_wait();
	}

	/* Never waits. outcome::running: its callback runs right now. */
	outcome cancel() noexcept
	{
		return answer(service_ ? tw_cancel(service_, handle_) : TW_GONE);
	}

	/* After any answer but running (the timeout) and self (called by its own callback) nothing of it runs any more. */
	outcome cancel_wait() noexcept
	{
		return answer(service_ ? tw_cancel_wait(service_, handle_, TW_FOREVER) : TW_GONE);
	}
	template <class Rep, class Period>
	outcome cancel_wait(std::chrono::duration<Rep, Period> timeout)
	{
		return answer(service_
				  ? tw_cancel_wait(service_, handle_, detail::timeout_ns(timeout))
				  : TW_GONE);
	}

	/*
	 * Due after `delay` from now, or at `deadline`, instead. False: too late, it is gone or runs (from its own callback it is re-armed),
	 * or this object owns none.
	 * Other errors (the service is closed, no room) throw.
	 */
	template <class Rep, class Period> bool reset(std::chrono::duration<Rep, Period> delay)
	{
		return service_ && moved(tw_reset(service_, handle_, detail::delay_ns(delay)));
	}
	bool reset_at(time_point deadline)
	{
		return service_ &&
		       moved(tw_reset_at(service_, handle_,
					 detail::delay_ns(deadline.time_since_epoch())));
	}

	/* The same, but only if that is earlier. False also if it is due at that tick, or before. */
	template <class Rep, class Period>
	bool reset_earlier(std::chrono::duration<Rep, Period> delay)
	{
		return service_ &&
		       moved(tw_reset_earlier(service_, handle_, detail::delay_ns(delay)));
	}
	bool reset_earlier_at(time_point deadline)
	{
		return service_ &&
		       moved(tw_reset_earlier_at(service_, handle_,
						 detail::delay_ns(deadline.time_since_epoch())));
	}

	/* A hint: is it waiting to run? */
	bool is_pending() const noexcept
	{
		return service_ && tw_is_pending(service_, handle_);
	}

	/* Goes on without an owner; the handle is for the C functions. */
	tw_timer detach() noexcept
	{
		return std::exchange(handle_, tw_timer{0});
	}
	tw_timer handle() const noexcept
	{
		return handle_;
	}

      private:
	/* In a forked child (-EPERM) nothing of it runs either. */
	static outcome answer(int r) noexcept
	{
		return r < 0 ? outcome::gone : static_cast<outcome>(r);
	}
	static bool moved(int r)
	{
		if (r == TW_RESET_KEPT || r == -ENOENT || r == -EBUSY || r == -ECANCELED)
			return false;
		detail::check(detail::code(r), "tickwheel: reset");
		return true;
	}

	tw_service *service_ = nullptr;
	tw_timer handle_ = {0};
};

/*
 * A service; closed with TW_CLOSE_DROP and freed when it goes. That must not happen in one of its own callbacks, nor while strands, limiters
 * and the like that the C functions have made on get() exist: they keep it alive, and it would stay for good.
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

	/* After an error it is empty: get() is nullptr, and what schedules answers EINVAL. config.size may be left 0. */
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
		return time_point(
		    std::chrono::nanoseconds(static_cast<std::int64_t>(tw_service_now(get()))));
	}

	/* f() after delay, or at a deadline. */
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f)
	{
		return schedule(after(detail::delay_ns(delay)), std::forward<F>(f));
	}
	template <class Rep, class Period, class F>
	[[nodiscard]] timer schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				     std::error_code &error)
	{
		return schedule(after(detail::delay_ns(delay)), std::forward<F>(f), error);
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

	/* (object.*Method)() after delay: nothing is stored, nothing allocated; object outlives the timer. */
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

	/* f() again and again, the first time after a period: each period, or a period after the last run has returned. */
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

	/* The full form: a task with any options; its fn, arg and release are seen to, and its size may be left 0. */
	template <class F> [[nodiscard]] timer schedule(const tw_task &task, F &&f)
	{
		std::error_code error;
		timer made = schedule(task, std::forward<F>(f), error);
		detail::check(error, "tickwheel: schedule");
		return made;
	}
	template <class F> [[nodiscard]] timer schedule(tw_task task, F &&f, std::error_code &error)
	{
		using stored = detail::callable<std::decay_t<F>>;
		static_assert(std::is_invocable_v<std::decay_t<F> &>,
			      "a callback is called without arguments");
		std::unique_ptr<stored> kept(new stored{std::forward<F>(f)});
		tw_timer handle = {0};
		task.size = sizeof task;
		task.fn = stored::run;
		task.arg = kept.get();
		task.release = stored::release;
		error = detail::code(tw_schedule_task(get(), &task, &handle));
		if (!error)
			static_cast<void>(kept.release()); /* the timer's, until its end */
		return timer(get(), handle);
	}

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

	static tw_task after(std::uint64_t delay_ns) noexcept
	{
		tw_task task = {};
		task.when_ns = delay_ns;
		return task;
	}
	static tw_task at(time_point deadline) noexcept
	{
		tw_task task = after(detail::delay_ns(deadline.time_since_epoch()));
		task.flags = TW_TASK_AT;
		return task;
	}

	std::unique_ptr<tw_service, destroy> service_;
};

} // namespace tickwheel

#endif
