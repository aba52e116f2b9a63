import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { controlStatements } from '../support/control-tables.ts';
import { until } from '../support/until.ts';
import { ticking } from './fixtures/ledger-jobs.ts';
import type { LedgerSchedule } from './fleet.ts';
import { violations } from './invariants.ts';
import { Load } from './load.ts';
import { startRespiteIsOver } from './recovery.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';

const stage = useStage();

beforeAll(async () => {
  for (const statement of await controlStatements()) await stage.ledger.rows(statement);
});
afterEach(() => stage.ledger.rows('truncate queue_schedules'));

/** Everything that a schedule has ever enqueued, as the tick's time; each is a result by now. */
async function ticksOf(name: string): Promise<number[]> {
  const rows = await stage.ledger.rows<{ tick: string }>(
    `select metadata ->> 'tick' as tick from queue_results where metadata ->> 'schedule' = $1 order by 1`,
    [name],
  );
  return rows.map(({ tick }) => Date.parse(tick));
}

/** The ticks of a schedule, walked second by second: after its row came into being, up to what it has passed. */
async function dueTicksOf({ name, timing }: LedgerSchedule): Promise<number[]> {
  const [row] = await stage.ledger.rows<{ created: number; passed: number }>(
    `select (extract(epoch from created_at) * 1000)::float8 as created,
       (extract(epoch from passed_at) * 1000)::float8 as passed
     from queue_schedules where name = $1`,
    [name],
  );
  if (row === undefined) throw new Error(`no schedule '${name}'`);
  const firstMs = Math.floor(row.created / 1_000) * 1_000;
  const ticks: number[] = [];
  for (let ms = firstMs; ms <= row.passed; ms += 1_000) {
    const second = new Date(ms).getUTCSeconds();
    const isTick = 'every' in timing ? (ms - firstMs) % timing.every === 0 : second % 2 === 0;
    if (isTick && ms > row.created) ticks.push(ms);
  }
  return ticks;
}

const schedules: readonly LedgerSchedule[] = [
  ...Array.from({ length: 6 }, (_, n) => ({
    name: `every ${n}`,
    timing: { every: (1 + (n % 3)) * 1_000 },
    catchUp: 'all' as const,
    overlap: true,
  })),
  { name: 'cron', timing: { cron: '*/2 * * * * *' }, catchUp: 'all', overlap: true },
  { name: 'alone', timing: { every: 1_000 }, catchUp: 'all', overlap: false },
  { name: 'newest', timing: { every: 1_000 }, catchUp: 'latest', overlap: true },
];
const KILLS = size(5, 30);

test(`SIGKILL of one of three workers that fire schedules, ${KILLS} times under load: each tick fires once`, {
  timeout: KILLS * 20_000 + 60_000,
}, async () => {
  const { ledger, fleet } = stage;
  await fleet.startMany(3, { schedules });
  await startRespiteIsOver(ledger);
  const load = new Load(ledger, { maxWorkMs: 100 });
  for (let kills = 0; kills < KILLS; kills++) {
    // Now and then just when a tick has come, and all look.
    const toTickMs = 1_000 - (Date.now() % 1_000);
    await delay(kills % 2 === 0 ? toTickMs + Math.random() * 30 : Math.random() * 1_300);
    // Of all three at once: nobody fires for a while.
    const victims = kills % 5 === 4 ? fleet.living : fleet.living.slice(kills % 3, (kills % 3) + 1);
    await Promise.all(victims.map((victim) => victim.kill()));
    if (victims.length > 1) await delay(1_500);
    await fleet.startMany(victims.length, {
      schedules,
      driver: kills % 3 === 0 ? 'postgres.js' : 'node-postgres',
    });
  }
  await load.end();
  // All are fired by those that live now, too. Those that fire less, as their last job has to end first, go on.
  await delay(2_100);
  for (const { name } of schedules) {
    await until(async () => (await ticksOf(name)).length > KILLS / 2);
  }
  expect(await fleet.stop()).toEqual([0, 0, 0]);
  // Whoever worked on the last ones has gone, or stopped.
  const last = await fleet.start();
  await ledger.settled();
  await last.stop();

  for (const schedule of schedules) {
    const fired = await ticksOf(schedule.name);
    const due = await dueTicksOf(schedule);
    expect(new Set(fired).size, `${schedule.name}: none fires twice`).toBe(fired.length);
    const isDue = new Set(due);
    expect(
      fired.filter((tick) => !isDue.has(tick)),
      schedule.name,
    ).toEqual([]);
    if (schedule.catchUp === 'all' && schedule.overlap) expect(fired, schedule.name).toEqual(due);
  }
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(
    await ledger.value(`select count(*)::int from queue_results where kind = $1 and state <> 'completed'`, [
      ticking.kind,
    ]),
  ).toBe(0);
});
