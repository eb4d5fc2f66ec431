/* Each member of the interface, and each rule of asio's that a timer's handler may count on. */
#include <array>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "alias.hpp"

namespace
{

std::string told(const asio::error_code &error)
{
	return !error                                    ? "expired"
	       : error == asio::error::operation_aborted ? "aborted"
							 : error.message();
}

auto tell(const char *what)
{
	return [what](const asio::error_code &error) {
		std::printf("%s: %s\n", what, told(error).c_str());
	};
}

void types()
{
	static_assert(std::is_same_v<timer::executor_type, asio::any_io_executor>);
	static_assert(std::is_same_v<timer::clock_type, std::chrono::steady_clock>);
	static_assert(std::is_same_v<timer::duration, std::chrono::steady_clock::duration>);
	static_assert(std::is_same_v<timer::time_point, std::chrono::steady_clock::time_point>);
	static_assert(!std::is_copy_constructible_v<timer> && !std::is_copy_assignable_v<timer>);
	static_assert(std::is_move_constructible_v<timer> && std::is_move_assignable_v<timer>);
	using own = timer::rebind_executor<asio::io_context::executor_type>::other;
	static_assert(std::is_same_v<own::executor_type, asio::io_context::executor_type>);
	static_assert(!std::is_convertible_v<asio::io_context &, timer>);
}

void counts_of_cancels()
{
	asio::io_context io;
	timer t(io);
	CHECK(t.expiry() == timer::time_point());
	CHECK(t.expires_after(1h) == 0 && t.cancel() == 0 && t.cancel_one() == 0);
	t.async_wait(tell("first"));
	t.async_wait(tell("second"));
	t.async_wait(tell("third"));
	CHECK(t.cancel_one() == 1);
	CHECK(t.cancel() == 2);
	CHECK(t.cancel() == 0);
	t.async_wait(tell("fourth"));
	auto at = clock_type::now() + 1h;
	CHECK(t.expires_at(at) == 1 && t.expiry() == at);
	t.async_wait(tell("fifth"));
	CHECK(t.expires_after(2h) == 1);
	std::printf("%zu handlers ran\n", io.run());
}

void no_handler_runs_inside_a_call()
{
	asio::io_context io;
	bool ran = false;
	timer t(io);
	t.async_wait([&](asio::error_code) { ran = true; });
	CHECK(!ran);
	t.cancel();
	CHECK(!ran);
	io.run();
	CHECK(ran);
}

void what_is_past_expires_at_once_and_what_has_expired_is_not_cancelled()
{
	asio::io_context io;
	timer never_set(io), negative(io, -1s), past(io, clock_type::now() - 1h);
	never_set.async_wait(tell("never set"));
	std::printf("%zu handler ran\n", io.run());
	io.restart();
	negative.async_wait(tell("negative"));
	io.run();
	io.restart();
	past.async_wait(tell("past"));
	io.run();
	CHECK(past.cancel() == 0);
}

void the_latest_time_point_is_never_due()
{
	asio::io_context io;
	timer event(io, timer::time_point::max()), forever(io, timer::duration::max()),
	    setter(io, 5ms);
	CHECK(forever.expiry() == timer::time_point::max());
	event.async_wait(tell("event"));
	forever.async_wait(tell("forever"));
	setter.async_wait(
	    [&](asio::error_code) { CHECK(event.cancel_one() == 1 && forever.cancel() == 1); });
	io.run();
}

void run_returns_when_no_wait_is_left()
{
	asio::io_context io;
	timer idle(io, 1h);
	CHECK(io.run() == 0);
	io.restart();
	idle.async_wait(tell("idle"));
	CHECK(io.poll() == 0);
	idle.cancel();
	CHECK(io.run_one() == 1);
	CHECK(io.run() == 0);
}

void one_handler_a_turn()
{
	asio::io_context io;
	timer t(io);
	for (int i = 0; i < 3; i++)
		t.async_wait([](asio::error_code) {});
	int turns = 0;
	while (io.run_one())
		turns++;
	std::printf("%d turns\n", turns);
}

void earlier_goes_first()
{
	asio::io_context io;
	timer late(io, 60ms), early(io, 20ms), middle(io, 40ms);
	late.async_wait(tell("late"));
	early.async_wait(tell("early"));
	middle.async_wait(tell("middle"));
	io.run();
}

void a_move_takes_the_waits()
{
	asio::io_context io;
	timer from(io, 10ms);
	from.async_wait(tell("moved"));
	timer to(std::move(from));
	CHECK(from.expiry() == timer::time_point());
	CHECK(from.cancel() == 0);
	timer third(io, 1h);
	third.async_wait(tell("overwritten"));
	third = std::move(to);
	io.run();
	io.restart();
	from.expires_after(1ms); /* still a timer */
	from.async_wait(tell("moved from"));
	io.run();
	basic_timer<asio::io_context::executor_type> plain(io, 1ms);
	timer converted(std::move(plain));
	converted.async_wait(tell("converted"));
	io.restart();
	io.run();
	converted = basic_timer<asio::io_context::executor_type>(io, 2h);
	CHECK(converted.expiry() > clock_type::now() + 1h);
}

void a_timer_that_goes_cancels()
{
	asio::io_context io;
	auto t = std::make_unique<timer>(io, 1h);
	t->async_wait(tell("of one that goes"));
	t.reset();
	io.run();
	auto expired = std::make_unique<timer>(io, 1ms);
	expired->async_wait([&](asio::error_code error) {
		expired.reset();
		tell("destroyed in its handler")(error);
	});
	io.restart();
	io.run();
}

/* Each handler has a share of `alive`. */
void a_context_that_goes_destroys_handlers()
{
	auto alive = std::make_shared<int>();
	{
		asio::io_context io;
		auto owned = std::make_shared<timer>(io, 1h),
		     due = std::make_shared<timer>(io, 1ms);
		owned->async_wait([owned, alive](asio::error_code) { CHECK(false); });
		due->async_wait([due, alive](asio::error_code) { CHECK(false); });
		owned.reset();
		due.reset();
		std::this_thread::sleep_for(10ms);
		CHECK(alive.use_count() == 3);
	}
	CHECK(alive.use_count() == 1);
}

void slots_cancel_one_wait()
{
	asio::io_context io;
	timer t(io, 20ms);
	asio::cancellation_signal first, second, third;
	t.async_wait(asio::bind_cancellation_slot(first.slot(), tell("slot one")));
	t.async_wait(asio::bind_cancellation_slot(second.slot(), tell("slot two")));
	t.async_wait(asio::bind_cancellation_slot(third.slot(), tell("slot three")));
	second.emit(asio::cancellation_type::total);
	third.emit(asio::cancellation_type::none);
	CHECK(io.poll() == 1);
	io.run();
	first.emit(asio::cancellation_type::terminal); /* too late */
	io.restart();
	CHECK(io.poll() == 0);
}

void futures_and_deferred_tokens()
{
	asio::io_context io;
	timer t(io, 5ms), aborted(io, 1h);
	std::future<void> done = t.async_wait(asio::use_future);
	std::future<void> failed = aborted.async_wait(asio::use_future);
	aborted.cancel();
	io.run();
	done.get();
	try {
		failed.get();
		CHECK(false);
	} catch (const asio::system_error &error) {
		std::printf("future: %s\n", told(error.code()).c_str());
	}
}

/* Counts what is asked of it. */
template <class T> struct counting {
	using value_type = T;
	std::array<int, 2> *counts;
	explicit counting(std::array<int, 2> *c) : counts(c)
	{
	}
	template <class U> counting(const counting<U> &other) : counts(other.counts)
	{
	}
	T *allocate(std::size_t n)
	{
		(*counts)[0]++;
		return std::allocator<T>().allocate(n);
	}
	void deallocate(T *p, std::size_t n)
	{
		(*counts)[1]++;
		std::allocator<T>().deallocate(p, n);
	}
	template <class U> bool operator==(const counting<U> &other) const
	{
		return counts == other.counts;
	}
	template <class U> bool operator!=(const counting<U> &other) const
	{
		return counts != other.counts;
	}
};

void allocators()
{
	asio::io_context io;
	std::array<int, 2> counts{};
	timer t(io, 1ms);
	t.async_wait(asio::bind_allocator(counting<void>(&counts), [&](asio::error_code) {
		CHECK(counts[0] > 0 && counts[0] == counts[1]); /* all free before the call */
	}));
	io.run();
	CHECK(counts[0] > 0 && counts[0] == counts[1]);
}

void a_handler_that_only_moves()
{
	asio::io_context io;
	timer t(io, 1ms);
	t.async_wait(
	    [p = std::make_unique<int>(7)](asio::error_code) { std::printf("moved a %d\n", *p); });
	io.run();
}

void throws_out_of_run()
{
	asio::io_context io;
	timer t(io, 1ms);
	t.async_wait([](asio::error_code) { throw 7; });
	try {
		io.run();
		CHECK(false);
	} catch (int seven) {
		std::printf("threw %d\n", seven);
	}
}

#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)
asio::awaitable<void> sleep_twice(std::string who, timer::duration each)
{
	timer t(co_await asio::this_coro::executor);
	for (int i = 0; i < 2; i++) {
		t.expires_after(each);
		co_await t.async_wait(asio::use_awaitable);
		std::printf("%s slept\n", who.c_str());
	}
}

void awaitables()
{
	asio::io_context io;
	asio::co_spawn(io, sleep_twice("short", 10ms), asio::detached);
	asio::co_spawn(io, sleep_twice("long", 50ms), asio::detached);
	io.run();
	asio::cancellation_signal stop;
	asio::co_spawn(io, sleep_twice("nobody", 1h),
		       asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr ended) {
			       try {
				       std::rethrow_exception(ended);
			       } catch (const asio::system_error &error) {
				       std::printf("coroutine: %s\n", told(error.code()).c_str());
			       }
		       }));
	timer t(io, 5ms);
	t.async_wait([&](asio::error_code) { stop.emit(asio::cancellation_type::terminal); });
	io.restart();
	io.run();
}

using by_default = asio::use_awaitable_t<>::as_default_on_t<timer>;

asio::awaitable<void> without_a_token()
{
	by_default t(co_await asio::this_coro::executor, 1ms);
	co_await t.async_wait();
	std::puts("default token");
}

void default_tokens()
{
	asio::io_context io;
	asio::co_spawn(io, without_a_token(), asio::detached);
	io.run();
}
#endif

} // namespace

int main()
{
	types();
	counts_of_cancels();
	no_handler_runs_inside_a_call();
	what_is_past_expires_at_once_and_what_has_expired_is_not_cancelled();
	the_latest_time_point_is_never_due();
	run_returns_when_no_wait_is_left();
	one_handler_a_turn();
	earlier_goes_first();
	a_move_takes_the_waits();
	a_timer_that_goes_cancels();
	a_context_that_goes_destroys_handlers();
	slots_cancel_one_wait();
	futures_and_deferred_tokens();
	allocators();
	a_handler_that_only_moves();
	throws_out_of_run();
#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)
	awaitables();
	default_tokens();
#endif
	return 0;
}
