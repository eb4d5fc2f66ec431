package peers;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/**
 * Netty's wheel, on its own thread, which sleeps in virtual time. Ticks of 1 ms; each delay is half
 * a tick longer.
 */
final class Wheel implements Script.Player {
	private static final long TICK_NS = 1_000_000;

	private final Script script;
	private final StringBuffer trace;
	private final HashedWheelTimer timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 64);
	private final long begun = VirtualTime.nanoTime();
	private final Map<Integer, Timeout> timeouts = new HashMap<>();
	private boolean stopped;
	private int running = -1;

	Wheel(Script script, StringBuffer trace) {
		this.script = script;
		this.trace = trace;
	}

	private synchronized void say(String line) {
		trace.append(line).append('\n');
	}

	private void fire(int id) {
		say("run " + id + " at " + (VirtualTime.nanoTime() - begun) / TICK_NS);
		running = id;
		script.run(id, this);
		running = -1;
	}

	private void schedule(int id, long delay) {
		if (timeouts.containsKey(id))
			return;
		timeouts.put(id, null);
		try {
			timeouts.put(id, timer.newTimeout(timeout -> fire(id), delay, TimeUnit.NANOSECONDS));
		} catch (IllegalStateException e) {
			say("refused " + id);
		}
	}

	private void cancel(int id) {
		if (!timeouts.containsKey(id) || running == id)
			return;
		Timeout timeout = timeouts.get(id);
		say("cancel " + id + " " + (timeout != null && timeout.cancel() ? 1 : 0));
	}

	private void move(long to) {
		try {
			VirtualTime.set(to);
			if (!stopped)
				VirtualTime.awaitSleep();
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	private void advance(int ticks) {
		for (int i = 0; i < ticks; i++)
			move(VirtualTime.nanoTime() + TICK_NS);
	}

	private void stop() {
		if (stopped)
			return;
		stopped = true;
		Set<Timeout> unprocessed = timer.stop();
		TreeSet<Integer> left = new TreeSet<>();
		timeouts.forEach((id, timeout) -> {
			if (timeout != null && unprocessed.contains(timeout))
				left.add(id);
		});
		left.forEach(id -> say("left " + id));
	}

	@Override
	public void step(Script.Step step, boolean inside) {
		switch (step.op()) {
		case "at" -> schedule(step.arg(0), step.arg(1) * TICK_NS + TICK_NS / 2);
		case "at!" -> schedule(step.arg(0), step.arg(1) * TICK_NS);
		case "cancel" -> cancel(step.arg(0));
		case "advance" -> advance(step.arg(0));
		case "stall" -> move(VirtualTime.nanoTime() + step.arg(0) * TICK_NS);
		case "stop" -> stop();
		default -> { }
		}
	}

	void play() {
		VirtualTime.forgetSleep();
		timer.start();
		move(begun);
		script.play(this, trace);
		say("> -1"); // what follows is not compared
		stop();
	}
}
