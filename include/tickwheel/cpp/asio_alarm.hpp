/*
 * What is inside a tickwheel::asio::timer. Use tickwheel_asio.hpp.
 *
 * A timer has an alarm: its waits, and a timer of the service that runs when the first is due. A
 * cancel takes the waits and leaves the service's timer where it is.
 *
 * The alarm's lock orders a user's thread and the callback. While `armed` is true, the callback has
 * not been inside the lock. So a reset that returns -EBUSY may be ignored: the callback waits for
 * the lock, and then looks at `due_`.
 *
 * An alarm is counted: by its timer, by the service's timer while that is armed, and by each
 * cancellation slot that knows it.
 */
#ifndef TICKWHEEL_CPP_ASIO_ALARM_HPP
#define TICKWHEEL_CPP_ASIO_ALARM_HPP

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <unistd.h>

#include "../service.h"
#include "asio_wait.hpp"
#include "base.hpp"

namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail
{

class spin_lock
{
      public:
	void lock() noexcept
	{
		while (taken_.exchange(true, std::memory_order_acquire))
			while (taken_.load(std::memory_order_relaxed))
				std::this_thread::yield();
	}
	void unlock() noexcept
	{
		taken_.store(false, std::memory_order_release);
	}

      private:
	std::atomic<bool> taken_{false};
};

/* Both clocks at one moment. What one shows is the other's reading plus the distance then. */
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

	/* An instant of steady_clock on the service's clock: now, if it has passed. */
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

/*
 * How many callbacks of one context run. A callback uses the context until it has handed over its
 * waits, also when their timer has gone. So the context waits for all before it goes.
 */
class callbacks
{
      public:
	/* Entered before the callback looks for waits. */
	class scope
	{
	      public:
		explicit scope(callbacks &of) noexcept : of_(of), outer_(innermost_)
		{
			/* Either this sees the stop, or stop() sees this. */
			while (of_.running_.fetch_add(1), of_.stopped_) {
				of_.running_.fetch_sub(1);
				std::this_thread::sleep_for(std::chrono::microseconds(50));
			}
			innermost_ = this;
		}
		scope(const scope &) = delete;
		scope &operator=(const scope &) = delete;
		~scope()
		{
			innermost_ = outer_;
			of_.running_.fetch_sub(1, std::memory_order_release);
		}

	      private:
		friend class callbacks;
		callbacks &of_;
		scope *const outer_;
		static inline thread_local scope *innermost_ = nullptr;
	};

	/* Does not wait for those that this call is inside of. In a forked child none runs. */
	void wait() const
	{
		if (getpid() != process_)
			return;
		int own = 0;
		for (const scope *s = scope::innermost_; s; s = s->outer_)
			own += &s->of_ == this;
		while (running_ > own)
			std::this_thread::sleep_for(std::chrono::microseconds(50));
	}

	/* Around a fork: none runs, and those that begin wait, in the parent. */
	void stop()
	{
		stopped_ = true;
		wait();
	}
	void go_on() noexcept
	{
		if (getpid() != process_)
			running_ = 0;
		process_ = getpid();
		stopped_ = false;
	}

      private:
	std::atomic<int> running_{0};
	std::atomic<bool> stopped_{false};
	pid_t process_ = getpid();
};

/* A thread that waits for an instant of a service. */
class blocked_thread
{
      public:
	/* operation_aborted: the service is being closed. */
	error_code wait(tw_service *service, time_point due)
	{
		tw_task task = {};
		task.size = sizeof task;
		task.fn = nothing;
		task.arg = this;
		task.when_ns = tickwheel::detail::instant_ns(due);
		task.flags = TW_TASK_AT;
		task.release = timer_ended;
		int r = tw_schedule_task(service, &task, nullptr);
		if (r)
			return code_of(r);
		std::unique_lock<std::mutex> guard(mutex_);
		changed_.wait(guard, [this] { return ended_; });
		return error_;
	}

      private:
	static void nothing(void *) noexcept
	{
	}
	static void timer_ended(void *arg, tw_fate fate) noexcept
	{
		auto *self = static_cast<blocked_thread *>(arg);
		std::lock_guard<std::mutex> guard(self->mutex_); /* else it could be gone */
		if (fate != TW_FATE_FIRED)
			self->error_ = net::error::operation_aborted;
		self->ended_ = true;
		self->changed_.notify_one();
	}

	std::mutex mutex_;
	std::condition_variable changed_;
	bool ended_ = false;
	error_code error_;
};

class alarm
{
      public:
	alarm(tw_service *service, std::shared_ptr<callbacks> inside) noexcept
	    : service_(service), callbacks_(std::move(inside))
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

	/* One thread at a time calls these three. */
	std::uint64_t next_id() noexcept
	{
		return ++last_id_;
	}
	void start(wait *started, time_point due)
	{
		int r = 0;
		{
			std::lock_guard<spin_lock> guard(lock_);
			bool first = waits_.empty();
			waits_.push(started);
			due_ = due;
			if (first && (r = arm()) != 0)
				started = waits_.pop();
		}
		if (r)
			complete_one(started, code_of(r));
	}
	std::size_t cancel(std::size_t most)
	{
		wait_list taken;
		std::size_t n = 0;
		{
			std::lock_guard<spin_lock> guard(lock_);
			for (; n < most && !waits_.empty(); n++)
				taken.push(waits_.pop());
		}
		taken.complete(net::error::operation_aborted);
		return n;
	}

	/* From a cancellation slot, on any thread. */
	void cancel_id(std::uint64_t id)
	{
		wait *found = nullptr;
		{
			std::lock_guard<spin_lock> guard(lock_);
			found = waits_.remove(id);
		}
		if (found)
			complete_one(found, net::error::operation_aborted);
	}

	/* No callback finds a wait after it. Returns the waits. */
	wait_list close() noexcept
	{
		wait_list left;
		std::unique_lock<spin_lock> guard(lock_);
		left = std::exchange(waits_, wait_list());
		bool was_armed = armed_;
		int outcome = was_armed ? tw_cancel(service_, timer_) : TW_RUNNING;
		if (outcome != TW_RUNNING)
			armed_ = false;
		guard.unlock();
		if (was_armed && outcome != TW_RUNNING)
			unref(); /* that of the service's timer */
		return left;
	}

	/* In a forked child, whose one thread is here: goes on with a service of the child's. */
	void move_to(tw_service *service)
	{
		bool was_armed = std::exchange(armed_, false);
		service_ = service;
		int r = waits_.empty() ? 0 : arm();
		if (r)
			std::exchange(waits_, wait_list()).complete(code_of(r));
		if (was_armed)
			unref(); /* that of the parent's timer */
	}

	alarm *next = nullptr, *previous = nullptr; /* the service's list, under its lock */

      private:
	static void expire(void *self) noexcept
	{
		static_cast<alarm *>(self)->expired();
	}

	void expired() noexcept
	{
		hand_over();
		unref();
	}

	void hand_over() noexcept
	{
		callbacks::scope inside(*callbacks_);
		wait_list due;
		int r = 0;
		{
			std::lock_guard<spin_lock> guard(lock_);
			armed_ = false;
			bool moved = due_ > armed_for_;
			if (!waits_.empty() && (!moved || (r = arm()) != 0))
				due = std::exchange(waits_, wait_list());
		}
		due.complete(code_of(r));
	}

	/* Under the lock. What is further away than the service reaches (ERANGE) is never due. */
	int arm() noexcept
	{
		std::uint64_t due_ns = tickwheel::detail::instant_ns(due_);
		if (armed_) {
			int r = tw_reset_at(service_, timer_, due_ns);
			if (r == 0)
				armed_for_ = due_;
			return r == -EBUSY || r == -ERANGE ? 0 : r;
		}
		ref();
		int r = tw_schedule_at(service_, due_ns, expire, this, &timer_);
		armed_ = r == 0;
		armed_for_ = due_;
		if (r)
			refs_.fetch_sub(1, std::memory_order_relaxed); /* the caller has one */
		return r == -ERANGE ? 0 : r;
	}

	static void complete_one(wait *one, const error_code &error)
	{
		one->complete(one, &error);
	}

	tw_service *service_;
	const std::shared_ptr<callbacks> callbacks_;
	std::atomic<std::size_t> refs_{1};
	spin_lock lock_; /* of what follows */
	bool armed_ = false;
	tw_timer timer_ = {0};
	time_point due_;            /* of the waits */
	time_point armed_for_;      /* of timer_ */
	wait_list waits_;           /* the oldest first */
	std::uint64_t last_id_ = 0; /* not under the lock */
};

} // namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail

#endif
