import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { serverUser } from '../support/server-user.ts';
import { until } from '../support/until.ts';
import { ordinary } from './fixtures/ledger-jobs.ts';
import { violations } from './invariants.ts';
import { Load } from './load.ts';
import { print, printTimes, resumeTimes } from './recovery.ts';
import { monotonicMs } from './run-log.ts';
import { useServerStage } from './stage.ts';

const DISK_MB = 24;

let disk: string | undefined;

/** Mounts a small file system of the server's user; answers where, or `undefined` where that is not allowed. */
function mountDisk(): string | undefined {
  const user = serverUser();
  if (user === undefined) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'drizzle-queue-disk-'));
  const options = `size=${DISK_MB}m,mode=0700,uid=${user.uid},gid=${user.gid}`;
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory]);
  if (status === 0) return directory;
  rmSync(directory, { recursive: true });
  return undefined;
}

describe('a full disk', () => {
  beforeAll(() => {
    disk = mountDisk();
  });
  // Registered before the server's, so it runs after the server has stopped.
  afterAll(() => {
    if (disk === undefined) return;
    spawnSync('umount', [disk]);
    rmSync(disk, { recursive: true });
  });
  const stage = useServerStage();

  test('errors that say so; nothing is lost; all goes on when there is room again', {
    timeout: 120_000,
  }, async ({ skip }) => {
    if (disk === undefined) {
      print('No small file system can be mounted here (that takes root), so no disk is filled');
      skip();
    }
    const { ledger, fleet } = stage;
    await ledger.pool.query(`create tablespace small location '${disk}'`);
    for (const table of ['queue_jobs', 'queue_results'])
      await ledger.pool.query(`alter table ${table} set tablespace small`);
    await ledger.pool.query(
      'create table filler (filling text) with (autovacuum_enabled = false) tablespace small',
    );
    const workers = await fleet.startMany(2);
    const load = new Load(ledger);
    await resumeTimes(fleet, workers, 0);

    // Large bites first, then crumbs, until there is no room for a single page.
    for (const rows of [1_000, 1]) await until(() => fill(rows), { intervalMs: 0 });
    const refused = await until(async () => {
      await fill(1);
      return ledger
        .enqueue(Array.from({ length: 200 }, () => ({ job: ordinary, work: { workMs: 0 } })))
        .then(() => undefined, sqlStateOf);
    });
    expect(refused).toBe('53100');
    await until(() =>
      fleet.entries().some(({ event, detail }) => event === 'error' && /No space left/.test(detail ?? '')),
    );

    await ledger.pool.query('drop table filler');
    const times = await resumeTimes(fleet, workers, monotonicMs());
    await load.end();
    await ledger.settled();
    expect(await fleet.stop()).toEqual([0, 0]);
    printTimes('a full disk, from the moment of new room to the next start in each worker', times);
    expect(await violations(ledger, fleet)).toEqual([]);
  });

  /** Takes room on the disk; answers the SQLSTATE when there is none. */
  async function fill(rows: number): Promise<string | undefined> {
    try {
      await stage.ledger.pool.query(
        `insert into filler select string_agg(md5(random()::text), '') from generate_series(1, 60 * $1::int) as g group by g % $1::int`,
        [rows],
      );
      return undefined;
    } catch (error) {
      return sqlStateOf(error);
    }
  }
});
