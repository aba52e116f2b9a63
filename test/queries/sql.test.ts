import { readdir, readFile } from 'node:fs/promises';
import type { SQL } from 'drizzle-orm';
import { PgDialect, text as textColumn } from 'drizzle-orm/pg-core';
import { createQueueTables } from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import {
  queueGroups,
  queueHolds,
  queueLimits,
  queueNotes,
  queueUsage,
} from '../../src/features/control/index.ts';
import { withGrouping } from '../../src/features/limits/sql/group-statements.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { tables } from './support/jobs.ts';
import { snapshotsOf } from './support/snapshot.ts';
import { changesIn, clauseText, functionsIn, plainText } from './support/sql-text.ts';
import { factsOf } from './support/statement-facts.ts';
import { allStatements } from './support/statements.ts';

const dialect = new PgDialect();
const render = (query: SQL) => dialect.sqlToQuery(query);
const statements = Object.entries(allStatements(tables));
const texts = statements.map(([name, query]) => [name, render(query).sql] as const);
const { about } = factsOf(statements.map(([name]) => name));

test('every exported statement is among those tested here', async () => {
  const folder = new URL('../../src/', import.meta.url);
  const exported: string[] = [];
  for (const file of await readdir(folder, { recursive: true })) {
    if (!/\/queries\/.*\.ts$/.test(file)) continue;
    const module: object = await import(new URL(file, folder).href);
    exported.push(...Object.keys(module).filter((name) => name.endsWith('Query')));
  }
  expect(exported.length).toBeGreaterThan(20);
  const tested = new Set(statements.map(([name]) => name.split(',')[0]));
  expect([...tested].sort()).toEqual(exported.sort());
});

// Both majors of drizzle-orm are held to the same files.
const snapshots = Object.entries(snapshotsOf(allStatements(tables)));

test.each(snapshots)('the text of %s', async (_, { file, text }) => {
  await expect(text).toMatchFileSnapshot(`./__snapshots__/${file}`);
});

test('each kept text is of a statement', async () => {
  const kept = (await readdir(new URL('./__snapshots__/', import.meta.url))).filter((file) =>
    /\.(?:sql|diff)$/.test(file),
  );
  expect(kept.sort()).toEqual(snapshots.map(([, { file }]) => file).sort());
});

test('beside queues with groups, a queue without limits is claimed from and settled by the same texts', () => {
  const limited = { ...tables, queueLimits, queueUsage, queueGroups, queueHolds, queueNotes };
  const beside = allStatements(withGrouping(limited, limited, new Map([['another', { groups: {} }]])));
  const changed = texts.filter(([name, text]) => {
    const query = beside[name];
    return query === undefined || render(query).sql !== text;
  });
  // Those of groups are here of a queue that has them; these others ask for the group of each job.
  const others = changed.map(([name]) => name).filter((name) => !name.includes('group'));
  expect(new Set(others.map((name) => name.split(',')[0]))).toEqual(
    new Set([
      'fireSchedulesQuery',
      'foldTalliesQuery',
      'insertTrailingJobsQuery',
      'insertWaitingJobsQuery',
      'redriveJobsQuery',
    ]),
  );
});

test.each(texts)('the text of %s does not depend on the values', (name, text) => {
  const odd = `'; drop table queue_jobs; -- $1 \\ " ü`;
  const other = allStatements(tables, { text: odd, id: 7, time: new Date(0) })[name];
  expect(other && render(other).sql).toBe(text);
});

