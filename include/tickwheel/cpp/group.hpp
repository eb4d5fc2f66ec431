/* tickwheel::group: timers that end together. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_GROUP_HPP
#define TICKWHEEL_CPP_GROUP_HPP

#include <utility>

#include "../group.h"
#include "service.hpp"

namespace tickwheel
{

namespace detail
{
inline void end_group(tw_service *service, tw_group group) noexcept
{
	static_cast<void>(tw_group_close(service, group, nullptr, nullptr));
	static_cast<void>(tw_group_cancel_wait(service, group, TW_FOREVER));
	static_cast<void>(tw_group_destroy(service, group));
}
} // namespace detail

/* A group that goes cancels its members, and waits for those that run, except the caller. */
class group : public detail::handle_owner<tw_group, detail::end_group>
{
      public:
	group() noexcept = default;
	explicit group(service &of, on_error error = {}) : handle_owner(of.get(), {0})
	{
		error(tw_group_create(&handle_, service_), "tickwheel: group");
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
		static_cast<void>(tw_group_close(service_, handle_, nullptr, nullptr));
	}
	/*
	 * Closes the group, and calls f() once when all members have ended. f may destroy what the
	 * members used, this object too. EALREADY: it has one already.
	 */
	template <class F> void close_then(F &&f, on_error error = {})
	{
		auto close = [&](void *kept) {
			return tw_group_close(service_, handle_,
					      detail::callable<std::decay_t<F>>::run_once, kept);
		};
		detail::hand_over(std::forward<F>(f), close, error, "tickwheel: close_then");
	}
};

} // namespace tickwheel

#endif
