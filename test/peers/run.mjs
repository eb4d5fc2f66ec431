// Plays random scripts on our side and on the real systems, and compares the traces. See README.md.

import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';
import path from 'node:path';
import {parseArgs} from 'node:util';

import {Player} from './lib/player.mjs';
import {Random} from './lib/random.mjs';
import {compare, withoutEnd} from './lib/compare.mjs';
import {minimise} from './lib/minimise.mjs';
import {readPage} from './lib/page.mjs';
import * as actions from './rows/actions.mjs';
import * as limiter from './rows/limiter.mjs';
import * as scheduler from './rows/scheduler.mjs';
import * as timers from './rows/timers.mjs';

const {values: options} = parseArgs({
	options: {
		ours: {type: 'string', default: 'build/release/test/peers/ours/play'},
		packages: {type: 'string', default: 'build/peers'},
		row: {type: 'string', multiple: true},
		count: {type: 'string', default: '2000'},
		seed: {type: 'string'},
		script: {type: 'string'}, // plays this file on both sides, and prints both traces
		'without-page': {type: 'boolean', default: false},
	},
});

const rows = [timers, actions, scheduler, limiter].filter(
	({name}) => !options.row || options.row.includes(name),
);
const require = createRequire(path.resolve(options.packages, 'package.json'));
const ours = new Player(path.resolve(options.ours), []);

/** The packages are CommonJS modules or ES modules. */
async function load(name) {
	try {
		return require(name);
	} catch (error) {
		if (error.code !== 'ERR_REQUIRE_ESM' && error.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED')
			throw error;
		const folder = path.resolve(options.packages, 'node_modules', name);
		const about = JSON.parse(readFileSync(path.join(folder, 'package.json')));
		const main = about.exports?.default ?? about.exports;
		return import(
			pathToFileURL(path.join(folder, typeof main === 'string' ? main : about.main))
		);
	}
}

/** Both traces, and what differs: null, or a text. */
async function playBoth(row, theirs, text) {
	const [mine, other] = (await Promise.all([ours.play(text), theirs.play(text)])).map(withoutEnd);
	return {mine, other, difference: compare(mine, other, row.normalise)};
}

async function reportDifference(row, theirs, seed, text) {
	const least = await minimise(
		text,
		async (shorter) => (await playBoth(row, theirs, shorter)).difference !== null,
	);
	const {mine, other, difference} = await playBoth(row, theirs, least);
	console.log(`peers: ${row.name}: DIFFERENCE with seed ${seed}: ${difference}`);
	console.log(
		`-- minimised, ${least.split('\n').length - 1} steps; to see the whole: --row ${row.name} --seed ${seed}`,
	);
	console.log(least);
	console.log(`-- ours\n${mine.join('\n')}\n-- ${row.peer}\n${other.join('\n')}`);
}

async function playSeeds(row, theirs) {
	const first = options.seed === undefined ? 1 : Number(options.seed);
	const count = options.seed === undefined ? Number(options.count) : 1;
	let events = 0;
	for (let seed = first; seed < first + count; seed++) {
		const text = row.generate(new Random(seed));
		const {mine, difference} = await playBoth(row, theirs, text);
		if (difference !== null) {
			await reportDifference(row, theirs, seed, text);
			return {played: seed - first + 1, events, failed: true};
		}
		events += mine.length;
	}
	return {played: count, events, failed: false};
}

/** The listed differences of a row: each side does what the page says. */
async function playPage(row, theirs) {
	const listed = readPage(new URL('differences.md', import.meta.url)).filter(({script}) =>
		script.startsWith(`${row.name} `),
	);
	let failed = false;
	for (const {title, script, mine, other} of listed) {
		const played = await playBoth(row, theirs, script);
		for (const [side, expected, seen] of [
			['ours', mine, played.mine],
			[row.peer, other, played.other],
		])
			if (seen.join('\n') !== expected) {
				console.log(
					`peers: differences.md, "${title}": ${side} does otherwise:\n${seen.join('\n')}`,
				);
				failed = true;
			}
		if (mine === other) {
			console.log(`peers: differences.md, "${title}": there is no difference`);
			failed = true;
		}
	}
	return {listed: listed.length, failed};
}

async function playRow(row) {
	const begun = Date.now();
	const theirs = await row.open(load, options);
	const seeds = await playSeeds(row, theirs);
	const page =
		options['without-page'] || options.seed !== undefined
			? {listed: 0, failed: false}
			: await playPage(row, theirs);
	theirs.close();
	if (!seeds.failed)
		console.log(
			`peers: ${row.name}: ${seeds.played} scripts, ${seeds.events} lines of trace, no unlisted difference to ${row.peer}; ` +
				`${page.listed} listed; ${((Date.now() - begun) / 1000).toFixed(1)} s`,
		);
	return seeds.failed || page.failed;
}

async function playFile(file) {
	const text = readFileSync(file, 'utf8').trim();
	const row = rows.find(({name}) => text.startsWith(`${name} `));
	const theirs = await row.open(load, options);
	const {mine, other, difference} = await playBoth(row, theirs, text);
	console.log(
		`-- ours\n${mine.join('\n')}\n-- ${row.peer}\n${other.join('\n')}\n-- ${difference ?? 'equal'}`,
	);
	theirs.close();
	return difference !== null;
}

let failed = false;
if (options.script) failed = await playFile(options.script);
else for (const row of rows) failed = (await playRow(row)) || failed;
ours.end();
process.exitCode = failed ? 1 : 0;
