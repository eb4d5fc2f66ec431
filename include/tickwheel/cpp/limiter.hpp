/* tickwheel::limiter: jobs, a given number at a time. Included by tickwheel/layers.hpp. */
#ifndef TICKWHEEL_CPP_LIMITER_HPP
#define TICKWHEEL_CPP_LIMITER_HPP

#include <cerrno>
#include <utility>

#include "../limiter.h"
#include "service.hpp"

namespace tickwheel
{

namespace detail
{
inline int end_limiter(tw_limiter *limiter) noexcept
{
	int r = tw_limiter_close(limiter, TW_CLOSE_DROP, TW_FOREVER);
	while (r == 0 && tw_limiter_destroy(limiter) == -EBUSY)
		; /* each call waits for what is about to return */
	return r;
}
} // namespace detail

/*
 * Runs jobs, a given number at a time. A limiter that goes drops the jobs that wait, and waits for
 * those that run. None of its own jobs or callbacks may destroy it. Destroy it before its service.
 *
 * A job is any callable: of () or of (tw_job_run &), returning void, or int as tw_job_fn does. It
 * is called for each attempt, and destroyed when nothing of the job is called any more.
 */
class limiter : public detail::owner<tw_limiter, detail::end_limiter>
{
      public:
	limiter() noexcept = default;
	limiter(service &of, std::uint32_t max_concurrency, on_error error = {})
	    : limiter(of, of_size(max_concurrency), error)
	{
	}
	/* config.size may be left 0. */
	limiter(service &of, tw_limiter_config config, on_error error = {})
	{
		config.size = sizeof config;
		create(error, "tickwheel: limiter", tw_limiter_create, of.get(), &config);
	}

	template <class F> tw_job submit(F &&f, on_error error = {})
	{
		return submit(tw_limiter_task{}, std::forward<F>(f), error);
	}
	/* A job with any options; its fn, arg, release and size are filled in. */
	template <class F> tw_job submit(tw_limiter_task task, F &&f, on_error error = {})
	{
		task.fn = detail::callable<std::decay_t<F>>::attempt;
		task.release = detail::callable<std::decay_t<F>>::end;
		return detail::submit_task(tw_limiter_submit_task, get(), task, std::forward<F>(f),
					   error, "tickwheel: submit");
	}

	/* cancelled: it has settled; running: its attempt runs. */
	outcome cancel(tw_job job) noexcept
	{
		return detail::answer(tw_job_cancel(get(), job));
	}
	/* False: not idle within the timeout. EDEADLK throws. */
	template <class Rep, class Period>
	bool wait_idle(std::chrono::duration<Rep, Period> timeout, on_error error = {})
	{
		int r = tw_limiter_wait_idle(get(), detail::timeout_ns(timeout));
		error(r == -ETIMEDOUT ? 0 : r, "tickwheel: wait_idle");
		return r >= 0;
	}
	void set_max_concurrency(std::uint32_t permits, on_error error = {})
	{
		error(tw_limiter_set_max_concurrency(get(), permits),
		      "tickwheel: set_max_concurrency");
	}
	void pause() noexcept
	{
		static_cast<void>(tw_limiter_set_paused(get(), true));
	}
	void resume() noexcept
	{
		static_cast<void>(tw_limiter_set_paused(get(), false));
	}
	/* As tw_limiter_close: ETIMEDOUT, EDEADLK. */
	template <class Rep, class Period>
	void close(tw_close_mode mode, std::chrono::duration<Rep, Period> timeout,
		   on_error error = {})
	{
		error(tw_limiter_close(get(), mode, detail::timeout_ns(timeout)),
		      "tickwheel: close");
	}

      private:
	static tw_limiter_config of_size(std::uint32_t max_concurrency) noexcept
	{
		tw_limiter_config config = {};
		config.max_concurrency = max_concurrency;
		return config;
	}
};

} // namespace tickwheel

#endif
