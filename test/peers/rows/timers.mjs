// Timers and series beside Java's ScheduledThreadPoolExecutor and Netty's HashedWheelTimer.

import {Player} from '../lib/player.mjs';

export const name = 'timers';
export const peer = 'java, netty';

const KINDS = ['stpe', 'stpe', 'netty'];
const TIMERS = 24;
const SERIES = 8; // the first of the timers, in kind "stpe"

// In one instant the runs of one-shot timers keep their order. A series takes its place there when
// it is filed again, in Java it keeps the place of its first run (differences.md). So of the series
// only the number of runs in an instant is compared.
export function normalise(lines) {
	const rank = (line) => (/^(series|cancel [0-7] )/.test(line) ? 1 : 0);
	const time = (line) => Number(line.split(' at ')[1] ?? -1);
	const moved = lines.map((line, index) => ({line, index}));
	const groups = [];
	for (const item of moved) {
		const at = time(item.line);
		if (groups.length === 0 || (at >= 0 && at !== groups.at(-1).at))
			groups.push({at, items: []});
		groups.at(-1).items.push(item);
	}
	return groups.flatMap(({items}) =>
		items
			.sort(
				(a, b) =>
					rank(a.line) - rank(b.line) ||
					(rank(a.line) ? (a.line < b.line ? -1 : 1) : a.index - b.index),
			)
			.map(({line}) => line),
	);
}

function generateDelay(random, kind) {
	const ticks = random.weighted({near: 8, middle: 2, far: 1});
	const delay = {
		near: random.between(1, 8),
		middle: random.between(9, 90),
		far: random.between(400, 6000),
	}[ticks];
	return kind === 'netty' ? delay : delay * 10;
}

// Series have instants of their own: each has another number of ticks beyond the tens on which
// one-shot timers are due.
function generateSeries(random, id) {
	const first = random.between(0, 6) * 10 + id + 1;
	return random.percent(50)
		? `rate ${id} ${first} ${random.between(1, 6) * 10}`
		: `delay ${id} ${first} ${random.between(1, 6) * 10 + id + 1}`;
}

function generateInside(random, kind) {
	const id = random.between(SERIES, TIMERS - 1);
	return random.percent(60) ? `at ${id} ${generateDelay(random, kind)}` : `cancel ${id}`;
}

export function generate(random) {
	const kind = random.pick(KINDS);
	const unit = kind === 'netty' ? 1 : 10;
	const lines = [`timers ${kind}`];
	for (let id = SERIES; id < TIMERS; id++)
		for (let i = random.pick([0, 0, 0, 1, 2]); i > 0; i--)
			lines.push(`on ${id} 1 ${generateInside(random, kind)}`);
	for (let id = 0; id < SERIES; id++)
		if (random.percent(20)) lines.push(`on ${id} ${random.between(1, 3)} cancel ${id}`);
	for (let i = random.between(8, 40); i > 0; i--) {
		const series = kind === 'stpe' ? 3 : 0;
		const op = random.weighted({at: 12, series, cancel: 4, advance: 6, stall: 3});
		const span = (most) => random.between(1, random.percent(90) ? 8 : most) * unit;
		const make = {
			at: () => `at ${random.between(SERIES, TIMERS - 1)} ${generateDelay(random, kind)}`,
			series: () => generateSeries(random, random.below(SERIES)),
			cancel: () => `cancel ${random.below(TIMERS)}`,
			advance: () => `advance ${span(40)}`,
			stall: () => `stall ${span(60)}`,
		};
		lines.push(make[op]());
	}
	for (let id = 0; id < SERIES; id++) lines.push(`cancel ${id}`);
	lines.push(
		random.percent(50) ? `advance ${6100 * unit}` : 'advance 0',
		'stop',
		`at ${TIMERS} 1`,
	);
	return lines.join('\n');
}

export async function open(load, {packages}) {
	const jar = (file) => `/usr/share/java/${file}.jar`;
	const player = new Player('java', [
		'-Xshare:auto',
		'-XX:TieredStopAtLevel=1',
		'-XX:+UseSerialGC',
		`-Xbootclasspath/a:${packages}/java/boot.jar`,
		`-javaagent:${packages}/java/player.jar`,
		'-cp',
		[`${packages}/java/player.jar`, jar('netty-common'), jar('netty-all')].join(':'),
		'peers.Main',
	]);
	return {play: (text) => player.play(text), close: () => player.end()};
}
