import { createQueue, createWorker, defineJob, drain, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { addWorkers, claimGroups } from '../queries/support/groups.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ limits: limitsIn(control, { q: { groups: { concurrency: 1 } } }) });
const k = defineJob('k', { payload: unvalidated<string>(), queue: 'q', group: (group) => group });

/** A look at all groups waits for this lock, or is refused. Nothing else that a worker sends is. */
const LOCK = 4_711;

beforeAll(async () => {
  await addControlTables(database);
  await database.client.unsafe(`
    create table refusals (n int);
    create function hold_looks() returns trigger language plpgsql as $$
      begin
        if current_query() like '%with stale as%' then
          perform pg_advisory_xact_lock_shared(${LOCK});
          if exists (select from refusals) then raise exception 'no look now'; end if;
        end if;
        return null;
      end $$;
    create trigger hold_looks before insert on queue_notes for each statement execute function hold_looks()`);
});

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'refusals');
  await emptyTables(database.client, 'queue_groups', 'queue_notes', 'queue_holds', 'queue_limits');
});

/** Lets looks wait until what it answers is called. */
async function holdLooks(): Promise<() => Promise<void>> {
  const connection = await database.client.reserve();
  await connection`select pg_advisory_lock(${LOCK})`;
  let isHeld = true;
  const release = async () => {
    if (!isHeld) return;
    isHeld = false;
    await connection`select pg_advisory_unlock(${LOCK})`;
    connection.release();
  };
  onTestFinished(release);
  return release;
}

async function waitingLooks(): Promise<number> {
  const [row] = await database.client`
    select count(*)::int4 as waiting from pg_locks
    where locktype = 'advisory' and objid = ${LOCK} and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  return Number(row?.waiting);
}

/** A job that another worker holds, and the death of that one, which leaves no note. */
async function heldByAnother() {
  const [other = 0] = await addWorkers(database.client);
  // It lives as long as this test takes.
  await database.client`update queue_workers set seen_at = now() + interval '1 hour' where id = ${other}`;
  const { id } = await queue.enqueue(database.db, k, 'theirs');
  expect((await claimGroups(database.db, other)).jobs).toMatchObject([{ id }]);
  return {
    id,
    // The lock of its session is free.
    die: () => database.client`update queue_workers set session = 1 where id = ${other}`,
    remove: () => database.client`delete from queue_workers where id = ${other}`,
  };
}

async function started() {
  const begun: number[] = [];
  const errors: string[] = [];
  const worker = createWorker(database.db, {
    queue,
    handlers: [handle(k, ({ job }) => void begun.push(job.id))],
    reconnectMs: 1_000,
    log: false,
  });
  worker.on('error', ({ during }) => void errors.push(during));
  onTestFinished(() => worker.stop());
  await worker.start();
  const enqueue = async (group: string) => {
    const { id } = await queue.enqueue(database.db, k, group);
    await until(() => begun.includes(id));
  };
  return { begun, errors, enqueue };
}

test('claims wait for no look at all groups: not the first one, nor the next after a death', async () => {
  const theirs = await heldByAnother();
  const releaseFirst = await holdLooks();
  const { begun, enqueue } = await started();
  await until(async () => (await waitingLooks()) > 0);
  await enqueue('a');
  expect(await waitingLooks()).toBe(1);
  await releaseFirst();
  await until(async () => (await waitingLooks()) === 0);

  const release = await holdLooks();
  await theirs.die();
  await until(async () => (await waitingLooks()) > 0);
  for (const group of ['b', 'c']) await enqueue(group);
  expect(await waitingLooks()).toBe(1);
  expect(begun).not.toContain(theirs.id);
  await release();
  await until(() => begun.includes(theirs.id));
});

test('a look that fails is made again, and claims go on meanwhile', async () => {
  const theirs = await heldByAnother();
  const { begun, errors, enqueue } = await started();
  await enqueue('a');
  await database.client`insert into refusals values (1)`;
  await theirs.die();
  await until(() => errors.length >= 2);
  await enqueue('b');
  expect(new Set(errors)).toEqual(new Set(["looking for jobs of 'q' that workers left behind"]));
  expect(begun).not.toContain(theirs.id);
  await database.client`delete from refusals`;
  await until(() => begun.includes(theirs.id));
});

test('a drain is over only after it has looked for what gone workers held', async () => {
  const theirs = await heldByAnother();
  await queue.enqueue(database.db, k, 'a');
  let release = async () => {};
  let isOver = false;
  const drained = drain(database.db, {
    queue,
    handlers: [
      handle(k, async ({ job }) => {
        if (job.id === theirs.id) return;
        // Its first look is over: without another one it would not know of this job.
        release = await holdLooks();
        await theirs.remove();
      }),
    ],
    deadlineMs: 100_000,
  }).finally(() => {
    isOver = true;
  });
  await until(async () => isOver || (await waitingLooks()) > 0);
  expect(isOver).toBe(false);
  await release();
  expect(await drained).toMatchObject({ completed: 2, empty: true });
});
