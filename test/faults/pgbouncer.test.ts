import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { transactional } from './fixtures/ledger-jobs.ts';
import { violations } from './invariants.ts';
import { Load } from './load.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from './pgbouncer.ts';
import { print, printTimes, recoveryTimes } from './recovery.ts';
import { useStage } from './stage.ts';

const installed = hasPgBouncer();
if (!installed)
  print('PgBouncer is not installed, so nothing is tested behind it: apt-get install pgbouncer');

describe.skipIf(!installed)('behind PgBouncer in transaction mode', () => {
  const stage = useStage();
  let pgBouncer: PgBouncer;
  beforeAll(async () => {
    // Fewer connections than clients have, so that each transaction may get another.
    pgBouncer = await startPgBouncer(stage.url, 4);
  });
  afterAll(() => pgBouncer.stop());

  test.each([
    ['a worker that was told not to listen', false],
    ['a worker with the default options', true],
  ])(
    '%s works by polling, and the jobs of a dead one begin elsewhere within 35 s',
    {
      timeout: 180_000,
    },
    async (_name, listen) => {
      const { ledger, fleet } = stage;
      const url = pgBouncer.url(stage.url);
      await fleet.startMany(3, { url, worker: { listen } });
      const load = new Load(ledger);
      await delay(3_000);
      const [victim] = fleet.living;
      if (victim === undefined) throw new Error('no worker lives');
      await ledger.enqueue(
        Array.from({ length: 60 }, () => ({ job: transactional, work: { workMs: 2_000 } })),
      );
      await delay(1_000);
      const killedAtMs = await victim.kill();
      const held = await ledger.heldBy(victim.workerId);
      expect(held.length).toBeGreaterThan(0);
      const times = await recoveryTimes(ledger, fleet, victim, held, killedAtMs);
      await load.end();
      await ledger.settled();
      expect(await fleet.stop()).toEqual([0, 0]);
      printTimes(`behind PgBouncer, listen: ${listen}, from the kill to the start elsewhere`, times);
      expect(await violations(ledger, fleet)).toEqual([]);
      expect(Math.max(...times)).toBeLessThanOrEqual(35_000);
      expect(fleet.entries().filter(({ event }) => event === 'listening')).toEqual([]);
    },
  );
});
