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
	explicit group(service &of, on_error error = {}) : service_(of.get())
	{
		error(tw_group_create(&handle_, service_), "tickwheel: group");
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
	tw_timer schedule(std::chrono::duration<Rep, Period> delay, F &&f, on_error error = {})
	{
		return schedule(detail::task_in(detail::delay_ns(delay)), std::forward<F>(f),
				error);
	}
	/* A task with any options; its fn, arg, release, group and size are filled in. */
	template <class F> tw_timer schedule(tw_task task, F &&f, on_error error = {})
	{
		tw_service *of = handle_.id ? service_ : nullptr; /* no timer without an owner */
		task.group = handle_;
		return detail::schedule_task(of, task, std::forward<F>(f), error);
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
		return detail::answer(
		    tw_group_cancel_wait(service_, handle_, detail::timeout_ns(timeout)));
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
	template <class F> void close_then(F &&f, on_error error = {})
	{
		auto close = [&](void *kept) {
			return tw_group_close_then(
			    service_, handle_, detail::callable<std::decay_t<F>>::run_once, kept);
		};
		detail::hand_over(std::forward<F>(f), close, error, "tickwheel: close_then");
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
		close();
		static_cast<void>(tw_group_cancel_wait(service_, handle_, TW_FOREVER));
		static_cast<void>(tw_group_destroy(service_, detach()));
	}

	tw_service *service_ = nullptr;
	tw_group handle_ = {0};
};

} // namespace tickwheel

#endif
