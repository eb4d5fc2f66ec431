/* tickwheel::strand: a serial executor. Included by tickwheel/layers.hpp. */
#ifndef TICKWHEEL_CPP_STRAND_HPP
#define TICKWHEEL_CPP_STRAND_HPP

#include <utility>

#include "../strand.h"
#include "service.hpp"

namespace tickwheel
{

namespace detail
{
inline int end_strand(tw_strand *strand) noexcept
{
	static_cast<void>(tw_strand_close(strand, TW_FOREVER));
	return tw_strand_destroy(strand);
}
} // namespace detail

/*
 * Runs its tasks one at a time, in order. A strand that goes cancels the tasks that have not run,
 * and waits for the one that runs, unless that task destroys it. Destroy it before its service.
 */
class strand : public detail::owner<tw_strand, detail::end_strand>
{
      public:
	strand() noexcept = default;
	explicit strand(service &of, tw_executor *executor = nullptr, on_error error = {})
	{
		create(error, "tickwheel: strand", tw_strand_create, of.get(), executor);
	}

	/* For single timers, other strands, and coroutines that are to resume here. */
	tw_executor *executor() const noexcept
	{
		return tw_strand_executor(get());
	}

	/* f() on the strand, never inside this call. */
	template <class F> tw_strand_task_id submit(F &&f, on_error error = {})
	{
		return submit(tw_strand_task{}, std::forward<F>(f), error);
	}
	/* f() after a delay. */
	template <class Rep, class Period, class F>
	tw_strand_task_id schedule(std::chrono::duration<Rep, Period> delay, F &&f,
				   on_error error = {})
	{
		tw_strand_task task = {};
		task.delay_ns = detail::delay_ns(delay);
		return submit(task, std::forward<F>(f), error);
	}
	/* f() each period, the first time after one. */
	template <class Rep, class Period, class F>
	tw_strand_task_id every(std::chrono::duration<Rep, Period> period, F &&f,
				on_error error = {})
	{
		tw_period series = detail::period_of(detail::delay_ns(period), TW_FIXED_RATE);
		tw_strand_task task = {};
		task.period = &series;
		return submit(task, std::forward<F>(f), error);
	}
	/* A task with any options; its fn, arg, release and size are filled in. */
	template <class F> tw_strand_task_id submit(tw_strand_task task, F &&f, on_error error = {})
	{
		task.fn = detail::callable<std::decay_t<F>>::run;
		task.release = detail::callable<std::decay_t<F>>::end;
		return detail::submit_task(tw_strand_submit_task, get(), task, std::forward<F>(f),
					   error, "tickwheel: submit");
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
};

} // namespace tickwheel

#endif
