import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './pages.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const [, speed = ''] = /\n## Speed\n(.*?)\n## /s.exec(read('README.md')) ?? [];

const SMALL = 'payload 40 B';
const LARGE = 'payload 1,500 B';
const ORDERS = 'insert an order in a transaction';
const ENQUEUES = 'insert an order and enqueue a job';

/** A table of the benchmarks by its caption, a row by its first cells, and a column. */
type Figure = readonly [caption: string, row: string, column: string];

/** The figures of the README's table, row by row. */
const ROWS: readonly (readonly (Figure | undefined)[])[] = [
  [
    [SMALL, 'drizzle-queue, results kept', 'jobs/s'],
    [SMALL, 'graphile-worker, best', 'jobs/s'],
    [SMALL, 'pg-boss, best', 'jobs/s'],
    [SMALL, 'BullMQ on Postgres', 'jobs/s'],
  ],
  [
    [ORDERS, 'drizzle-queue, complete(tx), results kept', 'jobs/s'],
    undefined,
    [ORDERS, 'pg-boss, transactional', 'jobs/s'],
    undefined,
  ],
  [
    [ENQUEUES, 'drizzle-queue | 32', 'transactions/s'],
    [ENQUEUES, 'graphile-worker, add_job | 32', 'transactions/s'],
    [ENQUEUES, 'pg-boss, fromDrizzle | 32', 'transactions/s'],
    undefined,
  ],
  [
    ['latency: ', 'drizzle-queue, LISTEN | 100', 'p50 ms'],
    ['latency: ', 'graphile-worker, best | 100', 'p50 ms'],
    ['latency: ', 'pg-boss, listening | 100', 'p50 ms'],
    ['latency: ', 'BullMQ on Postgres | 100', 'p50 ms'],
  ],
];

/** The figures of the sentence below the table, in their order. */
const RESULTS: readonly Figure[] = [
  [SMALL, 'drizzle-queue, no results', 'jobs/s'],
  [LARGE, 'drizzle-queue, results kept', 'jobs/s'],
  [LARGE, 'drizzle-queue, no results', 'jobs/s'],
  [LARGE, 'graphile-worker, best', 'jobs/s'],
];

test('the figures of the README are those of the benchmarks', () => {
  const rows = speed.match(/^\| [A-Z].*$/gm) ?? [];
  expect(rows.map((row) => row.split(' | ').slice(1).map(figureIn))).toEqual(
    ROWS.map((row, index) => row.map((figure, at) => figure && rounded(figure, cellOf(rows[index], at)))),
  );
  const [, said = ''] = /^graphile-worker keeps no results\.(.*)Benchmarks/ms.exec(speed) ?? [];
  const numbers = said.match(/\d+,\d{3}(?! bytes)/g) ?? [];
  expect(numbers).toEqual(RESULTS.map((figure, at) => rounded(figure, numbers[at] ?? '')));
});

test.each([
  ['README.md', /runs (?<kept>[\d,]+) no-op jobs a second .*?, or (?<without>[\d,]+) without/s],
  ['docs/scaling.md', /runs (?<without>[\d,]+) no-op jobs a second .*?, or (?<kept>[\d,]+) if it keeps/],
])('the promise of speed in %s rounds the table down', (page, promise) => {
  const thousands = (figure: Figure) => `${Math.floor(measured(figure) / 1_000)},000`;
  expect(promise.exec(read(page))?.groups).toEqual({
    kept: thousands([SMALL, 'drizzle-queue, results kept', 'jobs/s']),
    without: thousands([SMALL, 'drizzle-queue, no results', 'jobs/s']),
  });
});

test('the pages compare with DBOS by the newest run', () => {
  const goals = read('docs/decisions/missed-goals.md');
  const started = /started one by one ÷ DBOS direct \| 3 \| \*\*([\d.]+)\*\*/.exec(goals)?.[1];
  const queued = /queued ÷ the best of DBOS \| 3 \| \**([\d.]+)/.exec(goals)?.[1];
  for (const page of ['docs/comparison.md', 'docs/coming-from/dbos.md']) {
    expect(read(page)).toMatch(new RegExp(`did \\[?${started} times as\\s+many`));
  }
  expect(read('docs/comparison.md')).toMatch(new RegExp(`${queued} times as\\s+many from a backlog`));
});

const cellOf = (row: string | undefined, at: number) => row?.split(' | ')[at + 1] ?? '';
const figureIn = (cell: string) => /[\d.,]+/.exec(cell)?.[0];

/** The value of the benchmarks, with as many digits as the README shows. */
function rounded(figure: Figure, shown: string): string {
  const digits = shown.replaceAll(/\D/g, '').replaceAll(/^0+|0+$/g, '');
  return Number(measured(figure).toPrecision(Math.max(1, digits.length))).toLocaleString('en-US');
}

function measured([caption, row, column]: Figure): number {
  const tables = read('docs/benchmarks.md').matchAll(/^\*\*(?<title>.*)\*\*\n\n(?<lines>(?:\|.*\n)+)/gm);
  for (const { groups = {} } of tables) {
    const lines = groups.lines?.split('\n') ?? [];
    const line = lines.find((line) => line.startsWith(`| ${row} | `));
    if (!groups.title?.includes(caption) || line === undefined) continue;
    const at = lines[0]?.split('|').findIndex((name) => name.trim() === column) ?? -1;
    return Number(line.split('|')[at]?.replaceAll(',', ''));
  }
  throw new Error(`The benchmarks have no ${column} of ${row} in ${caption}`);
}
