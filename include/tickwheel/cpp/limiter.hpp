/* tickwheel::limiter: jobs, a given number at a time. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_LIMITER_HPP
#define TICKWHEEL_CPP_LIMITER_HPP

#include <cerrno>
#include <memory>
#include <type_traits>
#include <utility>

#include "../limiter.h"
#include "service.hpp"

namespace tickwheel
{

/*
 * Runs jobs, a given number at a time. A limiter that goes drops the jobs that wait, and waits for
 * those that run. None of its own jobs or callbacks may destroy it. Destroy it before its service.
 *
 * A job is any callable: of () or of (tw_job_run &), returning void, or int as tw_job_fn does. It
 * is called for each attempt, and destroyed when nothing of the job is called any more.
 */
class limiter
{
      public:
	limiter() noexcept = default;
	limiter(service &of, std::uint32_t max_concurrency) : limiter(of, of_size(max_concurrency))
	{
	}
	limiter(service &of, std::uint32_t max_concurrency, std::error_code &error) noexcept
	    : limiter(of, of_size(max_concurrency), error)
	{
	}
	limiter(service &of, const tw_limiter_config &config)
	{
		std::error_code error;
		*this = limiter(of, config, error);
		detail::check(error, "tickwheel: limiter");
	}
	/* config.size may be left 0. */
	limiter(service &of, tw_limiter_config config, std::error_code &error) noexcept
	{
		tw_limiter *made = nullptr;
		config.size = sizeof config;
		error = detail::code(tw_limiter_create(&made, of.get(), &config));
		limiter_.reset(made);
	}

	tw_limiter *get() const noexcept
	{
		return limiter_.get();
	}

	template <class F> tw_job submit(F &&f)
	{
		return submit(tw_limiter_task{}, std::forward<F>(f));
	}
	template <class F> tw_job submit(F &&f, std::error_code &error)
	{
		return submit(tw_limiter_task{}, std::forward<F>(f), error);
	}
	/* A job with any options; its fn, arg, release and size are filled in. */
	template <class F> tw_job submit(const tw_limiter_task &task, F &&f)
	{
		std::error_code error;
		tw_job made = submit(task, std::forward<F>(f), error);
		detail::check(error, "tickwheel: submit");
		return made;
	}
	template <class F> tw_job submit(tw_limiter_task task, F &&f, std::error_code &error)
	{
		using stored = attempts<std::decay_t<F>>;
		std::unique_ptr<stored> kept(new stored{std::forward<F>(f)});
		tw_job made = {};
		task.size = sizeof task;
		task.fn = stored::run;
		task.arg = kept.get();
		task.release = stored::release;
		error = detail::code(tw_limiter_submit_task(get(), &task, &made));
		if (!error)
			static_cast<void>(kept.release()); /* the job's, until its end */
		return made;
	}

	/* cancelled: it has settled; running: its attempt runs. */
	outcome cancel(tw_job job) noexcept
	{
		return detail::answer(tw_job_cancel(get(), job));
	}
	/* False: not idle within the timeout. EDEADLK throws. */
	template <class Rep, class Period>
	bool wait_idle(std::chrono::duration<Rep, Period> timeout)
	{
		std::error_code error;
		bool idle = wait_idle(timeout, error);
		detail::check(error, "tickwheel: wait_idle");
		return idle;
	}
	template <class Rep, class Period>
	bool wait_idle(std::chrono::duration<Rep, Period> timeout, std::error_code &error) noexcept
	{
		int r = tw_limiter_wait_idle(get(), detail::timeout_ns(timeout));
		error = r == -ETIMEDOUT ? std::error_code() : detail::code(r);
		return r >= 0;
	}
	void set_max_concurrency(std::uint32_t permits)
	{
		std::error_code error;
		set_max_concurrency(permits, error);
		detail::check(error, "tickwheel: set_max_concurrency");
	}
	void set_max_concurrency(std::uint32_t permits, std::error_code &error) noexcept
	{
		error = detail::code(tw_limiter_set_max_concurrency(get(), permits));
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
	void close(tw_close_mode mode, std::chrono::duration<Rep, Period> timeout)
	{
		std::error_code error;
		close(mode, timeout, error);
		detail::check(error, "tickwheel: close");
	}
	template <class Rep, class Period>
	void close(tw_close_mode mode, std::chrono::duration<Rep, Period> timeout,
		   std::error_code &error) noexcept
	{
		error = detail::code(tw_limiter_close(get(), mode, detail::timeout_ns(timeout)));
	}

      private:
	template <class F> struct attempts {
		F f;
		static int run(void *self, tw_job_run *run) noexcept
		{
			return detail::result_of([&]() -> decltype(auto) {
				if constexpr (std::is_invocable_v<F &, tw_job_run &>)
					return static_cast<attempts *>(self)->f(*run);
				else
					return static_cast<attempts *>(self)->f();
			});
		}
		static void release(void *self) noexcept
		{
			delete static_cast<attempts *>(self);
		}
	};

	struct destroy {
		void operator()(tw_limiter *l) const noexcept
		{
			int closed = tw_limiter_close(l, TW_CLOSE_DROP, TW_FOREVER);
			while (closed == 0 && tw_limiter_destroy(l) == -EBUSY)
				; /* each call waits for what is about to return */
		}
	};

	static tw_limiter_config of_size(std::uint32_t max_concurrency) noexcept
	{
		tw_limiter_config config = {};
		config.max_concurrency = max_concurrency;
		return config;
	}

	std::unique_ptr<tw_limiter, destroy> limiter_;
};

} // namespace tickwheel

#endif
