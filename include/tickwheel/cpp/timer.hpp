/* tickwheel::timer: the owner of a timer. Included by tickwheel.hpp. */
#ifndef TICKWHEEL_CPP_TIMER_HPP
#define TICKWHEEL_CPP_TIMER_HPP

#include <cerrno>
#include <utility>

#include "base.hpp"

namespace tickwheel
{

namespace detail
{
/* Waits for the callback, unless this runs inside it. */
inline void end_timer(tw_service *service, tw_timer timer) noexcept
{
	static_cast<void>(tw_cancel_wait(service, timer, TW_FOREVER));
}
} // namespace detail

/* A timer that is cancelled when its owner goes. */
class timer : public detail::handle_owner<tw_timer, detail::end_timer>
{
      public:
	using handle_owner::handle_owner;

	/* Never waits. outcome::running: its callback runs right now. */
	outcome cancel() noexcept
	{
		return service_ ? detail::answer(tw_cancel(service_, handle_)) : outcome::gone;
	}

	/*
	 * After any result except running (the timeout) and self (called by its own callback),
	 * nothing of it runs.
	 */
	outcome cancel_wait() noexcept
	{
		return cancel_wait(forever);
	}
	template <class Rep, class Period>
	outcome cancel_wait(std::chrono::duration<Rep, Period> timeout)
	{
		if (!service_)
			return outcome::gone;
		return detail::answer(
		    tw_cancel_wait(service_, handle_, detail::timeout_ns(timeout)));
	}

	/*
	 * Due after `delay` from now, or at `deadline`, instead. Re-arms it from its own callback,
	 * and arms a disarmed persistent timer. False: too late, it is gone or runs; or this object
	 * owns none.
	 */
	template <class Rep, class Period>
	bool reset(std::chrono::duration<Rep, Period> delay, on_error error = {})
	{
		return moved(tw_reset, detail::delay_ns(delay), error);
	}
	bool reset_at(time_point deadline, on_error error = {})
	{
		return moved(tw_reset_at, detail::instant_ns(deadline), error);
	}

	/* The same, but only if that is earlier. False also if it is due by then. */
	template <class Rep, class Period>
	bool reset_earlier(std::chrono::duration<Rep, Period> delay, on_error error = {})
	{
		return moved(tw_reset_earlier, detail::delay_ns(delay), error);
	}

	/* Of a persistent timer (service::persistent): it does not run until reset arms it. */
	outcome disarm() noexcept
	{
		return service_ ? detail::answer(tw_disarm(service_, handle_)) : outcome::gone;
	}

	/* A hint: is it waiting to run? */
	bool is_pending() const noexcept
	{
		return service_ && tw_is_pending(service_, handle_);
	}

      private:
	using reset_fn = int(tw_service *, tw_timer, std::uint64_t);

	bool moved(reset_fn *fn, std::uint64_t when_ns, on_error error)
	{
		int r = service_ ? fn(service_, handle_, when_ns) : -ENOENT;
		bool too_late = r == -ENOENT || r == -EBUSY || r == -ECANCELED;
		error(too_late ? 0 : r, "tickwheel: reset");
		return r == 0;
	}
};

} // namespace tickwheel

#endif
