/* tickwheel::scheduler: cooperative tasks with priorities. Included by tickwheel/layers.hpp. */
#ifndef TICKWHEEL_CPP_SCHEDULER_HPP
#define TICKWHEEL_CPP_SCHEDULER_HPP

#include <utility>

#include "../scheduler.h"
#include "service.hpp"

namespace tickwheel
{

/*
 * Runs cooperative tasks, one at a time. A scheduler that goes drops the tasks that have not run,
 * and waits for the turn that runs. None of its own tasks may destroy it. Destroy it before its
 * service.
 *
 * A task is any callable: of () or of (tw_turn &), returning void, or int as tw_turn_fn does:
 * TW_TURN_AGAIN calls it again. It is destroyed when the task has ended.
 */
class scheduler : public detail::owner<tw_scheduler, tw_scheduler_destroy>
{
      public:
	scheduler() noexcept = default;
	/* config.size may be left 0. */
	explicit scheduler(service &of, tw_scheduler_config config = {}, on_error error = {})
	{
		config.size = sizeof config;
		create(error, "tickwheel: scheduler", tw_scheduler_create, of.get(), &config);
	}

	template <class F>
	tw_scheduler_task_id submit(tw_priority priority, F &&f, on_error error = {})
	{
		return submit(of_priority(priority), std::forward<F>(f), error);
	}
	template <class Rep, class Period, class F>
	tw_scheduler_task_id schedule(std::chrono::duration<Rep, Period> delay,
				      tw_priority priority, F &&f, on_error error = {})
	{
		tw_scheduler_task task = of_priority(priority);
		task.delay_ns = detail::delay_ns(delay);
		return submit(task, std::forward<F>(f), error);
	}
	/* A task with any options; its fn, arg, done and size are filled in. */
	template <class F>
	tw_scheduler_task_id submit(tw_scheduler_task task, F &&f, on_error error = {})
	{
		task.fn = detail::callable<std::decay_t<F>>::turn;
		task.done = detail::callable<std::decay_t<F>>::end;
		return detail::submit_task(tw_scheduler_submit_task, get(), task,
					   std::forward<F>(f), error, "tickwheel: submit");
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
	bool run(std::size_t budget = TW_NO_LIMIT, on_error error = {})
	{
		int r = tw_scheduler_run(get(), budget);
		error(r, "tickwheel: run");
		return r == TW_SCHEDULER_RUN_MORE;
	}
	/* As tw_scheduler_close: ETIMEDOUT, EDEADLK. */
	template <class Rep, class Period>
	void close(std::chrono::duration<Rep, Period> timeout, on_error error = {})
	{
		error(tw_scheduler_close(get(), detail::timeout_ns(timeout)), "tickwheel: close");
	}

      private:
	static tw_scheduler_task of_priority(tw_priority priority) noexcept
	{
		tw_scheduler_task task = {};
		task.priority = priority;
		return task;
	}
};

} // namespace tickwheel

#endif
