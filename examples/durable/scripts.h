/*
 * The Lua scripts. ARGV[1] is the prefix of the shard's keys. A cluster of Redis servers would need
 * the keys themselves, in KEYS.
 *
 * All scripts but SUBMIT run on a full server too (allow-oom): jobs that are in the store can
 * always be run and removed, and new ones are refused. Redis 7.0 is the first that has the flag.
 */
#ifndef DURABLE_SCRIPTS_H
#define DURABLE_SCRIPTS_H

#define FULL_TOO "#!lua flags=allow-oom\n"

#define NOW                                 \
	"local time = redis.call('TIME')\n" \
	"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"

/* prefix, id, deadline, payload. A holder that has loaded that far gets it as a new one. */
#define SUBMIT                                                                      \
	"#!lua\nlocal p, id = ARGV[1], ARGV[2]\n"                                   \
	"redis.call('HSET', p .. 'job', id, ARGV[4])\n"                             \
	"redis.call('ZADD', p .. 'due', ARGV[3], id)\n"                             \
	"local loaded = redis.call('GET', p .. 'until')\n"                          \
	"if loaded and tonumber(ARGV[3]) <= tonumber(loaded) then\n"                \
	"  redis.call('ZADD', p .. 'new', redis.call('INCR', p .. 'number'), id)\n" \
	"end\n"                                                                     \
	"return 0\n"

/* prefix, id */
#define CANCEL                                                            \
	FULL_TOO "local p, id = ARGV[1], ARGV[2]\n"                       \
		 "local n = redis.call('ZREM', p .. 'due', id)\n"         \
		 "if n > 0 then redis.call('HDEL', p .. 'job', id) end\n" \
		 "return n\n"

/* token, time: how many nodes have called this within that time */
#define JOIN                                                                                    \
	FULL_TOO NOW "redis.call('ZADD', 'durable:nodes', now, ARGV[1])\n"                      \
		     "redis.call('ZREMRANGEBYSCORE', 'durable:nodes', '-inf', now - ARGV[2])\n" \
		     "return redis.call('ZCARD', 'durable:nodes')\n"

/*
 * prefix, token, lease, window, loaded, seen, may acquire, gives up. `loaded`: how far the node has
 * loaded; 0: it has nothing. `seen`: the number of the last new job that it knows.
 *
 * The answer: what became of the shard, how long the lease still lasts, loaded, seen, then id and
 * delay of each job. It changes nothing that a repeated call would miss.
 */
#define SERVE                                                                                      \
	FULL_TOO NOW                                                                               \
	    "local p, token, window = ARGV[1], ARGV[2], tonumber(ARGV[4])\n"                       \
	    "local lease, loaded, seen = tonumber(ARGV[3]), tonumber(ARGV[5]), ARGV[6]\n"          \
	    "local holder = redis.call('GET', p .. 'lease')\n"                                     \
	    "if holder and holder ~= token then return {1, 0, 0, 0} end\n"                         \
	    "if holder and ARGV[8] == '1' and redis.call('ZCARD', p .. 'taken') == 0 then\n"       \
	    "  redis.call('DEL', p .. 'lease')\n"                                                  \
	    "  return {0, 0, 0, 0}\n"                                                              \
	    "end\n"                                                                                \
	    "if not holder and ARGV[7] == '0' then return {0, 0, 0, 0} end\n"                      \
	    "local acquired, left = not holder or loaded == 0, redis.call('PTTL', p .. 'lease')\n" \
	    "if left < lease * 3 / 4 then\n"                                                       \
	    "  redis.call('SET', p .. 'lease', token, 'PX', lease)\n"                              \
	    "  left = lease\n"                                                                     \
	    "end\n"                                                                                \
	    "local jobs, from = {0, 0, 0, 0}, '(' .. loaded\n"                                     \
	    "local function add(id, at)\n"                                                         \
	    "  jobs[#jobs + 1] = id\n"                                                             \
	    "  jobs[#jobs + 1] = math.max(0, at - now)\n"                                          \
	    "end\n"                                                                                \
	    "if acquired then\n"                                                                   \
	    "  local taken = redis.call('ZRANGE', p .. 'taken', 0, -1, 'WITHSCORES')\n"            \
	    "  for i = 1, #taken, 2 do redis.call('ZADD', p .. 'due', taken[i + 1], taken[i]) "    \
	    "end\n"                                                                                \
	    "  redis.call('DEL', p .. 'taken', p .. 'by', p .. 'new')\n"                           \
	    "  loaded, from, seen = 0, '-inf', redis.call('GET', p .. 'number') or '0'\n"          \
	    "end\n"                                                                                \
	    "if redis.call('EXISTS', p .. 'new') == 1 then\n"                                      \
	    "  redis.call('ZREMRANGEBYSCORE', p .. 'new', '-inf', seen)\n"                         \
	    "  local new = redis.call('ZRANGE', p .. 'new', 0, -1, 'WITHSCORES')\n"                \
	    "  for i = 1, #new, 2 do\n"                                                            \
	    "    local at = redis.call('ZSCORE', p .. 'due', new[i])\n"                            \
	    "    if at then add(new[i], tonumber(at)) end\n"                                       \
	    "    seen = new[i + 1]\n"                                                              \
	    "  end\n"                                                                              \
	    "end\n"                                                                                \
	    "if loaded < now + window / 2 then\n"                                                  \
	    "  local more = redis.call('ZRANGEBYSCORE', p .. 'due', from, now + window, "          \
	    "'WITHSCORES')\n"                                                                      \
	    "  for i = 1, #more, 2 do add(more[i], tonumber(more[i + 1])) end\n"                   \
	    "  loaded = now + window\n"                                                            \
	    "  redis.call('SET', p .. 'until', loaded)\n"                                          \
	    "end\n"                                                                                \
	    "jobs[1], jobs[2], jobs[3], jobs[4] = acquired and 2 or 3, left, loaded, "             \
	    "tonumber(seen)\n"                                                                     \
	    "return jobs\n"

/* prefix, token, id, who takes it. Asked again by the same one, it says the same. */
#define TAKE                                                                               \
	FULL_TOO NOW "local p, id, who = ARGV[1], ARGV[3], ARGV[4]\n"                      \
		     "if redis.call('GET', p .. 'lease') ~= ARGV[2] then return {3} end\n" \
		     "local at = redis.call('ZSCORE', p .. 'due', id)\n"                   \
		     "if not at then\n"                                                    \
		     "  if redis.call('HGET', p .. 'by', id) ~= who then return {1} end\n" \
		     "else\n"                                                              \
		     "  if tonumber(at) > now then return {2, tonumber(at) - now} end\n"   \
		     "  redis.call('ZREM', p .. 'due', id)\n"                              \
		     "  redis.call('ZADD', p .. 'taken', at, id)\n"                        \
		     "  redis.call('HSET', p .. 'by', id, who)\n"                          \
		     "end\n"                                                               \
		     "return {0, redis.call('HGET', p .. 'job', id) or ''}\n"

/* prefix, id. It has run, so it goes from wherever it is. */
#define ACKNOWLEDGE                                       \
	FULL_TOO "local p, id = ARGV[1], ARGV[2]\n"       \
		 "redis.call('ZREM', p .. 'taken', id)\n" \
		 "redis.call('ZREM', p .. 'due', id)\n"   \
		 "redis.call('HDEL', p .. 'by', id)\n"    \
		 "redis.call('HDEL', p .. 'job', id)\n"   \
		 "return 0\n"

#endif