test('the texts hold no literals but their own', () => {
  const literals = new Set(texts.flatMap(([, text]) => text.match(/'(?:[^']|'')*'/g) ?? []));
  expect([...literals].sort()).toEqual(
    [
      `''`,
      `'$.ids[0 to 9]'`,
      `' ('`,
      `')'`,
      `', '`,
      `'1 hour'`,
      `'1 minute'`,
      `'48 hours'`,
      `'720 hours'`,
      `'ClaimRefusedError'`,
      `'WorkerLostError'`,
      `'off'`,
      `'synchronous_commit'`,
      `'attempts'`,
      `'delayMs'`,
      `'end'`,
      `'ended'`,
      `'error'`,
      `'kind'`,
      `'output'`,
      `'signal'`,
      `'first'`,
      `'forked'`,
      `'detached'`,
      `'key'`,
      `'tookMs'`,
      `'trace'`,
      `'undo'`,
      `'undo:%'`,
      `'undo:'`,
      `'unsought'`,
      `'batch'`,
      `'enqueue'`,
      `'live'`,
      `'until'`,
      `'value'`,
      `'runAtMs'`,
      `'source'`,
      `'uniqueKey'`,
      `'usage'`,
      `'used'`,
      `'usedMany'`,
      `'client backend'`,
      `'jobs'`,
      `'name'`,
      `'results'`,
      `'rollback prepared '`,
      `'select pg_terminate_backend('`,
      `'the prepared transaction '`,
      `'the process '`,
      `'#'`,
      `'*'`,
      `'-infinity'`,
      `'1 microsecond'`,
      `'1 millisecond'`,
      `'${[8, 4, 4, 4, 12].map((digits) => `[0-9a-fA-F]{${digits}}`).join('-')}|0[xX][0-9a-fA-F]+|[0-9]+'`,
      `'^[A-Za-z0-9_$-]{1,60}$'`,
      `'boolean'`,
      `'g'`,
      `'ExclusiveLock'`,
      `'UTC'`,
      `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`,
      `'[]'`,
      `'{"drizzle_queue.awaited": true}'`,
      `'__drizzle_migrations'`,
      `'advisory'`,
      `'aside'`,
      `' '`,
      `'at'`,
      `'attempt'`,
      `'bounded'`,
      `'autovacuum'`,
      `'c'`,
      `'cancelled'`,
      `'citus'`,
      `'completed'`,
      `'discarded'`,
      `'due'`,
      `'epoch'`,
      `'execute'`,
      `'frozen'`,
      `'group'`,
      `'grown'`,
      `'id'`,
      `'ids'`,
      `'idle'`,
      `'in_hot_standby'`,
      `'infinity'`,
      `'left'`,
      `'lock_timeout'`,
      `'lost'`,
      `'message'`,
      `'more'`,
      `'null'`,
      `'number'`,
      `'object'`,
      `'p'`,
      `'pg_control_system()'`,
      `'r'`,
      `'rated'`,
      `'ready'`,
      `'repeated'`,
      `'running'`,
      `'scheduled'`,
      `'select'`,
      `'server_version'`,
      `'server_version_num'`,
      `'silent'`,
      `'sleep'`,
      `'small'`,
      `'smallJobs'`,
      `'string'`,
      `'transaction_read_only'`,
      `'waiting'`,
      `'parent'`,
      `'passed'`,
      `'policy'`,
      `'queue'`,
      `'cancel'`,
      `'run'`,
      `'failure'`,
      `'cost'`,
      `'crowded'`,
      `'maxAttempts'`,
      `'metadata'`,
      `'priority'`,
      `'schedule'`,
      `'{"a_key": 0}'`,
      `'{}'`,
    ].sort(),
  );
});

test('a hold ends through one door', async () => {
  const folder = new URL('../../src/', import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith('.ts'));
  const elsewhere: string[] = [];
  for (const path of files) {
    const text = await readFile(new URL(path, folder), 'utf8');
    // A condition names the alias: `j.worker_id`. What is set, or deleted, does not.
    const ends =
      /(?<![\w.])worker_id = |delete from \$\{(?:\w+\.)?queueJobs\}|update \$\{(?:\w+\.)?queueJobs\} as j\s+set[^`]*(?<![\w.])worker_id\b/;
    if (ends.test(text)) elsewhere.push(path);
  }
  expect(elsewhere).toEqual(['core/sql/hold-end.ts']);
  // What goes through it, by the text that comes out.
  const through = texts
    .filter(([, text]) => /(?<![\w.])worker_id = |delete from "queue_jobs"/.test(text))
    .map(([name]) => name);
  const tagged = statements.map(([name]) => name).filter((name) => about(name).endsHold !== undefined);
  expect(tagged, 'with @endsHold').toEqual(through);
  expect(through.length).toBeGreaterThan(50);
});

/** The places where a statement names the table of live jobs without their queue. */
function placesAcrossQueues(text: string): string[] {
  return [...text.matchAll(/"queue_jobs" as j/g)]
    .map(({ index }) => clauseText(text, index))
    .filter((place) => !/\bj\.queue = (?:\$\d+(?:::text)?|i\.queue)(?!\d)/.test(place));
}

describe('statements about held and waiting jobs', () => {
  const crosses = (name: string) => about(name).crossesQueues !== undefined;
  const ofQueues = texts.filter(
    ([name, text]) => /(?:from|join|update) "queue_jobs" as j/.test(text) && !crosses(name),
  );
  const acrossQueues = texts.filter(([name]) => crosses(name));

  test('are found by the alias that the table has wherever rows are not put into it', () => {
    const others = texts.flatMap(([name, text]) =>
      [...text.matchAll(/"queue_jobs"(?! as j\b)/g)]
        .filter(({ index }) => !/\binsert into $/.test(text.slice(0, index)))
        .map(({ index }) => `${name}: ${text.slice(index - 20, index + 20)}`),
    );
    expect(others).toEqual([]);
  });

  test.each(ofQueues)('%s names the queue wherever it names the table', (_, text) => {
    expect(placesAcrossQueues(text), 'its docstring has no @crossesQueues').toEqual([]);
  });

  test.each(acrossQueues)('%s does not, as its docstring says', (_, text) => {
    expect(placesAcrossQueues(text), 'it needs no @crossesQueues').not.toEqual([]);
  });

  test('are most', () => {
    expect(ofQueues.length).toBeGreaterThan(130);
    expect(acrossQueues.length).toBeGreaterThan(40);
  });

  test('only read where they do not name the queue', () => {
    const modifying = /\b(?:insert|update|delete)\b/;
    for (const [, text] of acrossQueues) expect(plainText(text)).not.toMatch(modifying);
  });
});

describe('partitions by queue', () => {
  test('find their rows: every change of the results names the queue', () => {
    const places = texts.flatMap(([, text]) =>
      [...text.matchAll(/(?:delete from|update) "queue_results" as r/g)].map(({ index }) =>
        clauseText(text, index),
      ),
    );
    expect(places.length).toBeGreaterThan(2);
    for (const place of places) expect(place).toMatch(/\br\.queue\b/);
  });

  test('are told the queue of every new row', () => {
    const lists = texts.flatMap(([, text]) => [
      ...text.matchAll(/insert into "queue_(?:jobs|results)" \(([^)]*)\)/g),
    ]);
    expect(lists.length).toBeGreaterThan(8);
    for (const [, columns = ''] of lists) expect(columns.split(/, */)).toContain('queue');
  });

  test('keep their rows: no UPDATE sets a queue or an id', () => {
    // Schedules have a queue, and are no rows of it.
    const ofJobs = texts.filter(([, text]) => !/insert into "queue_schedules"/.test(text));
    const set = ofJobs.flatMap(([, text]) =>
      changesIn(text).flatMap(({ terms }) => terms.flatMap((term) => /^(\w+) = /.exec(term)?.[1] ?? [])),
    );
    expect(set).toContain('worker_id');
    expect(set.filter((column) => column === 'queue' || column === 'id')).toEqual([]);
  });
});

describe("an app's own columns", () => {
  const own = createQueueTables({ columns: { tenantId: textColumn('tenant_id').notNull() } });
  const withOwn = Object.entries(allStatements(own)).map(
    ([name, query]) => [name, render(query).sql] as const,
  );
  const plain = new Map(texts);

  test('are in these statements alone', async () => {
    const differing = withOwn.filter(([name, text]) => text !== plain.get(name)).map(([name]) => name);
    await expect(`${differing.join('\n')}\n`).toMatchFileSnapshot('./__snapshots__/own-columns.txt');
  });

  // A schedule keeps their values as texts: each is read from there, or is the column's default.
  test.each(withOwn.filter(([name]) => !name.startsWith('fireSchedulesQuery')))(
    'add nothing but their names to %s',
    (name, text) => {
      expect(
        text
          .replaceAll(/, (?:[a-z]\.)?"tenant_id"(?:::text as own_0| = excluded."tenant_id"| = null)?/g, '')
          .replaceAll(/, \(array_agg\(d\.own_0 order by d\.(?:job_)?id desc\)\)\[1\] as own_0/g, ''),
      ).toBe(plain.get(name));
    },
  );
});

describe('functions', () => {
  const database = useTestDatabase({ max: 1 });

  /** The names among `names` of which some function has this volatility. */
  async function ofVolatility(names: Iterable<string>, volatility: 'v'): Promise<string[]> {
    const rows = await database.client<{ name: string }[]>`
      select distinct proname::text as name from pg_proc
      where provolatile = ${volatility} and proname in ${database.client([...names])}`;
    return rows.map(({ name }) => name);
  }

  const changes = texts.flatMap(([name, text]) => changesIn(text).map((change) => [name, change] as const));

  test('are known to Postgres', async () => {
    const names = new Set(texts.flatMap(([, text]) => functionsIn(text)));
    expect(names.size).toBeGreaterThan(10);
    const rows = await database.client<{ name: string }[]>`
      select distinct proname::text as name from pg_proc where proname in ${database.client([...names])}`;
    const known = new Set(rows.map(({ name }) => name));
    expect([...names].filter((name) => !known.has(name))).toEqual([]);
  });

  test('the only volatile ones draw ids and notify, beside an INSERT, lock, set up and place a session, and ask for a size', async () => {
    const names = new Set(texts.flatMap(([, text]) => functionsIn(text)));
    expect((await ofVolatility(names, 'v')).sort()).toEqual([
      'nextval',
      'pg_advisory_unlock',
      'pg_control_system',
      'pg_notify',
      'pg_relation_size',
      'pg_total_relation_size',
      'pg_try_advisory_lock',
      'pg_try_advisory_xact_lock_shared',
      'set_config',
    ]);
  });

  test('in an UPDATE or DELETE are never volatile', async () => {
    const names = changes.flatMap(([, { text }]) => functionsIn(text));
    expect(names).toContain('statement_timestamp');
    expect(await ofVolatility(names, 'v')).toEqual([]);
  });

  test('every UPDATE and DELETE is found', () => {
    const keywords = texts.flatMap(
      ([, text]) => plainText(text).match(/\b(?:update "|update set|delete)/g) ?? [],
    );
    expect(changes).toHaveLength(keywords.length);
    expect(changes.map(([, { terms }]) => terms.length)).not.toContain(0);
  });
});

test('predicates of partial indexes are literal, so that a cached plan can use them', () => {
  const conflicts = texts.flatMap(([, text]) => text.match(/on conflict \([^)]*\) where .*? do/g) ?? []);
  expect(conflicts.length).toBeGreaterThan(2);
  for (const conflict of conflicts) {
    expect(conflict).toMatch(/^on conflict \(queue, kind, (\w+)\) where \1 is not null do$/);
  }
});
