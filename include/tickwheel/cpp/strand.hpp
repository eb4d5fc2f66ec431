/* tickwheel::strand: a serial executor. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_STRAND_HPP
#define TICKWHEEL_CPP_STRAND_HPP

#include <memory>
#include <utility>

#include "../strand.h"
#include "service.hpp"

namespace tickwheel
{

/*
 * Runs its tasks one at a time, in order. A strand that goes cancels the tasks that have not run,
 * and waits for the one that runs, unless it is that task that destroys it. Destroy it before its
 * service.
 */
class strand
{
      public:
	strand() noexcept = default;
	explicit strand(service &of, tw_executor *executor = nullptr)
	{
		std::error_code error;
		*this = strand(of, executor, error);
		detail::check(error, "tickwheel: strand");
	}
	strand(service &of, tw_executor *executor, std::error_code &error) noexcept
	{
		tw_strand *made = nullptr;
		error = detail::code(tw_strand_create(&made, of.get(), executor));
		strand_.reset(made);
	}

	tw_strand *get() const noexcept
	{
		return strand_.get();
	}
	/* For single timers, other strands, and coroutines that are to resume here. */
	tw_executor *executor() const noexcept
	{
		return tw_strand_executor(get());
	}

	/* f() on the strand, never inside this call. */
	template <class F> tw_strand_task_id submit(F &&f)
	{
		return submit(tw_strand_task{}, std::forward<F>(f));
	}
	template <class F> tw_strand_task_id submit(F &&f, std::error_code &error)
	{
		return submit(tw_strand_task{}, std::forward<F>(f), error);
	}
	/* f() after a delay. */
	template <class Rep, class Period, class F>
	tw_strand_task_id schedule(std::chrono::duration<Rep, Period> delay, F &&f)
	{
		std::error_code error;
		tw_strand_task_id made = schedule(delay, std::forward<F>(f), error);
		detail::check(error, "tickwheel: schedule");
		return made;
	}
	template <class Rep, class Period, class F>
	tw_strand_task_id schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				   std::error_code &error)
	{
		tw_strand_task task = {};
		task.delay_ns = detail::delay_ns(delay);
		return submit(task, std::forward<F>(f), error);
	}
	/* f() each period, the first time after one. */
	template <class Rep, class Period, class F>
	tw_strand_task_id every(std::chrono::duration<Rep, Period> period, F &&f)
	{
		std::error_code error;
		tw_strand_task_id made = every(period, std::forward<F>(f), error);
		detail::check(error, "tickwheel: every");
		return made;
	}
	template <class Rep, class Period, class F>
	tw_strand_task_id every(std::chrono::duration<Rep, Period> period, F &&f,
				std::error_code &error)
	{
		tw_strand_task task = {};
		tw_period series = {};
		series.size = sizeof series;
		series.first_ns = series.period_ns = detail::delay_ns(period);
		task.period = &series;
		return submit(task, std::forward<F>(f), error);
	}
	/* A task with any options; its fn, arg, release and size are filled in. */
	template <class F> tw_strand_task_id submit(const tw_strand_task &task, F &&f)
	{
		std::error_code error;
		tw_strand_task_id made = submit(task, std::forward<F>(f), error);
		detail::check(error, "tickwheel: submit");
		return made;
	}
	template <class F>
	tw_strand_task_id submit(tw_strand_task task, F &&f, std::error_code &error)
	{
		using stored = detail::callable<std::decay_t<F>>;
		auto kept = detail::keep(std::forward<F>(f));
		tw_strand_task_id made = {0};
		task.size = sizeof task;
		task.fn = stored::run;
		task.arg = kept.get();
		task.release = stored::release;
		error = detail::code(tw_strand_submit_task(get(), &task, &made));
		if (!error)
			static_cast<void>(kept.release()); /* the task's, until its end */
		return made;
	}

	/* As those of a timer. */
	outcome cancel(tw_strand_task_id task) noexcept
	{
		return detail::answer(tw_strand_cancel(get(), task));
	}
	outcome cancel_wait(tw_strand_task_id task) noexcept
	{
		return detail::answer(tw_strand_cancel_wait(get(), task, TW_FOREVER));
	}

	/* Cancels what has not run, and refuses new tasks (ESHUTDOWN). */
	void close() noexcept
	{
		static_cast<void>(tw_strand_close(get(), 0));
	}

      private:
	struct destroy {
		void operator()(tw_strand *s) const noexcept
		{
			static_cast<void>(tw_strand_close(s, TW_FOREVER));
			static_cast<void>(tw_strand_destroy(s));
		}
	};
	std::unique_ptr<tw_strand, destroy> strand_;
};

} // namespace tickwheel

#endif
