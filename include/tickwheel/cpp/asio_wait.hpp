/* A wait of a tickwheel::asio::timer: a handler, and what keeps its executors at work. */
#ifndef TICKWHEEL_CPP_ASIO_WAIT_HPP
#define TICKWHEEL_CPP_ASIO_WAIT_HPP

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

#ifdef TICKWHEEL_BOOST_ASIO
#include <boost/system/system_error.hpp>
#define TICKWHEEL_ASIO_HEADER(name) <boost/asio/name.hpp>
#define TICKWHEEL_ASIO_NAMESPACE boost_asio
#else
#include <asio/system_error.hpp>
#define TICKWHEEL_ASIO_HEADER(name) <asio/name.hpp>
#define TICKWHEEL_ASIO_NAMESPACE asio
#endif
// clang-format off
#include TICKWHEEL_ASIO_HEADER(any_io_executor)
#include TICKWHEEL_ASIO_HEADER(associated_allocator)
#include TICKWHEEL_ASIO_HEADER(associated_cancellation_slot)
#include TICKWHEEL_ASIO_HEADER(associated_executor)
#include TICKWHEEL_ASIO_HEADER(async_result)
#include TICKWHEEL_ASIO_HEADER(cancellation_type)
#include TICKWHEEL_ASIO_HEADER(error)
#include TICKWHEEL_ASIO_HEADER(execution)
#include TICKWHEEL_ASIO_HEADER(execution_context)
#include TICKWHEEL_ASIO_HEADER(io_context)
#include TICKWHEEL_ASIO_HEADER(post)
#include TICKWHEEL_ASIO_HEADER(prefer)
#include TICKWHEEL_ASIO_HEADER(recycling_allocator)
#include TICKWHEEL_ASIO_HEADER(wait_traits)
// clang-format on

namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE
{
#ifdef TICKWHEEL_BOOST_ASIO
namespace net = ::boost::asio;
using ::boost::system::error_code;
using ::boost::system::system_error;
#else
namespace net = ::asio;
using ::asio::error_code;
using ::asio::system_error;
#endif
} // namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE
#ifdef TICKWHEEL_BOOST_ASIO
namespace tickwheel
{
namespace asio = boost_asio; /* a program may use both, in different files */
}
#endif

namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail
{

/* A handler that waits. It is ended once: without an error code it is destroyed, not called. */
struct wait {
	virtual void end(const std::optional<error_code> &error) = 0;
	wait *next = nullptr;
	std::uint64_t id = 0;

      protected:
	~wait() = default;
};

/* A queue of waits. */
class wait_list
{
      public:
	bool empty() const noexcept
	{
		return !first_;
	}
	void push(wait *pushed) noexcept
	{
		pushed->next = nullptr;
		(last_ ? last_->next : first_) = pushed;
		last_ = pushed;
	}
	wait *pop() noexcept
	{
		wait *popped = first_;
		first_ = popped->next;
		if (!first_)
			last_ = nullptr;
		return popped;
	}
	void append(wait_list other) noexcept
	{
		while (!other.empty())
			push(other.pop());
	}
	wait *remove(std::uint64_t id) noexcept
	{
		wait *removed = nullptr;
		for (wait_list all = std::exchange(*this, wait_list()); !all.empty();) {
			wait *popped = all.pop();
			if (popped->id == id)
				removed = popped;
			else
				push(popped);
		}
		return removed;
	}
	void end(const std::optional<error_code> &error)
	{
		while (!empty())
			pop()->end(error);
	}

      private:
	wait *first_ = nullptr, *last_ = nullptr;
};

/* An executor that has work outstanding. */
template <class Executor> class busy
{
      public:
	explicit busy(const Executor &executor)
	    : executor_(executor),
	      tracked_(net::prefer(executor, net::execution::outstanding_work.tracked))
	{
	}
	template <class F> void post(F &&f)
	{
		net::post(executor_, std::forward<F>(f));
	}

      private:
	using tracked = std::decay_t<decltype(net::prefer(
	    std::declval<const Executor &>(), net::execution::outstanding_work.tracked))>;
	Executor executor_;
	tracked tracked_;
};

/* The usual executor is an io_context's in an any_io_executor. Its own calls are cheaper. */
template <> class busy<net::any_io_executor>
{
      public:
	explicit busy(const net::any_io_executor &executor) : busy_(choose(executor))
	{
	}
	template <class F> void post(F &&f)
	{
		if (auto *plain = std::get_if<busy<plain_executor>>(&busy_))
			plain->post(std::forward<F>(f));
		else
			net::post(std::get<other>(busy_).executor, std::forward<F>(f));
	}

      private:
	using plain_executor = net::io_context::executor_type;
	struct other {
		net::any_io_executor executor, tracked;
	};
	using either = std::variant<busy<plain_executor>, other>;

	static either choose(const net::any_io_executor &executor)
	{
#if !defined(ASIO_NO_TYPEID) && !defined(BOOST_ASIO_NO_TYPEID)
		/* The target() of asio 1.22 does not compare the types. */
		if (executor.target_type() == typeid(plain_executor))
			return either(std::in_place_index<0>, *executor.target<plain_executor>());
#endif
		return either(
		    std::in_place_index<1>,
		    other{executor,
			  net::prefer(executor, net::execution::outstanding_work.tracked)});
	}

	either busy_;
};

/* A handler with its argument. */
template <class Handler> struct bound {
	using allocator_type = net::associated_allocator_t<Handler>;

	allocator_type get_allocator() const noexcept
	{
		return net::get_associated_allocator(handler);
	}
	void operator()()
	{
		std::move(handler)(error);
	}

	Handler handler;
	error_code error;
};

class alarm;

/* What a cancellation slot holds. */
template <class Alarm> class slot_cancel
{
      public:
	slot_cancel(Alarm &alarm, std::uint64_t id) noexcept : alarm_(alarm), id_(id)
	{
		alarm_.ref();
	}
	slot_cancel(const slot_cancel &) = delete;
	slot_cancel &operator=(const slot_cancel &) = delete;
	~slot_cancel()
	{
		alarm_.unref();
	}
	void operator()(net::cancellation_type_t type)
	{
		if (type != net::cancellation_type::none)
			alarm_.cancel_id(id_);
	}

      private:
	Alarm &alarm_;
	std::uint64_t id_;
};

template <class Handler, class Executor> class wait_of final : public wait
{
	using handler_executor = net::associated_executor_t<Handler, Executor>;
	using handler_allocator = net::associated_allocator_t<Handler>;

	/* Memory that asio keeps for a context's threads, unless the handler brings its own. */
	static auto allocator_of(const Handler &handler) noexcept
	{
		if constexpr (std::is_same_v<handler_allocator, std::allocator<void>>)
			return net::recycling_allocator<wait_of>();
		else
			return typename std::allocator_traits<handler_allocator>::
			    template rebind_alloc<wait_of>(net::get_associated_allocator(handler));
	}

      public:
	template <class H, class Alarm>
	static wait *make(H &&handler, const Executor &executor, Alarm &alarm)
	{
		auto allocator = allocator_of(handler);
		using traits = std::allocator_traits<decltype(allocator)>;
		wait_of *at = traits::allocate(allocator, 1);
		std::uint64_t id = alarm.next_id();
		auto slot = net::get_associated_cancellation_slot(handler);
		try {
			if (slot.is_connected())
				slot.template emplace<slot_cancel<Alarm>>(alarm, id);
			::new (static_cast<void *>(at)) wait_of(std::forward<H>(handler), executor);
		} catch (...) {
			traits::deallocate(allocator, at, 1);
			throw;
		}
		at->id = id;
		return at;
	}

      private:
	template <class H>
	wait_of(H &&handler, const Executor &executor)
	    : handler_(std::forward<H>(handler)),
	      busy_(net::get_associated_executor(handler_, executor))
	{
		if constexpr (std::is_same_v<handler_executor, Executor>) {
			if (net::get_associated_executor(handler_, executor) == executor)
				return;
		}
		timers_busy_.emplace(executor);
	}

	/* The memory is free before the handler can run. */
	void end(const std::optional<error_code> &error) override
	{
		auto allocator = allocator_of(handler_);
		Handler handler(std::move(handler_));
		busy<handler_executor> at_work(std::move(busy_));
		std::optional<busy<Executor>> timers_at_work(std::move(timers_busy_));
		this->~wait_of();
		std::allocator_traits<decltype(allocator)>::deallocate(allocator, this, 1);
		if (error)
			at_work.post(bound<Handler>{std::move(handler), *error});
	}

	Handler handler_;
	busy<handler_executor> busy_;
	std::optional<busy<Executor>> timers_busy_; /* if the handler's executor is another */
};

} // namespace tickwheel::TICKWHEEL_ASIO_NAMESPACE::detail

#endif
