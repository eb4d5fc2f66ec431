/* tickwheel::group: timers that end together. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_GROUP_HPP
#define TICKWHEEL_CPP_GROUP_HPP

#include <utility>

#include "../group.h"
#include "service.hpp"

namespace tickwheel
{

/* A group that goes cancels its members, and waits for those that run, except the caller. */
class group
{
      public:
	group() noexcept = default;
	explicit group(service &of)
	{
		std::error_code error;
		*this = group(of, error);
		detail::check(error, "tickwheel: group");
	}
	group(service &of, std::error_code &error) noexcept : service_(of.get())
	{
		error = detail::code(tw_group_create(&handle_, service_));
	}
	group(group &&other) noexcept : service_(other.service_), handle_(other.detach())
	{
	}
	group &operator=(group &&other) noexcept
	{
		if (this != &other) {
			end();
			service_ = other.service_;
			handle_ = other.detach();
		}
		return *this;
	}
	~group()
	{
		end();
	}

	/*
	 * f() after delay, as a member. The group owns the timer; the handle is for C functions.
	 * EINVAL: this object has no group, as after an error, a move or a detach.
	 */
	template <class Rep, class Period, class F>
	tw_timer schedule(std::chrono::duration<Rep, Period> delay, F &&f)
	{
		tw_task task = {};
		task.when_ns = detail::delay_ns(delay);
		return schedule(task, std::forward<F>(f));
	}
	template <class Rep, class Period, class F>
	tw_timer schedule(std::chrono::duration<Rep, Period> delay, F &&f, std::error_code &error)
	{
		tw_task task = {};
		task.when_ns = detail::delay_ns(delay);
		return schedule(task, std::forward<F>(f), error);
	}
	template <class F> tw_timer schedule(const tw_task &task, F &&f)
	{
		std::error_code error;
		tw_timer made = schedule(task, std::forward<F>(f), error);
		detail::check(error, "tickwheel: schedule");
		return made;
	}
	/* A task with any options; its fn, arg, release, group and size are filled in. */
	template <class F> tw_timer schedule(tw_task task, F &&f, std::error_code &error)
	{
		tw_service *of = handle_.id ? service_ : nullptr; /* no timer without an owner */
		task.group = handle_;
		return detail::schedule_callable(of, task, std::forward<F>(f), error);
	}

	/* Cancels the members; later ones are not affected. */
	void cancel() noexcept
	{
		static_cast<void>(tw_group_cancel(service_, handle_));
	}
	/* The same, and waits: cancelled, running (the timeout), or self (called by a member). */
	template <class Rep, class Period>
	outcome cancel_wait(std::chrono::duration<Rep, Period> timeout)
	{
		int r = tw_group_cancel_wait(service_, handle_, detail::timeout_ns(timeout));
		return r < 0 ? outcome::gone : static_cast<outcome>(r);
	}
	/* Cancels the members, and refuses new ones (ESHUTDOWN). */
	void close() noexcept
	{
		static_cast<void>(tw_group_close(service_, handle_));
	}
	/*
	 * Closes the group, and calls f() once when all members have ended. f may destroy what the
	 * members used, this object too. EALREADY: it has one already.
	 */
	template <class F> void close_then(F &&f)
	{
		std::error_code error;
		close_then(std::forward<F>(f), error);
		detail::check(error, "tickwheel: close_then");
	}
	template <class F> void close_then(F &&f, std::error_code &error)
	{
		using stored = detail::callable<std::decay_t<F>>;
		auto kept = detail::keep(std::forward<F>(f));
		error = detail::code(
		    tw_group_close_then(service_, handle_, stored::run_once, kept.get()));
		if (!error)
			static_cast<void>(kept.release());
	}

	/* Gives the group up without ending it. */
	tw_group detach() noexcept
	{
		return std::exchange(handle_, tw_group{0});
	}
	tw_group handle() const noexcept
	{
		return handle_;
	}

      private:
	void end() noexcept
	{
		if (!handle_.id)
			return;
		static_cast<void>(tw_group_close(service_, handle_));
		static_cast<void>(tw_group_cancel_wait(service_, handle_, TW_FOREVER));
		static_cast<void>(tw_group_destroy(service_, detach()));
	}

	tw_service *service_ = nullptr;
	tw_group handle_ = {0};
};

} // namespace tickwheel

#endif
