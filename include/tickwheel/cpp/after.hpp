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
 * What service::after and until return: `co_await` waits, and tells whether the time has passed. It
 * is false if a stop request, cancel(), or the close of the service ended the wait.
 *
 *     while (bool passed = co_await service.after(1s))
 *             beat();
 *
 * Keep the variable: GCC 12 makes wrong code of a condition with co_await in a coroutine that has
 * no local variable. A wait that cannot be armed (EAGAIN, ENOMEM, ERANGE) throws std::system_error.
 *
 * The coroutine goes on on the service's executor, or on that of on(); after a stop request, a
 * cancel or a close, inside that call. The wait allocates nothing. A coroutine that is destroyed
 * while it waits cancels the timer; no other thread may resume it in that moment. Its resumption
 * may destroy the awaitable.
 */
class after_awaitable
{
      public:
	template <class Rep, class Period>
	after_awaitable(tw_service *service, std::chrono::duration<Rep, Period> delay) noexcept
	    : service_(service), task_(detail::task_in(detail::delay_ns(delay)))
	{
	}
	after_awaitable(tw_service *service, time_point deadline) noexcept
	    : service_(service), task_(detail::task_at(deadline))
	{
	}
	/* Only before it is awaited. */
	after_awaitable(after_awaitable &&other) noexcept
	    : service_(other.service_), task_(other.task_),
	      state_(other.state_.load(std::memory_order_relaxed)), stop_(std::move(other.stop_))
	{
	}
	after_awaitable &operator=(after_awaitable &&) = delete;
	~after_awaitable()
	{
		on_stop_.reset();
		if (timer_.id && !(state_.fetch_or(destroyed, std::memory_order_acq_rel) & ended))
			static_cast<void>(tw_cancel_wait(service_, timer_, TW_FOREVER));
	}

	/* The coroutine goes on there: in a strand, or on an executor that outlives the service. */
	after_awaitable on(tw_executor *executor) &&
	{
		task_.executor = executor;
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
	/* After `published` another thread may have destroyed this object. */
	bool await_suspend(std::coroutine_handle<> waiting)
	{
		if (state_.load(std::memory_order_acquire) & cancelled)
			return false;
		waiting_ = waiting;
		task_.fn = [](void *) noexcept {};
		task_.arg = this;
		task_.release = timer_ended;
		error_ = tw_schedule_task(service_, &task_, &timer_);
		if (error_)
			return false;
		detail::canceller cancel{service_, timer_};
		if (stop_.stop_possible())
			on_stop_.emplace(std::move(stop_), cancel);
		unsigned before = state_.fetch_or(published, std::memory_order_acq_rel);
		if (before & ended)
			return false;
		if (before & cancelled)
			cancel();
		return true;
	}
	bool await_resume()
	{
		on_stop_.reset();
		if (error_ != -ESHUTDOWN)
			on_error()(error_, "tickwheel: after");
		return fate_ == TW_FATE_FIRED;
	}

      protected:
	tw_service *service_;
	tw_task task_;

      private:
	/* Bits of the state: the later of `published` and `ended` resumes. */
	enum : unsigned { published = 1, ended = 2, cancelled = 4, destroyed = 8 };

	static void timer_ended(void *arg, tw_fate fate) noexcept
	{
		auto *self = static_cast<after_awaitable *>(arg);
		self->fate_ = fate;
		unsigned before = self->state_.fetch_or(ended, std::memory_order_acq_rel);
		if ((before & published) && !(before & destroyed))
			self->waiting_.resume();
	}

	int error_ = 0;
	tw_timer timer_ = {0};
	tw_fate fate_ = TW_FATE_DROPPED;
	std::atomic<unsigned> state_{0};
	std::coroutine_handle<> waiting_;
	std::stop_token stop_{};
	std::optional<std::stop_callback<detail::canceller>> on_stop_;
};

namespace detail
{

/* A wait with a time limit: whichever comes first is the deadline of its timer. */
class limited_after : after_awaitable
{
      public:
	limited_after(after_awaitable &&awaited, std::uint64_t limit_ns)
	    : after_awaitable(std::move(awaited)), limit_ns_(limit_ns)
	{
	}
	limited_after(limited_after &&) = delete;

	using after_awaitable::await_ready;
	bool await_suspend(std::coroutine_handle<> waiting)
	{
		std::uint64_t now = task_.flags & TW_TASK_AT ? tw_service_now(service_) : 0;
		limit_is_first_ = task_.when_ns > now && task_.when_ns - now > limit_ns_;
		if (limit_is_first_)
			task_.when_ns = now + limit_ns_;
		return after_awaitable::await_suspend(waiting);
	}
	std::optional<bool> await_resume()
	{
		bool passed = after_awaitable::await_resume();
		if (passed && limit_is_first_)
			return std::nullopt;
		return passed;
	}

