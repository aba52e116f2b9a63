import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase, migrateDatabase } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/embedded-postgres.ts';
import { until } from '../support/until.ts';
import { Fleet } from './fleet.ts';
import { violations } from './invariants.ts';
import { Ledger } from './ledger.ts';
import { Load } from './load.ts';
import { print, printTimes, resumeTimes } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { isSynchronous, promote, startStandby } from './standby.ts';
import { TcpProxy } from './tcp-proxy.ts';

let primary: PostgresServer;
let standby: PostgresServer;
let proxy: TcpProxy;
let ledger: Ledger;
let fleet: Fleet;

beforeAll(async () => {
  primary = await startPostgres({ settings: { synchronous_commit: 'on', wal_keep_size: '256MB' } });
  const { url } = await createDatabase(primary.url);
  await migrateDatabase(url);
  standby = await startStandby(primary);
  await until(() => isSynchronous(primary));
  // What a DNS name or a virtual address is elsewhere.
  proxy = await TcpProxy.start(primary.port);
  ledger = new Ledger(proxy.url(url));
  await ledger.create();
  fleet = new Fleet(proxy.url(url));
}, 120_000);

afterAll(async () => {
  await fleet?.remove();
  await ledger?.close();
  await proxy?.close();
  await standby?.stop();
  await primary?.stop();
}, 240_000);

test('a synchronous standby takes over: nothing that was committed is lost, and workers go on', {
  timeout: 180_000,
}, async () => {
  const workers = await fleet.startMany(3);
  const load = new Load(ledger, { perSecond: 40 });
  await resumeTimes(fleet, workers, 0);
  // Enough that some are waiting, some run and some have ended.
  await until(() => ledger.acknowledged.size >= 80);
  const committed = ledger.acknowledged.size;

  await primary.crash();
  const crashedAtMs = monotonicMs();
  // Too early, as a failover often is: the standby still refuses to write.
  proxy.target = standby.port;
  proxy.cut();
  await until(() =>
    fleet
      .entries()
      .some(({ event, detail }) => event === 'error' && /read-only transaction/.test(detail ?? '')),
  );
  await promote(standby);
  const promotedAtMs = monotonicMs();
  const times = await resumeTimes(fleet, workers, promotedAtMs);
  await load.end();
  await ledger.settled();
  expect(await fleet.stop()).toEqual([0, 0, 0]);
  print(`the standby was promoted ${Math.round(promotedAtMs - crashedAtMs)} ms after the crash`);
  printTimes('from the promotion to the next start in each worker', times);
  expect(committed).toBeGreaterThan(0);
  expect(ledger.acknowledged.size).toBeGreaterThan(committed);
  expect(await violations(ledger, fleet, { takeovers: 1 })).toEqual([]);
});
