/* Boost's five timer tutorials: a blocking wait, a wait, arguments, a member, threads. */
#include <functional>
#include <thread>

#include "alias.hpp"

namespace
{

void blocking_wait()
{
	asio::io_context io;
	auto begun = clock_type::now();
	timer t(io, 30ms);
	t.wait();
	CHECK(clock_type::now() - begun >= 30ms);
	std::puts("one: the wait is over");
}

void greet(const asio::error_code &error)
{
	std::printf("two: hello (%d)\n", error.value());
}

void asynchronous_wait()
{
	asio::io_context io;
	auto begun = clock_type::now();
	timer t(io, 30ms);
	t.async_wait(&greet);
	std::puts("two: before run");
	std::printf("two: %zu handler ran\n", io.run());
	CHECK(clock_type::now() - begun >= 30ms);
}

void count_up(const asio::error_code &, timer *t, int *count)
{
	if (*count == 5)
		return;
	std::printf("three: %d\n", ++*count);
	t->expires_at(t->expiry() + 10ms);
	t->async_wait(std::bind(count_up, std::placeholders::_1, t, count));
}

void arguments()
{
	asio::io_context io;
	int count = 0;
	auto begun = clock_type::now();
	timer t(io, 10ms);
	t.async_wait(std::bind(count_up, std::placeholders::_1, &t, &count));
	std::printf("three: %zu handlers ran\n", io.run());
	std::printf("three: the final count is %d\n", count);
	CHECK(clock_type::now() - begun >= 60ms);
}

class printer
{
      public:
	explicit printer(asio::io_context &io) : timer_(io, 10ms)
	{
		timer_.async_wait(std::bind(&printer::print, this));
	}
	~printer()
	{
		std::printf("four: the final count is %d\n", count_);
	}
	void print()
	{
		if (count_ == 3)
			return;
		std::printf("four: %d\n", count_++);
		timer_.expires_at(timer_.expiry() + 10ms);
		timer_.async_wait(std::bind(&printer::print, this));
	}

      private:
	timer timer_;
	int count_ = 0;
};

void member()
{
	asio::io_context io;
	printer p(io);
	io.run();
}

/* Two timers share a count without a lock: two threads run the context, handlers one strand. */
class two_timers
{
      public:
	explicit two_timers(asio::io_context &io)
	    : strand_(asio::make_strand(io)), one_(io, 1ms), other_(io, 1ms)
	{
		one_.async_wait(
		    asio::bind_executor(strand_, [this](asio::error_code) { step(one_); }));
		other_.async_wait(
		    asio::bind_executor(strand_, [this](asio::error_code) { step(other_); }));
	}
	~two_timers()
	{
		std::printf("five: the final count is %d\n", count_);
	}

      private:
	void step(timer &t)
	{
		CHECK(strand_.running_in_this_thread());
		if (count_ >= 100)
			return;
		count_++;
		t.expires_at(t.expiry() + 1ms);
		t.async_wait(
		    asio::bind_executor(strand_, [this, &t](asio::error_code) { step(t); }));
	}

	asio::strand<asio::io_context::executor_type> strand_;
	timer one_, other_;
	int count_ = 0;
};

void threads()
{
	asio::io_context io;
	two_timers p(io);
	std::thread second([&] { io.run(); });
	io.run();
	second.join();
}

} // namespace

int main()
{
	blocking_wait();
	asynchronous_wait();
	arguments();
	member();
	threads();
	return 0;
}
