import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { flaky, ordinary, snoozing, transactional } from './fixtures/ledger-jobs.ts';
import { declaredGone, overlaps, violations } from './invariants.ts';
import { Load } from './load.ts';
import { print, printTimes, recoveryTimes, resumeTimes, startRespiteIsOver } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';
import { TcpProxy } from './tcp-proxy.ts';

const stage = useStage();
let proxy: TcpProxy;
beforeEach(async () => {
  proxy = await TcpProxy.start(Number(new URL(stage.url).port));
});
afterEach(() => proxy.close());

const LASTING_MS = size(6_000, 20_000);

describe('a network between workers and database that', () => {
  test('delays everything by 500 ms: slow, and nothing else', { timeout: 120_000 }, async () => {
    const { ledger, fleet } = stage;
    const workers = await fleet.startMany(3, { url: proxy.url(stage.url) });
    const load = new Load(ledger, { perSecond: 30 });
    await resumeTimes(fleet, workers, 0);
    proxy.delayMs = 500;
    await delay(LASTING_MS);
    await load.end();
    // What has piled up meanwhile would take minutes at that pace.
    proxy.delayMs = 0;
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0]);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });

  test('drops all connections again and again, and refuses new ones for a second: everybody is forgiven', {
    timeout: 120_000,
  }, async () => {
    const { ledger, fleet } = stage;
    // A worker that a busy machine keeps from its connection for another second and a half is away for longer than
    // is forgiven by default.
    const worker = { reconnectMs: 10_000 };
    const workers = await fleet.startMany(2, { url: proxy.url(stage.url), worker });
    // Peers whose own network is well, and who would take the jobs over.
    const peers = await fleet.startMany(2, { worker });
    await until(() =>
      [...workers, ...peers].every((worker) => worker.entries().some(({ event }) => event === 'listening')),
    );
    await startRespiteIsOver(ledger);
    const load = new Load(ledger, { maxWorkMs: 3_000, perSecond: 20 });
    await resumeTimes(fleet, workers, 0);
    const awayMs: number[] = [];
    for (let turn = 0; turn < size(3, 8); turn++) {
      const cutAtMs = monotonicMs();
      proxy.weather = 'refusing';
      proxy.cut();
      await delay(1_000);
      const since = await ledger.value('select clock_timestamp()::text');
      proxy.weather = 'fine';
      await resumeTimes(fleet, workers, monotonicMs());
      // What is forgiven is one absence of up to `reconnectMs`. A worker that is cut off again before it has shown itself was never back.
      const back = `select 1 from queue_workers where session is not null and seen_at > $1 and name = any($2)`;
      await until(
        async () =>
          (await ledger.rows(back, [since, workers.map(({ name }) => name)])).length === workers.length,
      );
      awayMs.push(monotonicMs() - cutAtMs);
    }
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0, 0]);
    printTimes(
      'connections dropped, and refused for a second, until both workers have shown themselves',
      awayMs,
    );
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });

  test('falls silent, and accepts connections without a word: workers wait, and go on when it is back', {
    timeout: 120_000,
  }, async () => {
    const { ledger, fleet } = stage;
    const workers = await fleet.startMany(3, { url: proxy.url(stage.url) });
    await startRespiteIsOver(ledger);
    const load = new Load(ledger);
    await resumeTimes(fleet, workers, 0);
    proxy.weather = 'silent';
    await delay(LASTING_MS);
    proxy.weather = 'fine';
    const times = await resumeTimes(fleet, workers, monotonicMs());
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0, 0]);
    printTimes('a silent network, from its return to the next start in each worker', times);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(overlaps(fleet)).toEqual([]);
    expect(declaredGone(fleet)).toEqual([]);
  });

  test('parts one worker from all: its jobs begin elsewhere, and what it ends afterwards counts for nothing', {
    timeout: 180_000,
  }, async () => {
    const { ledger, fleet } = stage;
    const parted = await fleet.start({ url: proxy.url(stage.url) });
    await until(() => parted.entries().some(({ event }) => event === 'listening'));
    const gate = 'parted';
    const jobs = [transactional, ordinary, flaky, snoozing, transactional, ordinary, flaky, snoozing];
    const ids = await ledger.enqueue(jobs.map((job) => ({ job, work: { workMs: 0, gate } })));
    await until(() => parted.entries().filter(({ event }) => event === 'begun').length === ids.length);
    const other = await fleet.start();
    await until(() => other.entries().some(({ event }) => event === 'listening'));

    proxy.weather = 'silent';
    // The server finds out by its keepalives (see docs/workers.md) and ends the sessions; here, at once.
    proxy.abandon();
    const partedAtMs = monotonicMs();
    const times = await recoveryTimes(ledger, fleet, parted, ids, partedAtMs);
    printTimes('a worker parted from all, from the end of its session to the start elsewhere', times);

    fleet.openGate(gate, 1);
    proxy.weather = 'fine';
    await until(() => {
      const own = parted.entries().filter(({ fence }) => fence === 1);
      return ids.every((id) => own.some(({ event, job }) => event === 'lost' && job === id));
    });
    expect(await ledger.heldBy(other.workerId)).toHaveLength(ids.length);
    fleet.openGate(gate, 2);
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0]);
    expect(await violations(ledger, fleet)).toEqual([]);
    expect(fleet.entries().filter(({ event, fence }) => event === 'settled' && fence === 1)).toEqual([]);
  });

  const CUTS = size(40, 200);

  test(`cuts in the middle of a COMMIT, and of other statements, ${CUTS} times: the client cannot know`, {
    timeout: 240_000,
  }, async () => {
    const { ledger, fleet } = stage;
    const worker = await fleet.start({ url: proxy.url(stage.url) });
    const load = new Load(ledger, { perSecond: 60 });
    await resumeTimes(fleet, [worker], 0);
    // Beside the commits of the handlers: claims, ends and postponements, which commit by themselves.
    const statement = /with due as|delete from|update "queue_jobs"/is;
    // Long enough for a job whose postponement is repeated to be claimed again in between.
    proxy.cuts = { statement, share: 0.25, commitShare: 0.5, holdMs: 400 };
    // Without its share of COMMITs the test would keep only half of its title.
    const enough = () => proxy.lostAnswers >= CUTS && proxy.lostCommits >= CUTS / 4;
    await until(enough, { timeoutMs: 180_000 });
    proxy.cuts = undefined;
    await load.end();
    await ledger.settled(120_000);
    expect(await fleet.stop()).toEqual([0]);
    print(`the answers to ${proxy.lostCommits} COMMITs and ${proxy.lostAnswers} other statements lost`);
    expect(await violations(ledger, fleet)).toEqual([]);
  });
});