      private:
	std::uint64_t limit_ns_;
	bool limit_is_first_ = false;
};

template <class A> decltype(auto) awaiter_of(A &&awaitable)
{
	if constexpr (requires { std::forward<A>(awaitable).operator co_await(); })
		return std::forward<A>(awaitable).operator co_await();
	else if constexpr (requires { operator co_await(std::forward<A>(awaitable)); })
		return operator co_await(std::forward<A>(awaitable));
	else
		return std::forward<A>(awaitable);
}

/*
 * Awaits what f(stop_token) returns, with the coroutine's own handle: it has no frame. F stays, as
 * a lambda that is a coroutine uses its captures while it runs.
 */
template <class F> class limited_awaitable
{
	using awaitable = std::invoke_result_t<F &, std::stop_token>;
	using awaiter = decltype(awaiter_of(std::declval<awaitable>()));
	using value = decltype(std::declval<awaiter &>().await_resume());

      public:
	limited_awaitable(F f, tw_service *service, std::uint64_t limit_ns)
	    : f_(std::move(f)), awaitable_(f_(stop_.get_token())),
	      awaiter_(awaiter_of(std::move(awaitable_))), service_(service), limit_ns_(limit_ns)
	{
	}
	limited_awaitable(limited_awaitable &&) = delete;
	~limited_awaitable()
	{
		disarm();
	}

	bool await_ready()
	{
		return awaiter_.await_ready();
	}
	template <class Promise> auto await_suspend(std::coroutine_handle<Promise> waiting)
	{
		tw_task task = task_in(limit_ns_);
		task.fn = expire;
		task.arg = this;
		task.release = timer_ended;
		int r = tw_schedule_task(service_, &task, &timer_);
		if (r == -ESHUTDOWN)
			stop_.request_stop();
		else
			on_error()(r, "tickwheel: with_timeout");
		return awaiter_.await_suspend(waiting);
	}
	auto await_resume()
	{
		disarm();
		if constexpr (std::is_void_v<value>) {
			awaiter_.await_resume();
			return !expired_.load(std::memory_order_acquire);
		} else {
			std::optional<value> result(awaiter_.await_resume());
			if (expired_.load(std::memory_order_acquire))
				result.reset();
			return result;
		}
	}

      private:
	/* Waits for the callback, unless this runs inside it. */
	void disarm() noexcept
	{
		if (timer_.id)
			static_cast<void>(tw_cancel_wait(
			    service_, std::exchange(timer_, tw_timer{0}), TW_FOREVER));
	}
	/* May resume the coroutine, which destroys this object. */
	void request_stop() noexcept
	{
		std::stop_source stop(stop_);
		stop.request_stop();
	}
	static void expire(void *arg) noexcept
	{
		auto *self = static_cast<limited_awaitable *>(arg);
		self->expired_.store(true, std::memory_order_release);
		self->request_stop();
	}
	/* Only after a drop is this object still there. */
	static void timer_ended(void *arg, tw_fate fate) noexcept
	{
		if (fate == TW_FATE_DROPPED)
			static_cast<limited_awaitable *>(arg)->request_stop();
	}

	[[no_unique_address]] F f_;
	std::stop_source stop_;
	awaitable awaitable_;
	awaiter awaiter_;
	tw_service *service_;
	std::uint64_t limit_ns_;
	tw_timer timer_ = {0};
	std::atomic<bool> expired_{false};
};

} // namespace detail

/*
 * Awaits with a time limit: `co_await with_timeout(service.after(30s), 1s)`. The result is a
 * std::optional<bool>: empty if the limit came first, false after a close. Allocates nothing.
 */
template <class Rep, class Period>
auto with_timeout(after_awaitable awaited, std::chrono::duration<Rep, Period> limit)
{
	return detail::limited_after(std::move(awaited), detail::delay_ns(limit));
}

/*
 * The same for any awaitable that ends when a stop is requested. f(std::stop_token) returns it:
 *
 *     std::optional<reply> r = co_await with_timeout(
 *         service, [&](std::stop_token stop) { return fetch(url, stop); }, 1s);
 *
 * When the time is up, or the service closes, a stop is requested, and the coroutine goes on when
 * the awaitable has ended; after a close with its result. For an awaitable of void the result is a
 * bool: whether it ended in time. Allocates the state of a std::stop_source.
 */
template <class F, class Rep, class Period>
auto with_timeout(tw_service *service, F f, std::chrono::duration<Rep, Period> limit)
{
	return detail::limited_awaitable<F>(std::move(f), service, detail::delay_ns(limit));
}

} // namespace tickwheel

#endif
#endif
