import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../support/until.ts';
import type { FleetWorker } from './fleet.ts';
import { Flood } from './flood.ts';
import { violations } from './invariants.ts';
import { print, printTimes, startRespiteIsOver } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { size } from './size.ts';
import { useStage } from './stage.ts';
import { TcpProxy } from './tcp-proxy.ts';
import { terminateSessions } from './terminate-sessions.ts';

const stage = useStage();
const RETURNS = size(6, 20);

/** Whether others have declared a worker gone since. */
function isDeclaredGone({ name }: FleetWorker, sinceMs: number): boolean {
  for (const { event, detail, atMs } of stage.fleet.entriesByProcess())
    if (event === 'gone' && detail === name && atMs > sinceMs) return true;
  return false;
}

test(`SIGSTOP until declared gone, then SIGCONT, ${RETURNS} times under load: no job is held by a worker that does not know it`, {
  timeout: 60_000 + RETURNS * 30_000,
}, async () => {
  const { ledger, fleet, url } = stage;
  // So far away that the next claim is answered while a worker that has come back still waits to hear what it has lost: the
  // round trip takes longer than the 25 ms that are claimed ahead at least.
  const proxy = await TcpProxy.start(Number(new URL(url).port));
  onTestFinished(() => proxy.close());
  proxy.delayMs = 30;
  const far = { url: proxy.url(url), concurrency: 20 };
  const workers = await Promise.all([
    fleet.start(far),
    fleet.start({ ...far, driver: 'postgres.js' }),
    // It looks whether the others live, and hardly ever works.
    fleet.start({ concurrency: 1 }),
  ]);
  await until(() => workers.every((worker) => worker.entries().some(({ event }) => event === 'listening')));
  await startRespiteIsOver(ledger);
  const flood = new Flood(ledger, { due: 2_000, maxWorkMs: 100 });
  const times: number[] = [];
  for (let returns = 0; returns < RETURNS; returns++) {
    await delay(500 + Math.random() * 1_000);
    const sleeper = workers[returns % 2];
    if (sleeper === undefined) throw new Error('no worker');
    sleeper.freeze();
    const frozenAtMs = monotonicMs();
    // As the server's keepalive ends it, long before the peers' patience does.
    await until(() => terminateSessions(ledger, sleeper));
    await until(() => isDeclaredGone(sleeper, frozenAtMs), { timeoutMs: 60_000 });
    const returnedAtMs = monotonicMs();
    sleeper.continue();
    const begunAgain = await until(
      () => sleeper.entries().find(({ event, atMs }) => event === 'begun' && atMs > returnedAtMs),
      { timeoutMs: 60_000 },
    );
    times.push((begunAgain?.atMs ?? Number.NaN) - returnedAtMs);
  }
  await flood.end();
  // Every worker lives: what one of them holds without knowing stays for ever.
  await ledger.settled();
  const { length: lost } = fleet.entries().filter(({ event }) => event === 'lost');
  expect(await fleet.stop()).toEqual([0, 0, 0]);
  print(`${RETURNS} returns among ${ledger.acknowledged.size} jobs; ${lost} attempts were lost`);
  printTimes('from the return of a worker that was declared gone to its next start', times);
  expect(await violations(ledger, fleet)).toEqual([]);
  // No handler throws here: who is told by mistake that it has lost a job fails it.
  const failed = fleet
    .entries()
    .filter(({ event, detail }) => event === 'rescheduled' && detail === 'failed')
    .map(({ process, job, fence }) => `${process} ${job}/${fence}`);
  expect(failed).toEqual([]);
});
