/* Timers that a std::stop_token cancels, under C++20. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_STOPPABLE_HPP
#define TICKWHEEL_CPP_STOPPABLE_HPP

#if __cplusplus >= 202002L && __has_include(<stop_token>)
#include <stop_token>
#endif

#if defined(__cpp_lib_jthread)

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base.hpp"

namespace tickwheel::detail
{

/*
 * A callable that a stop request cancels. Owned by the timer, and by the call that schedules it: a
 * run may end before that call has registered for the request.
 */
template <class F> class stoppable
{
      public:
	template <class G>
	stoppable(G &&f, std::stop_token stop) : f_(std::forward<G>(f)), stop_(std::move(stop))
	{
	}

	template <class G>
	static tw_timer schedule(tw_service *service, std::uint64_t delay_ns, G &&f,
				 std::stop_token stop, on_error error)
	{
		auto kept = std::make_unique<stoppable>(std::forward<G>(f), std::move(stop));
		tw_timer timer = {0};
		tw_task task = task_in(delay_ns);
		task.fn = run;
		task.arg = kept.get();
		task.release = release;
		int r = tw_schedule_task(service, &task, &timer);
		if (r == 0) {
			stoppable *self = kept.release();
			self->on_stop_.emplace(self->stop_, canceller{service, timer});
			unref(self);
		}
		error(r, "tickwheel: schedule");
		return timer;
	}
	static void run(void *arg) noexcept
	{
		auto *self = static_cast<stoppable *>(arg);
		if (!self->stop_.stop_requested())
			self->f_();
	}
	static void release(void *self, tw_fate) noexcept
	{
		unref(static_cast<stoppable *>(self));
	}

      private:
	static void unref(stoppable *self) noexcept
	{
		if (self->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1)
			delete self;
	}

	F f_;
	std::stop_token stop_;
	std::atomic<int> owners_{2};
	std::optional<std::stop_callback<canceller>> on_stop_;
};

} // namespace tickwheel::detail

#endif
#endif
