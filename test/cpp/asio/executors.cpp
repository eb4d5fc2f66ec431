/* Where handlers run: on the timer's executor, or on the one that comes with the handler. */
#include <atomic>
#include <future>
#include <thread>

#include "alias.hpp"

namespace
{

void one_that_is_bound_to_the_handler()
{
	asio::io_context io, other;
	auto strand = asio::make_strand(other);
	timer t(io, 1ms);
	CHECK(t.get_executor() == io.get_executor());
	bool in_strand = false;
	t.async_wait(asio::bind_executor(
	    strand, [&](asio::error_code) { in_strand = strand.running_in_this_thread(); }));
	std::thread second([&] { other.run(); });
	io.run();
	second.join();
	other.restart();
	other.run();
	CHECK(in_strand);
}

void a_pool()
{
	asio::thread_pool pool(2);
	timer pooled(pool, 1ms);
	std::promise<bool> on_pool;
	pooled.async_wait([&](asio::error_code) {
		on_pool.set_value(pool.get_executor().running_in_this_thread());
	});
	CHECK(on_pool.get_future().get());
	pool.join();
}

/* In a timer of the usual type, and beside a handler, the strand's type is erased. */
void a_strand()
{
	asio::io_context io;
	auto strand = asio::make_strand(io);
	int in_strand = 0;
	auto count = [&](asio::error_code) { in_strand += strand.running_in_this_thread(); };
	timer expires(strand, 1ms), aborts(strand, 1h), past(strand, 0ms), of_context(io, 1ms);
	basic_timer<decltype(strand)> typed(strand, 1ms);
	expires.async_wait(count);
	aborts.async_wait(count);
	aborts.cancel();
	past.async_wait(count);
	of_context.async_wait(asio::bind_executor(asio::any_io_executor(strand), count));
	typed.async_wait(count);
	io.run();
	CHECK(in_strand == 5);
}

void the_system_executor()
{
	std::promise<asio::error_code> done;
	timer t(asio::any_io_executor(asio::system_executor()), 1ms);
	t.async_wait([&](asio::error_code error) { done.set_value(error); });
	CHECK(!done.get_future().get());
	auto &context = asio::query(asio::system_executor(), asio::execution::context);
	context.stop();
	context.join();
}

#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)
using strand_of_io = asio::strand<asio::io_context::executor_type>;

asio::awaitable<void> work_in_turns(strand_of_io strand, std::atomic<int> &inside,
				    std::atomic<int> &wrong)
{
	timer t(co_await asio::this_coro::executor);
	for (int i = 0; i < 20; i++) {
		t.expires_after(1ms);
		co_await t.async_wait(asio::use_awaitable);
		wrong += inside++ != 0 || !strand.running_in_this_thread();
		std::this_thread::yield();
		inside--;
	}
}

void a_strand_of_coroutines()
{
	asio::io_context io;
	auto strand = asio::make_strand(io);
	std::atomic<int> inside{0}, wrong{0};
	for (int i = 0; i < 10; i++)
		asio::co_spawn(strand, work_in_turns(strand, inside, wrong), asio::detached);
	std::thread second([&] { io.run(); });
	io.run();
	second.join();
	CHECK(wrong == 0);
}
#endif

} // namespace

int main()
{
	one_that_is_bound_to_the_handler();
	a_pool();
	a_strand();
	the_system_executor();
#if defined(ASIO_HAS_CO_AWAIT) || defined(BOOST_ASIO_HAS_CO_AWAIT)
	a_strand_of_coroutines();
#endif
	std::puts("executors: ok");
	return 0;
}
