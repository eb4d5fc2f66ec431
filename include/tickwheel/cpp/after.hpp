/* Coroutines that wait, under C++20. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_AFTER_HPP
#define TICKWHEEL_CPP_AFTER_HPP

#if defined(__cpp_impl_coroutine)

#include <atomic>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "../service.h"
#include "base.hpp"

namespace tickwheel
{

/*
 * What service::after and service::until return: `co_await` waits, and tells whether the time has
 * passed. It is false if a stop request, cancel(), or the close of the service ended the wait.
 *
 *     while (bool passed = co_await service.after(1s))
 *             beat();
 *
 * Keep the variable: GCC 12 makes wrong code of a condition with co_await in a coroutine that has
 * no local variable. A wait that cannot be armed (EAGAIN, ENOMEM, ERANGE) throws std::system_error.
 *
 * The coroutine goes on where the timer's callback runs: on the service's executor, or on that of
 * on(); after a stop request, a cancel or a close, inside that call. The wait lives in the
 * coroutine's frame and allocates nothing. A coroutine that is destroyed while it waits cancels the
 * timer, and waits for a callback that has begun; no other thread may resume it in that moment. In
 * its own resumption the awaitable may be destroyed.
 */
class after_awaitable
{
      public:
	template <class Rep, class Period>
	after_awaitable(tw_service *service, std::chrono::duration<Rep, Period> delay) noexcept
	    : service_(service), when_ns_(detail::delay_ns(delay)), flags_(0)
	{
	}
	after_awaitable(tw_service *service, time_point deadline) noexcept
	    : service_(service), when_ns_(detail::instant_ns(deadline)), flags_(TW_TASK_AT)
	{
	}
	/* Only before it is awaited. */
	after_awaitable(after_awaitable &&other) noexcept
	    : service_(other.service_), when_ns_(other.when_ns_), flags_(other.flags_),
	      executor_(other.executor_), stop_(std::move(other.stop_))
	{
	}
	after_awaitable &operator=(after_awaitable &&) = delete;
	~after_awaitable()
	{
		on_stop_.reset();
		if (state_.load(std::memory_order_relaxed) == 0)
			return; /* not awaited */
		if (!(state_.fetch_or(destroyed, std::memory_order_acq_rel) & ended))
			static_cast<void>(tw_cancel_wait(service_, timer_, TW_FOREVER));
	}

	/* The coroutine goes on there: in a strand, or on an executor that outlives the service. */
	after_awaitable on(tw_executor *executor) &&
	{
		executor_ = executor;
		return std::move(*this);
	}
	/* A stop request ends the wait. */
	after_awaitable stop_when(std::stop_token stop) &&
	{
		stop_ = std::move(stop);
		return std::move(*this);
	}

	/* Ends the wait, also before it has begun. Any thread, while the awaitable lives. */
	void cancel() noexcept
	{
		if (state_.fetch_or(cancelled, std::memory_order_acq_rel) & published)
			static_cast<void>(tw_cancel(service_, timer_));
	}

	tw_service *service() const noexcept
	{
		return service_;
	}

	bool await_ready() const noexcept
	{
		return false;
	}
	/* After the last step another thread may have destroyed this object. */
	bool await_suspend(std::coroutine_handle<> waiting)
	{
		waiting_ = waiting;
		state_.fetch_or(begun, std::memory_order_relaxed);
		error_ = arm();
		if (error_) {
			state_.fetch_or(ended, std::memory_order_relaxed);
			return false;
		}
		if (stop_.stop_possible())
			on_stop_.emplace(std::move(stop_), stopper{this});
		tw_service *service = service_;
		tw_timer timer = timer_;
		if (state_.load(std::memory_order_acquire) & cancelled)
			static_cast<void>(tw_cancel(service, timer));
		unsigned before = state_.fetch_or(published, std::memory_order_acq_rel);
		if (before & ended)
			return false;
		if (before & cancelled)
			static_cast<void>(tw_cancel(service, timer));
		return true;
	}
	bool await_resume()
	{
		on_stop_.reset();
		if (error_ == -ESHUTDOWN)
			return false;
		detail::check(detail::code(error_), "tickwheel: after");
		return fate_ == TW_FATE_FIRED;
	}

