/*
 * What is inside a tickwheel::asio::timer: an alarm, which has the timer's waits, and a persistent
 * timer of the service that runs when they are due. A cancel takes the waits and leaves the
 * service's timer where it is.
 *
 * A callback that finds `due_` ahead of the clock has been overtaken by a reset: the service's
 * timer is armed again.
 *
 * An alarm is counted: by its timer, by the service's timer, and by each cancellation slot.
 */
#ifndef TICKWHEEL_CPP_ASIO_ALARM_HPP
#define TICKWHEEL_CPP_ASIO_ALARM_HPP

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>

#include "../group.h"
#include "../service.h"
#include "asio_wait.hpp"
#include "base.hpp"

namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail
{

/* Both clocks at one moment, which say how far they are apart. */
struct clocks {
	using steady = std::chrono::steady_clock;
	time_point now;                 /* the service's */
	std::chrono::nanoseconds ahead; /* of steady_clock; 0 if both show one time */

	explicit clocks(const tw_service *service)
	{
		std::chrono::nanoseconds before = steady::now().time_since_epoch();
		now = tickwheel::detail::now_of(service);
		std::chrono::nanoseconds at = now.time_since_epoch(),
					 after = steady::now().time_since_epoch();
		bool same = before <= at && at <= after;
		ahead = same ? std::chrono::nanoseconds(0) : at - before;
	}

	/* `now` for an instant that has passed. */
	time_point from_steady(steady::time_point at) const
	{
		auto instant = std::chrono::nanoseconds(at.time_since_epoch());
		if (ahead > ahead.zero() && instant > ahead.max() - ahead)
			return time_point::max();
		if (ahead < ahead.zero() && instant < ahead.min() - ahead)
			return now;
		return std::max(now, time_point(instant + ahead));
	}
	steady::time_point to_steady(time_point at) const
	{
		return at == time_point::max() ? steady::time_point::max()
					       : steady::time_point(at.time_since_epoch() - ahead);
	}
};

inline error_code code_of(int negative_errno) noexcept
{
	return negative_errno < 0 ? error_code(-negative_errno, net::error::get_system_category())
				  : error_code();
}

/* Where a context's timers are; in a shared service, as members of a group. */
struct timer_home {
	tw_service *service;
	tw_group group;
};

class alarm
{
      public:
	explicit alarm(const timer_home &home) noexcept : home_(home)
	{
	}

	void ref() noexcept
	{
		refs_.fetch_add(1, std::memory_order_relaxed);
	}
	void unref() noexcept
	{
		if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
			delete this;
	}

	/* One thread at a time calls these. */
	std::uint64_t next_id() noexcept
	{
		return ++last_id_;
	}
	void start(wait *started, time_point due)
	{
		int r = 0;
		{
			std::lock_guard<std::mutex> guard(lock_);
			bool first = waits_.empty();
			waits_.push(started);
			due_ = due;
			if (first && (r = arm()) != 0)
				started = waits_.pop();
		}
		if (r)
			started->end(code_of(r));
	}
	std::size_t cancel(std::size_t most)
	{
		wait_list taken;
		std::size_t n = 0;
		{
			std::lock_guard<std::mutex> guard(lock_);
			for (; n < most && !waits_.empty(); n++)
				taken.push(waits_.pop());
		}
		taken.end(net::error::operation_aborted);
		return n;
	}
	/* Ends the service's timer, too. */
	void close()
	{
		cancel(SIZE_MAX);
		if (timer_.id)
			static_cast<void>(tw_cancel(home_.service, timer_));
	}

	/* From a cancellation slot, on any thread. */
	void cancel_id(std::uint64_t id)
	{
		wait *found = nullptr;
		{
			std::lock_guard<std::mutex> guard(lock_);
			found = waits_.remove(id);
		}
		if (found)
			found->end(net::error::operation_aborted);
	}

	wait_list take() noexcept
	{
		std::lock_guard<std::mutex> guard(lock_);
		return std::exchange(waits_, wait_list());
	}
	/* After a fork: the service's timer has ended, and the service is another one. */
	void rearm()
	{
		timer_ = {0};
		int r = waits_.empty() ? 0 : arm();
		if (r)
			take().end(code_of(r));
	}

	alarm *next = nullptr, *previous = nullptr; /* the context's list, under its lock */

      private:
	/* What is further away than the service reaches (ERANGE) is never due. */
	int arm() noexcept
	{
		tw_task task = tickwheel::detail::task_at(due_);
		int r;
		if (timer_.id) {
			r = tw_reset_at(home_.service, timer_, task.when_ns);
		} else {
			task.flags |= TW_TASK_PERSISTENT;
			task.fn = expire;
			task.arg = this;
			task.release = timer_ended;
			task.group = home_.group;
			ref();
			r = tw_schedule_task(home_.service, &task, &timer_);
			if (r)
				refs_.fetch_sub(1,
						std::memory_order_relaxed); /* the timer has one */
		}
		return r == -ERANGE ? 0 : r;
	}

	static void expire(void *arg) noexcept
	{
		auto *self = static_cast<alarm *>(arg);
		tw_run_info run = TW_INIT(tw_run_info);
		static_cast<void>(tw_current(&run));
		wait_list due;
		{
			std::lock_guard<std::mutex> guard(self->lock_);
			if (run.closing ||
			    self->due_ <= tickwheel::detail::now_of(self->home_.service))
				due = std::exchange(self->waits_, wait_list());
		}
		due.end(error_code());
	}
	static void timer_ended(void *arg, tw_fate fate) noexcept
	{
		auto *self = static_cast<alarm *>(arg);
		if (fate == TW_FATE_DROPPED &&
		    self->home_.group.id) /* a shared service is closed */
			self->take().end(net::error::operation_aborted);
		self->unref();
	}

	const timer_home &home_;
	std::atomic<std::size_t> refs_{1};
	std::mutex lock_; /* of what follows */
	tw_timer timer_ = {0};
	time_point due_;            /* of the waits */
	wait_list waits_;           /* the oldest first */
	std::uint64_t last_id_ = 0; /* not under the lock */
};

} // namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail

#endif
