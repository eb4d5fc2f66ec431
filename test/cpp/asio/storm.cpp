/*
 * A storm of cancels on three threads: each wait completes once, and as many with
 * operation_aborted as the cancels have said.
 */
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "alias.hpp"

namespace
{

constexpr int connections = 1000, rounds = 200;

std::atomic<long> begun, expired, aborted, cancelled, wrong;

/* Its timer is used in its strand alone, as a connection's is. */
class connection : public std::enable_shared_from_this<connection>
{
      public:
	connection(asio::io_context &io, unsigned seed)
	    : strand_(asio::make_strand(io)), timer_(strand_), random_(seed)
	{
	}
	void start()
	{
		asio::post(strand_, [self = shared_from_this()] { self->step(); });
	}

      private:
	void wait()
	{
		begun++;
		timer_.async_wait(
		    [self = shared_from_this(), due = timer_.expiry()](asio::error_code error) {
			    wrong += error && error != asio::error::operation_aborted;
			    wrong += !error && clock_type::now() < due;
			    (error ? aborted : expired)++;
		    });
	}
	void step()
	{
		if (round_++ == rounds) {
			cancelled += static_cast<long>(timer_.cancel());
			return;
		}
		switch (random_() % 6) {
		case 0:
			cancelled += static_cast<long>(timer_.cancel());
			break;
		case 1:
			cancelled += static_cast<long>(timer_.cancel_one());
			break;
		case 2: {
			timer moved(std::move(timer_));
			timer_ = std::move(moved);
			break;
		}
		default:
			cancelled += static_cast<long>(
			    timer_.expires_after(std::chrono::microseconds(random_() % 3000)));
			wait();
			if (random_() % 4 == 0)
				wait();
			break;
		}
		start();
	}

	asio::strand<asio::io_context::executor_type> strand_;
	timer timer_;
	std::minstd_rand random_;
	int round_ = 0;
};

} // namespace

int main()
{
	asio::io_context io;
	for (int i = 0; i < connections; i++)
		std::make_shared<connection>(io, static_cast<unsigned>(i) + 1)->start();
	std::thread threads[] = {std::thread([&] { io.run(); }), std::thread([&] { io.run(); })};
	io.run();
	for (std::thread &t : threads)
		t.join();
	CHECK(wrong == 0);
	CHECK(begun == expired + aborted);
	CHECK(aborted == cancelled);
	CHECK(expired > 0 && aborted > 0);
	std::printf("%ld waits, each completed once; the cancels were right\n", begun.load());
	return 0;
}