      private:
	/* Bits of the state: who resumes is decided by the later of `published` and `ended`. */
	enum : unsigned { begun = 1, published = 2, ended = 4, cancelled = 8, destroyed = 16 };

	struct stopper {
		after_awaitable *self;
		void operator()() const noexcept
		{
			self->cancel_armed();
		}
	};

	int arm() noexcept
	{
		tw_task task = {};
		task.size = sizeof task;
		task.fn = nothing;
		task.arg = this;
		task.when_ns = when_ns_;
		task.flags = flags_;
		task.release = timer_ended;
		task.executor = executor_;
		return tw_schedule_task(service_, &task, &timer_);
	}
	/* From a stop request: the timer is armed. */
	void cancel_armed() noexcept
	{
		static_cast<void>(tw_cancel(service_, timer_));
	}
	static void nothing(void *) noexcept
	{
	}
	static void timer_ended(void *arg, tw_fate fate) noexcept
	{
		auto *self = static_cast<after_awaitable *>(arg);
		self->fate_ = fate;
		unsigned before = self->state_.fetch_or(ended, std::memory_order_acq_rel);
		if ((before & published) && !(before & destroyed))
			self->waiting_.resume();
	}

	tw_service *service_;
	std::uint64_t when_ns_;
	std::uint32_t flags_;
	int error_ = 0;
	tw_executor *executor_ = nullptr;
	tw_timer timer_ = {0};
	tw_fate fate_ = TW_FATE_DROPPED;
	std::atomic<unsigned> state_{0};
	std::coroutine_handle<> waiting_;
	std::stop_token stop_{};
	std::optional<std::stop_callback<stopper>> on_stop_;
};

