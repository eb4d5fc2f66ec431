/* Timers that a std::stop_token cancels, under C++20. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_STOPPABLE_HPP
#define TICKWHEEL_CPP_STOPPABLE_HPP

#if __cplusplus >= 202002L && __has_include(<stop_token>)
#include <stop_token>
#endif

#if defined(__cpp_lib_jthread)

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base.hpp"

namespace tickwheel::detail
{

/*
 * A callable that a stop request cancels. Owned by the timer, and by the call that schedules it: a
 * run may end before that call has written the handle.
 */
template <class F> class stoppable
{
      public:
	stoppable(F f, tw_service *service) : f_(std::move(f)), service_(service)
	{
	}
	void watch(std::stop_token stop)
	{
		on_stop_.emplace(std::move(stop), stopper{this});
	}
	/* The timer exists: a stop request that came before it cancels it now. */
	void scheduled(tw_timer timer) noexcept
	{
		std::uint64_t none = 0;
		if (!timer_.compare_exchange_strong(none, timer.id, std::memory_order_acq_rel))
			static_cast<void>(tw_cancel(service_, timer));
		unref();
	}
	/* A run may begin before scheduled() has cancelled the timer. */
	static void run(void *arg) noexcept
	{
		auto *self = static_cast<stoppable *>(arg);
		if (self->timer_.load(std::memory_order_acquire) != stopped)
			self->f_();
	}
	static void release(void *self, tw_fate) noexcept
	{
		static_cast<stoppable *>(self)->unref();
	}

      private:
	static constexpr std::uint64_t stopped = UINT64_MAX;

	/* The cancel may destroy this object, inside its own stop callback. */
	struct stopper {
		stoppable *self;
		void operator()() const noexcept
		{
			tw_timer timer = {
			    self->timer_.exchange(stopped, std::memory_order_acq_rel)};
			if (timer.id)
				static_cast<void>(tw_cancel(self->service_, timer));
		}
	};

	void unref() noexcept
	{
		if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1)
			delete this;
	}

	F f_;
	tw_service *service_;
	std::atomic<std::uint64_t> timer_{0};
	std::atomic<int> owners_{2};
	std::optional<std::stop_callback<stopper>> on_stop_;
};

template <class F>
tw_timer schedule_stoppable(tw_service *service, std::uint64_t delay_ns, F &&f,
			    std::stop_token stop, std::error_code &error)
{
	using stored = stoppable<std::decay_t<F>>;
	auto kept = std::make_unique<stored>(std::forward<F>(f), service);
	kept->watch(std::move(stop));
	tw_task task = {};
	task.size = sizeof task;
	task.when_ns = delay_ns;
	task.fn = stored::run;
	task.arg = kept.get();
	task.release = stored::release;
	tw_timer handle = {0};
	error = code(tw_schedule_task(service, &task, &handle));
	if (!error)
		kept.release()->scheduled(handle);
	return handle;
}

} // namespace tickwheel::detail

#endif
#endif
