import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { single } from './fixtures/ledger-jobs.ts';
import { Flood } from './flood.ts';
import { violations } from './invariants.ts';
import { print, printTimes, recoveryTimes, startRespiteIsOver } from './recovery.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';

const stage = useStage();
const KILLS = size(5, 20);
const CONCURRENCY = 10;

test(`SIGKILL of a worker, ${KILLS} times, while all jobs have one attempt: none runs twice, and what was claimed ahead is not lost`, {
  timeout: 60_000 + KILLS * 30_000,
}, async () => {
  const { ledger, fleet } = stage;
  await fleet.startMany(2, { concurrency: CONCURRENCY });
  await startRespiteIsOver(ledger);
  const flood = new Flood(ledger, { job: single });
  const times: number[] = [];
  const dead: number[] = [];
  let claimedAhead = 0;
  const begunAtKills = new Set<number>();
  for (let kills = 0; kills < KILLS; ) {
    const driver = kills % 3 === 0 ? 'postgres.js' : 'node-postgres';
    const victim = await fleet.start({ driver, concurrency: CONCURRENCY });
    await delay(500 + Math.random() * 1_500);
    const killedAtMs = await victim.kill();
    // The server carries out what was under way, such as a claim.
    const left = 'select from pg_stat_activity where application_name = $1';
    await until(async () => (await ledger.rows(left, [victim.name])).length === 0);
    const held = await ledger.rows<{ id: string; begun: boolean }>(
      'select id, claimed_at is not null as begun from queue_jobs where worker_id = $1',
      [victim.workerId],
    );
    const ahead = held.filter(({ begun }) => !begun).map(({ id }) => Number(id));
    times.push(...(await recoveryTimes(ledger, fleet, victim, ahead, killedAtMs)));
    claimedAhead += ahead.length;
    for (const { id, begun } of held) if (begun) begunAtKills.add(Number(id));
    dead.push(victim.workerId);
    if (held.length > 0) kills++;
  }
  await flood.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0]);

  const begun = fleet.entries().filter(({ event }) => event === 'begun');
  expect(new Set(begun.map(({ job }) => job)).size).toBe(begun.length);
  const discarded = await ledger.rows<{ job_id: string; name: string }>(
    `select job_id, errors -> -1 ->> 'name' as name from queue_results where state = 'discarded'`,
  );
  for (const { name } of discarded) expect(name).toBe('WorkerLostError');
  const ran = new Set(begun.map(({ job }) => job));
  const unrun = discarded.filter(({ job_id }) => !ran.has(Number(job_id)));
  print(
    `${KILLS} kills with one attempt for each of ${ledger.acknowledged.size} jobs: ${claimedAhead} were claimed ahead, ` +
      `${discarded.length} lost their attempt, ${unrun.length} of them before their handler was called`,
  );
  printTimes('SIGKILL, from the kill to the start elsewhere of what was claimed ahead', times);
  expect(await violations(ledger, fleet)).toEqual([]);
  expect(begunAtKills.size).toBeGreaterThan(KILLS);
  // Nothing that had not begun has lost its attempt.
  expect(discarded.filter(({ job_id }) => !begunAtKills.has(Number(job_id)))).toEqual([]);
  // What had begun and was not called: no more than there are slots, where handlers take longer than 2 ms.
  expect(unrun.length).toBeLessThanOrEqual(KILLS * CONCURRENCY);
  // Most claims begin what they take, and then nothing is claimed ahead.
  if (times.length > 0) expect(Math.max(...times)).toBeLessThanOrEqual(5_000);
});
