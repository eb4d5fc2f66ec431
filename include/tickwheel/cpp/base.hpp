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

/* The scale of a service's deadlines, which service::now() reads, and no other clock's. */
struct clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<clock>;
	static constexpr bool is_steady = true;
};
using time_point = clock::time_point;

/* Where a call's error goes: into the caller's std::error_code, or else it is thrown. */
class on_error
{
      public:
	on_error() noexcept = default;
	on_error(std::error_code &to) noexcept : to_(&to)
	{
	}
	/* r: a C function's result. */
	void operator()(int r, const char *call) const
	{
		std::error_code error;
		if (r < 0)
			error.assign(-r, std::generic_category());
		if (to_)
			*to_ = error;
		else if (error)
			raise(error, call);
	}

      private:
	[[noreturn]] static void raise(const std::error_code &error, const char *call)
	{
#if defined(__cpp_exceptions)
		throw std::system_error(error, call);
#else
		std::fprintf(stderr, "%s: %s\n", call, error.message().c_str());
		std::abort();
#endif
	}

	std::error_code *to_ = nullptr;
};

namespace detail
{

/* Rounded up; a negative time is due immediately. The library refuses one that is too long. */
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

/* An instant before the scale's zero is due immediately. */
inline std::uint64_t instant_ns(time_point at) noexcept
{
	return static_cast<std::uint64_t>(std::max(at, time_point()).time_since_epoch().count());
}

inline time_point now_of(const tw_service *service) noexcept
{
	return time_point(
	    std::chrono::nanoseconds(static_cast<std::int64_t>(tw_service_now(service))));
}

/* The result of a cancel. In a forked child (-EPERM) nothing runs either. */
inline outcome answer(int r) noexcept
{
	return r < 0 ? outcome::gone : static_cast<outcome>(r);
}

inline tw_task task_in(std::uint64_t delay_ns) noexcept
{
	tw_task task = {};
	task.size = sizeof task;
	task.when_ns = delay_ns;
	return task;
}

inline tw_task task_at(time_point deadline) noexcept
{
	tw_task task = task_in(instant_ns(deadline));
	task.flags = TW_TASK_AT;
	return task;
}

inline tw_period period_of(std::uint64_t period_ns, tw_period_mode mode) noexcept
{
	tw_period series = {};
	series.size = sizeof series;
	series.first_ns = series.period_ns = period_ns;
	series.mode = mode;
	return series;
}

/* For stop requests. The cancel may destroy the stop callback that holds this. */
struct canceller {
	tw_service *service;
	tw_timer timer;
	void operator()() const noexcept
	{
		static_cast<void>(tw_cancel(service, timer));
	}
};

/* A stored callable. */
template <class F> struct callable {
	F f;

	static void run(void *self) noexcept
	{
		static_assert(std::is_invocable_v<F &>, "a callback is called without arguments");
		static_cast<callable *>(self)->f();
	}
	static void run_once(void *self) noexcept
	{
		run(self);
		end(self);
	}
	/* f() or f(*run); 0 if it returns void. */
	template <class Run> static int attempt(void *self, Run *run) noexcept
	{
		auto call = [&]() -> decltype(auto) {
			if constexpr (std::is_invocable_v<F &, Run &>)
				return static_cast<callable *>(self)->f(*run);
			else
				return static_cast<callable *>(self)->f();
		};
		if constexpr (std::is_void_v<decltype(call())>)
			return call(), 0;
		else
			return call();
	}
	template <class Run> static int turn(Run *run, void *self) noexcept
	{
		return attempt(self, run);
	}
	/* Any release: of a timer, a job, a task. */
	template <class... Fate> static void end(void *self, Fate...) noexcept
	{
		delete static_cast<callable *>(self);
	}
};

/* Hands f over by call(f): after a success the library owns it. */
template <class F, class Call> void hand_over(F &&f, Call call, on_error error, const char *what)
{
	using stored = callable<std::decay_t<F>>;
	std::unique_ptr<stored> kept(new stored{std::forward<F>(f)});
	int r = call(kept.get());
	if (r == 0)
		static_cast<void>(kept.release());
	error(r, what);
}

/* The same for a task whose functions are set. */
template <class Object, class Task, class Id, class F>
Id submit_task(int (*submit)(Object *, const Task *, Id *), Object *to, Task &task, F &&f,
	       on_error error, const char *what)
{
	Id id = {};
	auto call = [&](void *kept) {
		task.size = sizeof task;
		task.arg = kept;
		return submit(to, &task, &id);
	};
	hand_over(std::forward<F>(f), call, error, what);
	return id;
}

template <class F> tw_timer schedule_task(tw_service *service, tw_task task, F &&f, on_error error)
{
	task.fn = callable<std::decay_t<F>>::run;
	task.release = callable<std::decay_t<F>>::end;
	return submit_task(tw_schedule_task, service, task, std::forward<F>(f), error,
			   "tickwheel: schedule");
}

/* A timer or group of a service, which End ends. */
template <class Handle, auto End> class handle_owner
{
      public:
	handle_owner() noexcept = default;
	handle_owner(tw_service *service, Handle handle) noexcept
	    : service_(service), handle_(handle)
	{
	}
	handle_owner(handle_owner &&other) noexcept
	    : service_(other.service_), handle_(other.detach())
	{
	}
	handle_owner &operator=(handle_owner &&other) noexcept
	{
		if (this != &other) {
			end();
			service_ = other.service_;
			handle_ = other.detach();
		}
		return *this;
	}
	~handle_owner()
	{
		end();
	}

	/* Goes on without an owner; the handle is for the C functions. */
	Handle detach() noexcept
	{
		return std::exchange(handle_, Handle{0});
	}
	Handle handle() const noexcept
	{
		return handle_;
	}

      protected:
	tw_service *service_ = nullptr;
	Handle handle_ = {0};

      private:
	void end() noexcept
	{
		if (handle_.id)
			End(service_, handle_);
	}
};

/* An object of the library, which Destroy ends. */
template <class Object, auto Destroy> class owner
{
      public:
	Object *get() const noexcept
	{
		return owned_.get();
	}

      protected:
	template <class Create, class... Args>
	void create(on_error error, const char *what, Create *c_function, Args... args)
	{
		Object *made = nullptr;
		int r = c_function(&made, args...);
		owned_.reset(made);
		error(r, what);
	}

      private:
	struct destroy {
		void operator()(Object *object) const noexcept
		{
			static_cast<void>(Destroy(object));
		}
	};
	std::unique_ptr<Object, destroy> owned_;
};

} // namespace detail

} // namespace tickwheel

#endif
