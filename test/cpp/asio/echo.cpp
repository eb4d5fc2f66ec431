/*
 * An echo server with idle timeouts, and its clients, on two threads. A third of the clients says
 * nothing after a few words: the server must close these, and only these.
 */
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "alias.hpp"

namespace
{

using tcp = asio::ip::tcp;

constexpr int clients = 60, words = 40;
/* A busy machine holds a client up for half a second. */
constexpr auto idle = 3000ms, pause_between = 10ms;

std::atomic<int> opened, closed_idle, closed_by_peer, echoed;

class session : public std::enable_shared_from_this<session>
{
      public:
	explicit session(tcp::socket socket)
	    : socket_(std::move(socket)), idle_(socket_.get_executor())
	{
		opened++;
	}
	void start()
	{
		read();
	}

      private:
	void touch()
	{
		idle_.expires_after(idle);
		idle_.async_wait([self = shared_from_this()](asio::error_code error) {
			if (error)
				return;
			closed_idle++;
			self->timed_out_ = true;
			self->socket_.close();
		});
	}
	void read()
	{
		touch();
		socket_.async_read_some(
		    asio::buffer(data_),
		    [self = shared_from_this()](asio::error_code error, std::size_t n) {
			    if (error)
				    return self->end();
			    self->write(n);
		    });
	}
	void write(std::size_t n)
	{
		asio::async_write(socket_, asio::buffer(data_, n),
				  [self = shared_from_this()](asio::error_code error, std::size_t) {
					  if (error)
						  return self->end();
					  echoed++;
					  self->read();
				  });
	}
	void end()
	{
		idle_.cancel();
		if (!timed_out_)
			closed_by_peer++;
	}

	tcp::socket socket_;
	timer idle_;
	bool timed_out_ = false;
	std::array<char, 64> data_;
};

/* Each session's socket has a strand as its executor, and so have its timer and handlers. */
class server
{
      public:
	explicit server(asio::io_context &io)
	    : io_(io), acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0))
	{
		accept();
	}
	tcp::endpoint endpoint() const
	{
		return acceptor_.local_endpoint();
	}

      private:
	void accept()
	{
		acceptor_.async_accept(
		    asio::make_strand(io_), [this](asio::error_code error, tcp::socket socket) {
			    if (error)
				    return;
			    std::make_shared<session>(std::move(socket))->start();
			    if (opened < clients)
				    accept();
		    });
	}

	asio::io_context &io_;
	tcp::acceptor acceptor_;
};

/* Says its words, with pauses; then goes, or waits until the server closes. */
class client : public std::enable_shared_from_this<client>
{
      public:
	client(asio::io_context &io, bool silent)
	    : socket_(asio::make_strand(io)), pause_(socket_.get_executor()), silent_(silent)
	{
	}
	void start(const tcp::endpoint &server)
	{
		socket_.async_connect(server, [self = shared_from_this()](asio::error_code error) {
			CHECK(!error);
			self->speak();
		});
	}

      private:
	void speak()
	{
		if (said_ == (silent_ ? 3 : words) && !silent_)
			return socket_.close();
		if (said_++ < (silent_ ? 3 : words))
			asio::write(socket_, asio::buffer("word", 4));
		asio::async_read(socket_, asio::buffer(heard_),
				 [self = shared_from_this()](asio::error_code error, std::size_t) {
					 CHECK(!error || self->silent_);
					 if (!error)
						 self->rest();
				 });
	}
	void rest()
	{
		pause_.expires_after(pause_between);
		pause_.async_wait([self = shared_from_this()](asio::error_code error) {
			CHECK(!error);
			self->speak();
		});
	}

	tcp::socket socket_;
	timer pause_;
	bool silent_;
	int said_ = 0;
	std::array<char, 4> heard_;
};

} // namespace

int main()
{
	asio::io_context io;
	server s(io);
	for (int i = 0; i < clients; i++)
		std::make_shared<client>(io, i % 3 == 0)->start(s.endpoint());
	std::thread second([&] { io.run(); });
	io.run();
	second.join();
	std::printf("%d sessions, %d words echoed\n", opened.load(), echoed.load());
	std::printf("%d closed as idle, %d by their clients\n", closed_idle.load(),
		    closed_by_peer.load());
	return 0;
}
