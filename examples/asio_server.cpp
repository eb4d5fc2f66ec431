/*
 * An asio server that closes idle connections. Only the timer's type is not asio's: with
 * asio::steady_timer in its place the program does the same. Three clients call, say 1, 5 and 10
 * words, and fall silent.
 */
#include <array>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include <asio.hpp>

#include "tickwheel_asio.hpp"

using namespace std::chrono_literals;
using asio::ip::tcp;
using timer = tickwheel::asio::timer;

static int sessions, closed_as_idle;

class session : public std::enable_shared_from_this<session>
{
      public:
	explicit session(tcp::socket socket)
	    : socket_(std::move(socket)), idle_(socket_.get_executor())
	{
	}

	/* Each read moves the timeout: the wait that is under way is cancelled. */
	void read()
	{
		idle_.expires_after(150ms);
		idle_.async_wait([self = shared_from_this()](asio::error_code error) {
			if (error)
				return; /* moved, or the session has ended */
			closed_as_idle++;
			self->socket_.close();
		});
		socket_.async_read_some(
		    asio::buffer(data_),
		    [self = shared_from_this()](asio::error_code error, std::size_t n) {
			    if (error)
				    self->idle_.cancel();
			    else
				    self->write(n);
		    });
	}

      private:
	void write(std::size_t n)
	{
		asio::async_write(socket_, asio::buffer(data_, n),
				  [self = shared_from_this()](asio::error_code error, std::size_t) {
					  if (!error)
						  self->read();
				  });
	}

	tcp::socket socket_;
	timer idle_;
	std::array<char, 1024> data_;
};

/* A client of the old kind, on a thread of its own. It waits until the server hangs up. */
static void call(tcp::endpoint server, int words)
{
	asio::io_context io;
	tcp::socket socket(io);
	asio::error_code ended;
	std::array<char, 5> heard;
	socket.connect(server);
	for (; words > 0 && !ended; words--) {
		asio::write(socket, asio::buffer("hello", 5), ended);
		asio::read(socket, asio::buffer(heard), ended);
		std::this_thread::sleep_for(20ms);
	}
	asio::read(socket, asio::buffer(heard), ended);
}

static void accept(tcp::acceptor &acceptor)
{
	acceptor.async_accept([&acceptor](asio::error_code error, tcp::socket socket) {
		if (error)
			return;
		std::make_shared<session>(std::move(socket))->read();
		if (++sessions < 3)
			accept(acceptor);
	});
}

int main()
{
	asio::io_context io;
	tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
	accept(acceptor);
	std::vector<std::thread> clients;
	for (int words : {1, 5, 10})
		clients.emplace_back(call, acceptor.local_endpoint(), words);
	io.run(); /* until nothing is left to do */
	for (std::thread &client : clients)
		client.join();
	std::printf("%d sessions, %d closed as idle\n", sessions, closed_as_idle);
	return sessions == 3 && closed_as_idle == 3 ? 0 : 1;
}
