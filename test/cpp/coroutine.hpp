/* What the tests of coroutines share: two kinds of coroutines, and how many timers are pending. */
#ifndef TEST_CPP_COROUTINE_HPP
#define TEST_CPP_COROUTINE_HPP

#include "support.hpp"

#if defined(__cpp_impl_coroutine)

#include <exception>
#include <utility>

/* Begins immediately, and throws nothing. */
struct promise {
	std::suspend_never initial_suspend() noexcept
	{
		return {};
	}
	void return_void()
	{
	}
	void unhandled_exception()
	{
		std::terminate();
	}
};

/* Runs by itself, and frees its frame at its end. */
struct detached {
	struct promise_type : promise {
		detached get_return_object()
		{
			return {};
		}
		std::suspend_never final_suspend() noexcept
		{
			return {};
		}
	};
};

/* Its owner destroys it, whether it has ended or not. */
class owned
{
      public:
	struct promise_type : promise {
		owned get_return_object()
		{
			return owned(std::coroutine_handle<promise_type>::from_promise(*this));
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
	};
	explicit owned(std::coroutine_handle<promise_type> handle) : handle_(handle)
	{
	}
	owned(owned &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
	{
	}
	~owned()
	{
		destroy();
	}
	void destroy()
	{
		if (handle_)
			std::exchange(handle_, nullptr).destroy();
	}

      private:
	std::coroutine_handle<promise_type> handle_;
};

inline std::uint64_t pending(const tickwheel::service &service)
{
	struct tw_service_stats stats = TW_INIT(tw_service_stats);
	CHECK(tw_service_stats(service.get(), &stats) == 0);
	return stats.pending;
}

#endif

#endif
