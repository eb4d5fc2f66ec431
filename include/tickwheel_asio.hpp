/*
 * Timers for asio programs, with the interface of asio::steady_timer. C++17, header only, for the
 * standalone asio 1.22 or later, or for Boost 1.79 or later: define TICKWHEEL_BOOST_ASIO before the
 * include. tickwheel::asio is then another name of tickwheel::boost_asio.
 *
 *     asio::io_context io;
 *     tickwheel::asio::timer timeout(io, 30s);
 *     timeout.async_wait([](asio::error_code error) { ... });
 *     io.run();
 *
 * What differs from asio::steady_timer:
 *
 *   - Arming costs the same however many timers there are, and no system call.
 *   - A wait ends up to 1 ms late, the tick, plus the hand-over from another thread.
 *   - Time passes on the service's clock: a wait ends there as far ahead as the instant of
 *     expires_at is on steady_clock at the call.
 *   - Each context with such timers has one more thread, or shares a service: use_service_of.
 *   - A wait that cannot be armed completes with the error. A close of a shared service ends its
 *     waits with operation_aborted.
 *   - asio::executor and io_context::strand are not accepted; what io_context::strand::wrap returns
 *     is.
 *   - notify_fork is honored. In a forked child, waits in a shared service complete with EPERM.
 *     Without notify_fork, new waits do so, and old ones never complete.
 *
 * A context made with ASIO_CONCURRENCY_HINT_UNSAFE or _UNSAFE_IO has no locks and cannot be used.
 *
 * Threads: one timer is used by one thread at a time. Handlers run as the associated executor says,
 * never inside a call on the timer.
 */
#ifndef TICKWHEEL_ASIO_HPP
#define TICKWHEEL_ASIO_HPP

#if __cplusplus < 201703L
#error "tickwheel_asio.hpp needs C++17: compile with -std=c++17 or later"
#else

#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "tickwheel/cpp/asio_service.hpp"

namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE
{

/*
 * Lets the timers of a context use a service that exists, and outlives the context. Call it before
 * the context's first timer is made: else it throws asio::service_already_exists.
 */
inline void use_service_of(net::execution_context &context, tw_service *service)
{
	net::make_service<detail::timer_service>(context, service);
}

template <class Executor = net::any_io_executor> class basic_timer
{
      public:
	using executor_type = Executor;
	using clock_type = std::chrono::steady_clock;
	using duration = clock_type::duration;
	using time_point = clock_type::time_point;
	using traits_type = net::wait_traits<clock_type>;

	/* The type of timer with another executor. */
	template <class Executor1> struct rebind_executor {
		using other = basic_timer<Executor1>;
	};

	explicit basic_timer(const executor_type &executor)
	    : executor_(executor), service_(&detail::service_of(executor))
	{
	}
	basic_timer(const executor_type &executor, const time_point &expiry) : basic_timer(executor)
	{
		expires_at(expiry);
	}
	basic_timer(const executor_type &executor, const duration &expiry) : basic_timer(executor)
	{
		expires_after(expiry);
	}

	template <class Context>
	using if_context =
	    std::enable_if_t<std::is_convertible_v<Context &, net::execution_context &>>;
	template <class Context, class = if_context<Context>>
	explicit basic_timer(Context &context) : basic_timer(executor_type(context.get_executor()))
	{
	}
	template <class Context, class = if_context<Context>>
	basic_timer(Context &context, const time_point &expiry) : basic_timer(context)
	{
		expires_at(expiry);
	}
	template <class Context, class = if_context<Context>>
	basic_timer(Context &context, const duration &expiry) : basic_timer(context)
	{
		expires_after(expiry);
	}

	/* Its waits move, too. The other timer is as if just made. */
	basic_timer(basic_timer &&other) noexcept : executor_(other.executor_)
	{
		take(other);
	}
	template <class Executor1,
		  class = std::enable_if_t<std::is_convertible_v<Executor1, Executor>>>
	basic_timer(basic_timer<Executor1> &&other) : executor_(other.executor_)
	{
		take(other);
	}

	/* Cancels the waits that this timer had. */
	basic_timer &operator=(basic_timer &&other)
	{
		if (this != &other) {
			end();
			executor_ = other.executor_;
			take(other);
		}
		return *this;
	}
	template <class Executor1>
	std::enable_if_t<std::is_convertible_v<Executor1, Executor>, basic_timer &>
	operator=(basic_timer<Executor1> &&other)
	{
		end();
		executor_ = Executor(other.executor_);
		take(other);
		return *this;
	}
	basic_timer(const basic_timer &) = delete;
	basic_timer &operator=(const basic_timer &) = delete;
	~basic_timer()
	{
		end();
	}

	executor_type get_executor() noexcept
	{
		return executor_;
	}

	/* Returns how many waits complete with operation_aborted: those that had not expired. */
	std::size_t cancel()
	{
		return alarm_ && waits_ ? cancel_some(SIZE_MAX) : 0;
	}
	/* The same for the oldest wait. */
	std::size_t cancel_one()
	{
		return alarm_ && waits_ ? cancel_some(1) : 0;
	}

	time_point expiry() const
	{
		if (!expiry_)
			expiry_ = detail::clocks(service_->service()).to_steady(due_);
		return *expiry_;
	}
	/* Both cancel the waits, and return how many. */
	std::size_t expires_at(const time_point &expiry)
	{
		detail::clocks clocks(service_->service());
		expiry_ = expiry;
		due_ = clocks.from_steady(expiry);
		known_now_ = clocks.now;
		return cancel();
	}
	std::size_t expires_after(const duration &delay)
	{
		using instant = tickwheel::time_point;
		known_now_ = service_->now();
		bool beyond = delay > instant::max() - known_now_;
		due_ = beyond ? instant::max() : known_now_ + delay;
		expiry_.reset();
		return cancel();
	}

	/* Blocks until the expiry. */
	void wait()
	{
		error_code error;
		wait(error);
		if (error)
			throw system_error(error, "tickwheel: wait");
	}
	void wait(error_code &error)
	{
		error = service_->now() < due_ ? service_->wait_until(due_) : error_code();
	}

	/* Completes with (error_code): no error at the expiry, operation_aborted after a cancel. */
	template <class Token = typename net::default_completion_token<executor_type>::type>
	auto
	async_wait(Token &&token = typename net::default_completion_token<executor_type>::type())
	{
		return net::async_initiate<Token, void(error_code)>(initiate{this}, token);
	}

#if !defined(ASIO_NO_DEPRECATED) && !defined(BOOST_ASIO_NO_DEPRECATED)
	std::size_t cancel(error_code &error)
	{
		error = error_code();
		return cancel();
	}
	std::size_t cancel_one(error_code &error)
	{
		error = error_code();
		return cancel_one();
	}
	time_point expires_at() const
	{
		return expiry();
	}
	std::size_t expires_at(const time_point &expiry, error_code &error)
	{
		error = error_code();
		return expires_at(expiry);
	}
	duration expires_from_now() const
	{
		return std::chrono::duration_cast<duration>(due_ - service_->now());
	}
	std::size_t expires_from_now(const duration &delay)
	{
		return expires_after(delay);
	}
	std::size_t expires_from_now(const duration &delay, error_code &error)
	{
		error = error_code();
		return expires_after(delay);
	}
#endif

      private:
	template <class Executor1> friend class basic_timer;

	struct initiate {
		using executor_type = Executor;
		basic_timer *self;

		executor_type get_executor() const noexcept
		{
			return self->executor_;
		}
		template <class Handler> void operator()(Handler &&handler) const
		{
			self->start(std::forward<Handler>(handler));
		}
	};

	template <class Handler> void start(Handler &&handler)
	{
		if (!alarm_)
			alarm_ = service_->make_alarm();
		using wait = detail::wait_of<std::decay_t<Handler>, Executor>;
		auto *made = wait::make(std::forward<Handler>(handler), executor_, *alarm_);
		if (due_ <= known_now_)
			return made->end(error_code());
		waits_ = true;
		alarm_->start(made, due_);
	}

	std::size_t cancel_some(std::size_t most)
	{
		waits_ = most != SIZE_MAX;
		return alarm_->cancel(most);
	}

	void end() noexcept
	{
		if (alarm_)
			service_->end_alarm(std::exchange(alarm_, nullptr));
	}

	template <class Other> void take(Other &other) noexcept
	{
		service_ = other.service_;
		alarm_ = std::exchange(other.alarm_, nullptr);
		expiry_ = std::exchange(other.expiry_, std::optional<time_point>(std::in_place));
		due_ = std::exchange(other.due_, tickwheel::time_point());
		known_now_ = std::exchange(other.known_now_, tickwheel::time_point());
		waits_ = std::exchange(other.waits_, false);
	}

	Executor executor_;
	detail::timer_service *service_ = nullptr;
	detail::alarm *alarm_ = nullptr;  /* made by the first wait */
	tickwheel::time_point due_;       /* on the service's clock */
	tickwheel::time_point known_now_; /* its last reading: what is not later has expired */
	/* due_ on steady_clock: as it was given, or as asked for first */
	mutable std::optional<time_point> expiry_{std::in_place};
	bool waits_ = false; /* perhaps some */
};

using timer = basic_timer<>;

} // namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE

#endif
#endif
