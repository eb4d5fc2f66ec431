/*
 * A timer whose service runs on another clock than steady_clock: a manual one, one that is far
 * ahead (as CLOCK_BOOTTIME is after a suspend), or the process's replaced default.
 */
#include <cerrno>
#include <thread>
#include <utility>

#include "alias.hpp"
#ifndef WITH_STEADY_TIMER
#include "tickwheel.hpp"

namespace
{

using error_code = asio::error_code;

class moved_clock
{
      public:
	explicit moved_clock(std::chrono::nanoseconds start)
	{
		CHECK(tw_clock_manual_create(&clock_, static_cast<std::uint64_t>(start.count())) ==
		      0);
	}
	~moved_clock()
	{
		CHECK(tw_clock_manual_destroy(clock_) == 0);
	}
	void advance(std::chrono::nanoseconds by)
	{
		auto ns = static_cast<std::uint64_t>(by.count());
		CHECK(tw_clock_manual_advance_by(clock_, ns) == 0);
	}
	tw_clock *get()
	{
		return clock_;
	}
	/* A service that runs due timers inside advance(). */
	tw_service_config config()
	{
		tw_service_config config = {};
		config.clock = clock_;
		config.drive = TW_DRIVE_MANUAL;
		config.executor = tw_executor_inline();
		return config;
	}

      private:
	tw_clock *clock_ = nullptr;
};

/* Runs what is ready. Returns how many handlers. */
std::size_t poll(asio::io_context &io)
{
	io.restart();
	return io.poll();
}

void a_wait_ends_on_the_services_clock(asio::io_context &io, moved_clock &clock)
{
	int ended = 0;
	auto count = [&](error_code error) {
		CHECK(!error);
		ended++;
	};
	auto before = clock_type::now();
	timer relative(io, 30s), absolute(io, clock_type::now() + 20s), now(io, 0s),
	    past(io, clock_type::now() - 1s);
	CHECK(relative.expiry() >= before + 30s && relative.expiry() <= clock_type::now() + 30s);
	relative.async_wait(count);
	absolute.async_wait(count);
	now.async_wait(count);
	past.async_wait(count);
	CHECK(poll(io) == 2 && ended == 2);
	clock.advance(19s);
	CHECK(poll(io) == 0);
	clock.advance(1s + 2ms);
	CHECK(poll(io) == 1 && ended == 3);
	clock.advance(9s);
	CHECK(poll(io) == 0);
	clock.advance(1s);
	CHECK(poll(io) == 1 && ended == 4);
}

/* As after a suspend: steady_clock stands still, the service's clock goes on. */
void an_hour_that_steady_clock_does_not_see(asio::io_context &io, moved_clock &clock)
{
	int expired = 0;
	timer t(io, 1h);
	t.async_wait([&](error_code error) { expired += !error; });
	clock.advance(1h + 2ms);
	CHECK(poll(io) == 1 && expired == 1);
	CHECK(t.cancel() == 0);
	CHECK(t.expires_at(clock_type::now() + 1min) == 0);
	t.async_wait([&](error_code error) { expired += !error; });
	CHECK(poll(io) == 0);
	clock.advance(59s);
	CHECK(poll(io) == 0);
	clock.advance(1s + 2ms);
	CHECK(poll(io) == 1 && expired == 2);
}

void it_moves_with_its_instant(asio::io_context &io, moved_clock &clock)
{
	int expired = 0;
	timer from(io, 10s);
	timer to(std::move(from));
	to.async_wait([&](error_code error) { expired += !error; });
	clock.advance(9s);
	CHECK(poll(io) == 0);
	clock.advance(1s + 1ms);
	CHECK(poll(io) == 1 && expired == 1);
}

void on_a_clock(std::chrono::nanoseconds start)
{
	moved_clock clock(start);
	tickwheel::service service(clock.config());
	asio::io_context io;
	tickwheel::asio::use_service_of(io, service.get());
	a_wait_ends_on_the_services_clock(io, clock);
	an_hour_that_steady_clock_does_not_see(io, clock);
	it_moves_with_its_instant(io, clock);
}

void a_blocking_wait_ends_on_the_services_clock()
{
	moved_clock clock(1s);
	{
		tickwheel::service service(clock.config());
		asio::io_context io;
		tickwheel::asio::use_service_of(io, service.get());
		timer t(io, 1h);
		std::thread other([&] {
			struct tw_service_stats stats = TW_INIT(tw_service_stats);
			do
				CHECK(tw_service_stats(service.get(), &stats) == 0);
			while (stats.pending == 0);
			clock.advance(1h + 2ms);
		});
		error_code error = asio::error::no_memory;
		t.wait(error);
		CHECK(!error && service.now() >= tickwheel::time_point(1s + 1h));
		other.join();
		t.wait(); /* has expired */
		t.expires_after(1s);
		service.close(TW_CLOSE_DROP, 0s);
		t.wait(error);
		CHECK(error.value() == ESHUTDOWN);
	}
}

/* Whoever closes a shared service ends the waits in it: so run() returns. */
void a_close_of_the_service_ends_its_waits()
{
	moved_clock clock(1s);
	tickwheel::service service(clock.config());
	asio::io_context io;
	tickwheel::asio::use_service_of(io, service.get());
	int aborted = 0;
	timer t(io, 1h);
	t.async_wait([&](error_code e) { aborted += e == asio::error::operation_aborted; });
	service.close(TW_CLOSE_DROP, 0s);
	io.run();
	CHECK(aborted == 1);
	t.async_wait([&](error_code e) { aborted += e.value() == ESHUTDOWN; });
	io.restart();
	io.run();
	CHECK(aborted == 2 && t.cancel() == 0);
}

/* The context's own service takes the default. It has a tick thread. */
void on_the_processs_default_clock(moved_clock &clock)
{
	asio::io_context io;
	a_wait_ends_on_the_services_clock(io, clock);
	an_hour_that_steady_clock_does_not_see(io, clock);
}

void on_boottime()
{
	tw_service_config config = {};
	config.clock = tw_clock_boottime();
	tickwheel::service service(config);
	asio::io_context io;
	tickwheel::asio::use_service_of(io, service.get());
	auto begun = clock_type::now();
	timer t(io, begun + 20ms);
	t.async_wait([&](error_code error) { CHECK(!error); });
	CHECK(io.run() == 1 && clock_type::now() >= begun + 20ms);
	t.expires_after(1ms);
	t.wait();
	CHECK(t.expires_from_now() <= 0s);
}

} // namespace

int main()
{
	moved_clock by_default(5s);
	CHECK(tw_clock_set_default(by_default.get()) == 0);
	on_the_processs_default_clock(by_default);
	on_a_clock(1s);
	on_a_clock(clock_type::now().time_since_epoch() + 24h);
	on_a_clock(140 * 365 * 24h);
	a_blocking_wait_ends_on_the_services_clock();
	a_close_of_the_service_ends_its_waits();
	on_boottime();
	std::puts("clocks: ok");
	return 0;
}

#else

int main()
{
	std::puts("clocks: ok");
	return 0;
}

#endif