namespace detail
{

template <class A> decltype(auto) awaiter_of(A &&awaitable)
{
	if constexpr (requires { std::forward<A>(awaitable).operator co_await(); })
		return std::forward<A>(awaitable).operator co_await();
	else if constexpr (requires { operator co_await(std::forward<A>(awaitable)); })
		return operator co_await(std::forward<A>(awaitable));
	else
		return std::forward<A>(awaitable);
}

/* What with_timeout returns. */
template <class T> struct in_time {
	using type = std::optional<T>;
};
template <> struct in_time<void> {
	using type = bool;
};

/* The timer of with_timeout; Stop ends what is awaited. */
template <class Stop> class timeout
{
      public:
	timeout(tw_service *service, std::uint64_t delay_ns, Stop stop)
	    : service_(service), delay_ns_(delay_ns), stop_(std::move(stop))
	{
	}
	timeout(timeout &&other) noexcept
	    : service_(other.service_), delay_ns_(other.delay_ns_), stop_(std::move(other.stop_))
	{
	}
	~timeout()
	{
		disarm();
	}
	/* On a closed service what is awaited ends now. */
	void arm()
	{
		tw_task task = {};
		task.size = sizeof task;
		task.fn = expire;
		task.arg = this;
		task.when_ns = delay_ns_;
		task.release = ended;
		int r = tw_schedule_task(service_, &task, &timer_);
		if (r == -ESHUTDOWN)
			stop_.end();
		else
			check(code(r), "tickwheel: with_timeout");
	}
	/* Waits for the callback, unless this runs inside it. */
	void disarm() noexcept
	{
		if (timer_.id)
			static_cast<void>(tw_cancel_wait(
			    service_, std::exchange(timer_, tw_timer{0}), TW_FOREVER));
	}
	bool expired() const noexcept
	{
		return expired_.load(std::memory_order_acquire);
	}
	Stop &stop() noexcept
	{
		return stop_;
	}

      private:
	/* The stop may resume the coroutine, which destroys this object: it is not used after. */
	static void end(timeout *self) noexcept
	{
		Stop stop(self->stop_);
		stop.end();
	}
	static void expire(void *arg) noexcept
	{
		auto *self = static_cast<timeout *>(arg);
		self->expired_.store(true, std::memory_order_release);
		end(self);
	}
	/* Only after a drop is this object still there. */
	static void ended(void *arg, tw_fate fate) noexcept
	{
		if (fate == TW_FATE_DROPPED)
			end(static_cast<timeout *>(arg));
	}

	tw_service *service_;
	std::uint64_t delay_ns_;
	tw_timer timer_ = {0};
	std::atomic<bool> expired_{false};
	Stop stop_;
};

/* Ends an after_awaitable. */
struct cancel_it {
	after_awaitable *awaited;
	void end() noexcept
	{
		awaited->cancel();
	}
};

/* Ends what watches a token. */
struct request_stop {
	std::stop_source source;
	void end() noexcept
	{
		source.request_stop();
	}
};

struct no_function {
};

/*
 * Awaits A with the coroutine's own handle, so it has no frame of its own. F, which has made A,
 * stays: a lambda that is a coroutine uses its captures while it runs.
 */
template <class A, class Stop, class F = no_function> class timed_awaitable
{
	using awaiter = decltype(awaiter_of(std::declval<A>()));
	using value = decltype(std::declval<awaiter &>().await_resume());

      public:
	timed_awaitable(A awaitable, std::uint64_t delay_ns)
	    : awaitable_(std::move(awaitable)), awaiter_(awaiter_of(std::move(awaitable_))),
	      timeout_(awaitable_.service(), delay_ns, cancel_it{&awaitable_})
	{
	}
	timed_awaitable(F f, tw_service *service, std::uint64_t delay_ns, std::stop_source source)
	    : f_(std::move(f)), awaitable_(f_(source.get_token())),
	      awaiter_(awaiter_of(std::move(awaitable_))),
	      timeout_(service, delay_ns, request_stop{std::move(source)})
	{
	}
	timed_awaitable(timed_awaitable &&) = delete;

	bool await_ready()
	{
		return awaiter_.await_ready();
	}
	template <class Promise> auto await_suspend(std::coroutine_handle<Promise> waiting)
	{
		timeout_.arm();
		return awaiter_.await_suspend(waiting);
	}
	typename in_time<value>::type await_resume()
	{
		timeout_.disarm();
		if constexpr (std::is_void_v<value>) {
			awaiter_.await_resume();
			return !timeout_.expired();
		} else {
			std::optional<value> result(awaiter_.await_resume());
			if (timeout_.expired())
				result.reset();
			return result;
		}
	}

      private:
	[[no_unique_address]] F f_{}; /* first: it goes last */
	A awaitable_;
	awaiter awaiter_;
	timeout<Stop> timeout_; /* last: it goes first */
};

} // namespace detail

/*
 * Awaits with a time limit: `co_await with_timeout(service.after(30s), 1s)`. The result is that of
 * the awaitable in a std::optional, which is empty if the time was up before. If the service is
 * closed, it is false. Allocates nothing.
 */
template <class Rep, class Period>
auto with_timeout(after_awaitable awaited, std::chrono::duration<Rep, Period> limit)
{
	return detail::timed_awaitable<after_awaitable, detail::cancel_it>(std::move(awaited),
									   detail::delay_ns(limit));
}

/*
 * The same for any awaitable that ends when a stop is requested. f(std::stop_token) returns it:
 *
 *     std::optional<reply> r = co_await with_timeout(
 *         service, [&](std::stop_token stop) { return fetch(url, stop); }, 1s);
 *
 * When the time is up, or the service closes, a stop is requested, and the coroutine goes on when
 * the awaitable has ended. After a close the result is the awaitable's. For an awaitable of void
 * the result is a bool: whether it ended in time. Allocates the state of a std::stop_source.
 */
template <class F, class Rep, class Period>
auto with_timeout(tw_service *service, F f, std::chrono::duration<Rep, Period> limit)
{
	using awaitable = decltype(f(std::stop_token()));
	return detail::timed_awaitable<awaitable, detail::request_stop, F>(
	    std::move(f), service, detail::delay_ns(limit), std::stop_source());
}

} // namespace tickwheel

#endif
#endif
