/* tickwheel::scheduler: cooperative tasks with priorities. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_SCHEDULER_HPP
#define TICKWHEEL_CPP_SCHEDULER_HPP

#include <cerrno>
#include <memory>
#include <type_traits>
#include <utility>

#include "../scheduler.h"
#include "service.hpp"

namespace tickwheel
{

/*
 * Runs cooperative tasks, one at a time. A scheduler that goes drops the tasks that have not
 * run, and waits for the turn that runs. None of its own tasks may destroy it. Destroy it before
 * its service.
 *
 * A task is any callable: of () or of (tw_turn &), returning void, or int as tw_turn_fn does:
 * TW_TURN_AGAIN calls it again. It is destroyed when the task has ended.
 */
class scheduler
{
      public:
	scheduler() noexcept = default;
	explicit scheduler(service &of, const tw_scheduler_config &config = tw_scheduler_config{})
	{
		std::error_code error;
		*this = scheduler(of, config, error);
		detail::check(error, "tickwheel: scheduler");
	}
	/* config.size may be left 0. */
	scheduler(service &of, tw_scheduler_config config, std::error_code &error) noexcept
	{
		tw_scheduler *made = nullptr;
		config.size = sizeof config;
		error = detail::code(tw_scheduler_create(&made, of.get(), &config));
		scheduler_.reset(made);
	}

	tw_scheduler *get() const noexcept
	{
		return scheduler_.get();
	}

	template <class F> tw_scheduler_task_id submit(tw_priority priority, F &&f)
	{
		return submit(of_priority(priority), std::forward<F>(f));
	}
	template <class F>
	tw_scheduler_task_id submit(tw_priority priority, F &&f, std::error_code &error)
	{
		return submit(of_priority(priority), std::forward<F>(f), error);
	}
	template <class Rep, class Period, class F>
	tw_scheduler_task_id schedule(std::chrono::duration<Rep, Period> delay,
				      tw_priority priority, F &&f)
	{
		std::error_code error;
		tw_scheduler_task_id made = schedule(delay, priority, std::forward<F>(f), error);
		detail::check(error, "tickwheel: schedule");
		return made;
	}
	template <class Rep, class Period, class F>
	tw_scheduler_task_id schedule(std::chrono::duration<Rep, Period> delay,
				      tw_priority priority, F &&f, std::error_code &error)
	{
		tw_scheduler_task task = of_priority(priority);
		task.delay_ns = detail::delay_ns(delay);
		return submit(task, std::forward<F>(f), error);
	}
	/* A task with any options; its fn, arg, done and size are filled in. */
	template <class F> tw_scheduler_task_id submit(const tw_scheduler_task &task, F &&f)
	{
		std::error_code error;
		tw_scheduler_task_id made = submit(task, std::forward<F>(f), error);
		detail::check(error, "tickwheel: submit");
		return made;
	}
	template <class F>
	tw_scheduler_task_id submit(tw_scheduler_task task, F &&f, std::error_code &error)
	{
		using stored = turns<std::decay_t<F>>;
		std::unique_ptr<stored> kept(new stored{std::forward<F>(f)});
		tw_scheduler_task_id made = {0};
		task.size = sizeof task;
		task.fn = stored::run;
		task.arg = kept.get();
		task.done = stored::done;
		error = detail::code(tw_scheduler_submit_task(get(), &task, &made));
		if (!error)
			static_cast<void>(kept.release()); /* the task's, until its end */
		return made;
	}

	outcome cancel(tw_scheduler_task_id task) noexcept
	{
		return detail::answer(tw_scheduler_cancel(get(), task));
	}
	bool should_yield() const noexcept
	{
		return tw_scheduler_should_yield(get());
	}
	/* For TW_HOST_MANUAL: true if there is more to run. EBUSY and ESHUTDOWN throw. */
	bool run(std::size_t budget = TW_NO_LIMIT)
	{
		std::error_code error;
		bool more = run(budget, error);
		detail::check(error, "tickwheel: run");
		return more;
	}
	bool run(std::size_t budget, std::error_code &error) noexcept
	{
		int r = tw_scheduler_run(get(), budget);
		error = detail::code(r);
		return r == TW_SCHEDULER_RUN_MORE;
	}
	/* As tw_scheduler_close: ETIMEDOUT, EDEADLK. */
	template <class Rep, class Period> void close(std::chrono::duration<Rep, Period> timeout)
	{
		std::error_code error;
		close(timeout, error);
		detail::check(error, "tickwheel: close");
	}
	template <class Rep, class Period>
	void close(std::chrono::duration<Rep, Period> timeout, std::error_code &error) noexcept
	{
		error = detail::code(tw_scheduler_close(get(), detail::timeout_ns(timeout)));
	}

      private:
	template <class F> struct turns {
		F f;
		static int run(tw_turn *turn, void *self) noexcept
		{
			return detail::result_of([&]() -> decltype(auto) {
				if constexpr (std::is_invocable_v<F &, tw_turn &>)
					return static_cast<turns *>(self)->f(*turn);
				else
					return static_cast<turns *>(self)->f();
			});
		}
		static void done(void *self, tw_fate, int) noexcept
		{
			delete static_cast<turns *>(self);
		}
	};

	static tw_scheduler_task of_priority(tw_priority priority) noexcept
	{
		tw_scheduler_task task = {};
		task.priority = priority;
		return task;
	}

	struct destroy {
		void operator()(tw_scheduler *s) const noexcept
		{
			static_cast<void>(tw_scheduler_destroy(s));
		}
	};
	std::unique_ptr<tw_scheduler, destroy> scheduler_;
};

} // namespace tickwheel

#endif
