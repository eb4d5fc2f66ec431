// A host for JavaScript packages whose time stands still until it is moved: timers fire in the
// order of (time, setting).

export class Host {
	constructor(now = 0, leastDelay = 0) {
		this.now = now;
		this.leastDelay = leastDelay; // node takes 0 for 1
		this.timers = [];
		this.count = 0;
	}

	set(fn, delay, period = null) {
		const wait = Math.max(this.leastDelay, delay || 0);
		const timer = {
			fn,
			at: this.now + wait,
			order: ++this.count,
			period: period === null ? null : wait,
		};
		this.timers.push(timer);
		return timer;
	}

	setTimeout = (fn, delay, ...args) => this.set(() => fn(...args), delay);
	setInterval = (fn, delay, ...args) => this.set(() => fn(...args), delay, delay);

	clear = (timer) => {
		const index = this.timers.indexOf(timer);
		if (index >= 0) this.timers.splice(index, 1);
		if (timer) timer.cleared = true;
	};

	/** The first timer that is due at `until` or before; null: none. */
	first(until) {
		const due = this.timers.filter((timer) => timer.at <= until);
		due.sort((a, b) => a.at - b.at || a.order - b.order);
		return due[0] ?? null;
	}

	/**
	 * Fires the first timer that is due by then. An interval is set again when its function has
	 * returned.
	 */
	fire(until) {
		const timer = this.first(until);
		if (!timer) return false;
		this.now = Math.max(this.now, timer.at);
		this.timers.splice(this.timers.indexOf(timer), 1);
		try {
			timer.fn();
		} finally {
			if (timer.period !== null && !timer.cleared) {
				timer.at = this.now + timer.period;
				timer.order = ++this.count;
				this.timers.push(timer);
			}
		}
		return true;
	}
}
