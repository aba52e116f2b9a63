import { readdir, readFile } from 'node:fs/promises';
import type { SQL } from 'drizzle-orm';
import { PgDialect, text as textColumn } from 'drizzle-orm/pg-core';
import { createQueueTables } from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { tables } from './support/jobs.ts';
import { changesIn, clauseText, functionsIn, plainText } from './support/sql-text.ts';
import { allStatements } from './support/statements.ts';

const dialect = new PgDialect();
const render = (query: SQL) => dialect.sqlToQuery(query);
const statements = Object.entries(allStatements(tables));
const texts = statements.map(([name, query]) => [name, render(query).sql] as const);

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
test.each(statements)('the text of %s', async (name, query) => {
  const { sql, params } = render(query);
  const lines = params.map((param, index) => `-- $${index + 1} = ${JSON.stringify(param)}`);
  const file = `./__snapshots__/${name.replaceAll(/[^a-zA-Z]+/g, '-')}.sql`;
  await expect(`${[sql.replace(/^\n/, ''), ...lines].join('\n')}\n`).toMatchFileSnapshot(file);
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
      `'batch'`,
      `'enqueue'`,
      `'live'`,
      `'until'`,
      `'value'`,
      `'runAtMs'`,
      `'source'`,
      `'uniqueKey'`,
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
      `'at'`,
      `'attempt'`,
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
      `'id'`,
      `'ids'`,
      `'idle'`,
      `'in_hot_standby'`,
      `'infinity'`,
      `'lock_timeout'`,
      `'lost'`,
      `'message'`,
      `'null'`,
      `'number'`,
      `'object'`,
      `'p'`,
      `'pg_control_system()'`,
      `'r'`,
      `'ready'`,
      `'running'`,
      `'scheduled'`,
      `'select'`,
      `'server_version'`,
      `'server_version_num'`,
      `'silent'`,
      `'sleep'`,
      `'string'`,
      `'transaction_read_only'`,
      `'waiting'`,
      `'parent'`,
      `'policy'`,
      `'queue'`,
      `'cancel'`,
      `'run'`,
      `'failure'`,
      `'cost'`,
      `'maxAttempts'`,
      `'metadata'`,
      `'priority'`,
      `'schedule'`,
      `'{}'`,
    ].sort(),
  );
});

/** Statements that may look at jobs of every queue, and why. */
const acrossQueues: Readonly<Record<string, string>> = {
  findQueueQuery: 'as findJobQuery',
  findJobWithStepQuery: 'as findJobQuery',
  findLeftRowsQuery: 'looks whether jobs of any queue are there, by their keys; a plain read',
  'findLeftRowsQuery, further mailboxes': 'the same',
  countBatchQuery: 'counts those of a batch, which may be in any queue; a plain read',
  countOpenFlowsQuery: 'finds the batches of jobs in any queue; a plain read',
  findMembersQuery: 'as countBatchQuery',
  findToldMembersQuery: 'as countBatchQuery',
  findFlowGroupsQuery: 'the same',
  'findFlowGroupsQuery, in a scope': 'the same',
  findFlowOfJobQuery: 'as findJobQuery',
  findFlowsQuery: 'the kinds of jobs of a flow, which may be in any queue; a plain read',
  'findFlowsQuery, of failed ones': 'the same',
  findGroupJobsQuery: 'lists those of a batch, which may be in any queue; a plain read',
  'findGroupJobsQuery, in a state': 'the same',
  'findGroupJobsQuery, of any kind': 'the same',
  countJobsQuery: 'counts those of all queues; a plain read',
  findPassedOverQuery: 'as findHeadsQuery',
  findPassedOverInShardsQuery: 'as countJobsQuery',
  findHeadsQuery: 'goes from queue to queue; a plain read',
  'findDueQuery, of many queues': 'first asks which priorities there are in any queue; a plain read',
  findCancellableQuery: 'asks in which queues there are such jobs; a plain read',
  findJobQuery: 'by id alone: whoever asks does not know the queue; a plain read',
  findRunnableQuery: 'as findJobQuery',
  findJobsQuery: 'as findJobQuery',
  findLiveIdsQuery: 'as findJobQuery',
  'listJobsQuery, searched': 'goes through the newest ids, whatever their queue; a plain read',
  listJobsQuery: 'a page over all queues unless a filter names one; a plain read',
  browseJobsQuery: 'as listJobsQuery, of the newest rows; a plain read',
  'browseJobsQuery, live, by everything': 'the same',
  'findManyQuery, live': 'a filter may be of all queues; a plain read',
  findImportedJobsQuery:
    'what an import has left, whatever its queue, by a slow plain read before the next one',
  samplePayloadsQuery: 'the newest payloads, whatever their queue; a plain read',
  findSearchEndQuery: 'how far a page over all queues was read; a plain read',
  'findSearchEndQuery, of a group': 'the same',
  'browseJobsQuery, of a key': 'a key in every queue; a plain read',
  'browseJobsQuery, of a key among the newest': 'the same',
  'browseJobsQuery, of a group': 'a group in every queue; a plain read',
  'browseJobsQuery, of ended jobs of a group': 'the same',
  'browseJobsQuery, retrying': 'failed jobs of every queue; a plain read',
  countRetryingQuery: 'the same',
  'countRetryingQuery, of queues': 'the same',
  groupRetryingQuery: 'the same',
  countOfGroupQuery: 'the same',
  findBandsQuery: 'finds the queues; a plain read',
  'findBandsQuery, of a group': 'the same of some queues',
  browseByRunAtQuery: 'each band names its queue; a plain read',
  findReadEndQuery: 'the same',
  'findReadEndQuery, of a full page': 'the same',
  showJobQuery: 'by id alone, as findJobQuery; a plain read',
  'showJobQuery, of queues': 'the same',
  'countJobsQuery, of queues': 'those of some queues; a plain read',
  lookAtWorkersQuery: 'what workers hold in every queue; a plain read, whose time its caller bounds',
  'lookAtWorkersQuery, of queues': 'the same of some queues',
};

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
  const through = texts.filter(([, text]) => /(?<![\w.])worker_id = |delete from "queue_jobs"/.test(text));
  expect(new Set(through.map(([name]) => name.split(',')[0]))).toEqual(
    new Set([
      'cancelJobQuery',
      'cancelJobsQuery',
      'claimGroupedJobsQuery',
      'claimJobsQuery',
      'completeOneJobQuery',
      'finishJobsQuery',
      'finishWaitingJobQuery',
      'parkJobsQuery',
      'reclaimJobQuery',
      'releaseJobsQuery',
      'rescheduleJobsQuery',
      'tryClaimQuery',
    ]),
  );
});

describe('statements about held and waiting jobs', () => {
  const aboutJobs = texts.filter(
    ([name, text]) => /(?:from|join|update) "queue_jobs" as j/.test(text) && !(name in acrossQueues),
  );

  test('are these', () => {
    expect(aboutJobs.map(([name]) => name)).toEqual([
      'copyStepsQuery',
      'lockLiveJobQuery',
      'deleteLeftRowsQuery',
      'receiveSignalQuery',
      'receiveSignalQuery, in a transaction',
      'receiveSignalQuery, behind another step',
      'receiveSignalQuery, of several',
      'recordStepsQuery',
      'recordStepsQuery, in a transaction',
      'recordOneStepQuery',
      'recordOneStepQuery, in a transaction',
      'recordOneStepQuery, as text',
      'findWaitingJobQuery',
      'finishWaitingJobQuery',
      'finishWaitingJobQuery, outcome, by unique key',
      'finishWaitingJobQuery, no result, of groups',
      'sendSignalQuery',
      'sendSignalQuery, once, by unique key',
      'deleteLeftBatchesQuery',
      'endMembersQuery',
      'endMembersQuery, of groups',
      'findUnwokenQuery',
      'wakeWaitersQuery',
      'wakeWaitersQuery, of groups',
      'foldTalliesQuery',
      'foldTalliesQuery, of any batch',
      'foldTalliesQuery, without waking',
      'foldTalliesQuery, of groups',
      'spareMembersQuery',
      'parkWaitersQuery',
      'waitForBatchesQuery',
      'waitForBatchesQuery, in a transaction',
      'enqueueChildrenQuery',
      'enqueueChildrenQuery, several in a transaction',
      'enqueueChildrenQuery, of groups',
      'claimJobsQuery, of members',
      'completeOneJobQuery, of members',
      'finishJobsQuery, of members',
      'finishJobsQuery, of members in groups',
      'rescheduleJobsQuery, of members',
      'cancelJobQuery, of members',
      'countSomeJobsQuery',
      'estimatedJobsQuery',
      'estimatedJobsQuery, live',
      'estimatedJobsQuery, running',
      'beginJobsQuery',
      'beginJobsQuery, soon on disk',
      'beginJobsQuery, in a large table',
      'beginJobsQuery, of free rows',
      'cancelJobQuery',
      'cancelJobQuery, forced',
      'admitGroupsQuery',
      'claimGroupedJobsQuery',
      'claimGroupedJobsQuery, of known groups',
      'claimGroupedJobsQuery, one after the other',
      'claimGroupedJobsQuery, by rates',
      'claimGroupedJobsQuery, one after the other by rates',
      'noteFreedGroupsQuery',
      'noteForgottenGroupsQuery',
      'pruneGroupsQuery',
      'adoptJobsQuery',
      'findGroupsQuery',
      'claimGroupedJobsQuery, few of a kind',
      'claimGroupedJobsQuery, one after the other, few of a kind',
      'claimGroupedJobsQuery, without some',
      'findDueIdsQuery',
      'findGroupedDueIdsQuery',
      'findFirstDueQuery',
      'findRefusedJobsQuery',
      'tryClaimQuery',
      'setAsideJobQuery',
      'claimJobsQuery',
      'claimJobsQuery, with costs',
      'claimJobsQuery, without some',
      'claimJobsQuery, of a small table',
      'claimJobsQuery, beginning many',
      'claimJobsQuery, aging',
      'claimJobsQuery, among',
      'claimJobsQuery, held by lock',
      'findDueQuery',
      'findDueQuery, of one queue',
      'findFatesQuery',
      'findHeldJobsQuery',
      'findUnknownJobsQuery',
      'findOverlookedQuery',
      'findOverlookedQuery, of one queue',
      'findRequestsQuery',
      'jobRequestsQuery',
      'hasGroupsQuery',
      'findStandingJobsQuery',
      'findStandingJobsQuery, waiting',
      'completeOneJobQuery',
      'completeOneJobQuery, as text',
      'completeOneJobQuery, outcome, as text',
      'completeOneJobQuery, no result',
      'completeOneJobQuery, no result, as text',
      'completeOneJobQuery, of groups',
      'completeOneJobQuery, no result, of groups',
      'finishJobsQuery',
      'finishJobsQuery, outcomes',
      'finishJobsQuery, some outcomes',
      'finishJobsQuery, only in a transaction',
      'finishJobsQuery, waiting briefly',
      'finishJobsQuery, of free rows',
      'finishJobsQuery, of groups',
      'finishJobsQuery, of groups, only in a transaction',
      'finishJobsQuery, of groups that stop',
      'rescheduleJobsQuery, of groups',
      'rescheduleJobsQuery, of groups that keep their order',
      'releaseJobsQuery, of groups',
      'releaseJobsQuery, after a failover',
      'cancelJobsQuery',
      'cancelJobsQuery, of groups, forced',
      'requestCancelsQuery, of some',
      'requestCancelsQuery',
      'findCancellableQuery, filtered',
      'cancelJobQuery, of groups',
      'insertTrailingJobsQuery',
      'insertTrailingJobsQuery, of groups, waking',
      'insertOneJobQuery, unique, waking',
      'listJobsQuery, live',
      'parkJobsQuery',
      'lockHeldJobQuery',
      'lockHeldJobsQuery',
      'reclaimJobQuery',
      'carryOverJobsQuery',
      'releaseImportedJobsQuery',
      'releaseImportedJobsQuery, of groups',
      'runJobNowQuery',
      'runJobNowQuery, several',
      'runJobNowQuery, of groups',
      'releaseJobsQuery',
      'requestCancelQuery',
      'rescheduleJobsQuery',
      'rescheduleJobsQuery, waiting briefly',
      'rescheduleJobsQuery, of free rows',
      'unparkJobsQuery',
      'unparkJobsQuery, in any case',
      'unparkJobsQuery, of groups',
      'writeProgressQuery',
    ]);
  });

  test('are found by the alias that the table has wherever rows are not put into it', () => {
    const others = texts.flatMap(([name, text]) =>
      [...text.matchAll(/"queue_jobs"(?! as j\b)/g)]
        .filter(({ index }) => !/\binsert into $/.test(text.slice(0, index)))
        .map(({ index }) => `${name}: ${text.slice(index - 20, index + 20)}`),
    );
    expect(others).toEqual([]);
  });

  test.each(aboutJobs)('%s names the queue wherever it names the table', (_, text) => {
    const places = [...text.matchAll(/"queue_jobs" as j/g)].map(({ index }) => clauseText(text, index));
    expect(places).not.toHaveLength(0);
    for (const place of places) expect(place).toMatch(/\bj\.queue = (?:\$\d+(?:::text)?|i\.queue)(?!\d)/);
  });

  test('the exceptions only read', () => {
    const modifying = /\b(?:insert|update|delete)\b/;
    const exceptions = texts.filter(([name]) => name in acrossQueues);
    expect(exceptions).toHaveLength(Object.keys(acrossQueues).length);
    for (const [, text] of exceptions) expect(plainText(text)).not.toMatch(modifying);
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

  test('are in these statements alone', () => {
    const differing = withOwn.filter(([name, text]) => text !== plain.get(name)).map(([name]) => name);
    expect(differing).toEqual([
      'findJobWithStepQuery',
      'finishWaitingJobQuery',
      'finishWaitingJobQuery, outcome, by unique key',
      'finishWaitingJobQuery, no result, of groups',
      'findGroupJobsQuery',
      'findGroupJobsQuery, in a state',
      'findGroupJobsQuery, of any kind',
      'claimJobsQuery, of members',
      'completeOneJobQuery, of members',
      'finishJobsQuery, of members',
      'finishJobsQuery, of members in groups',
      'cancelJobQuery, of members',
      'redriveJobsQuery, of members',
      'groupRetryingQuery',
      'cancelJobQuery',
      'cancelJobQuery, forced',
      'claimGroupedJobsQuery',
      'claimGroupedJobsQuery, of known groups',
      'claimGroupedJobsQuery, one after the other',
      'claimGroupedJobsQuery, by rates',
      'claimGroupedJobsQuery, one after the other by rates',
      'claimGroupedJobsQuery, few of a kind',
      'claimGroupedJobsQuery, one after the other, few of a kind',
      'claimGroupedJobsQuery, without some',
      'claimJobsQuery',
      'claimJobsQuery, with costs',
      'claimJobsQuery, without some',
      'claimJobsQuery, of a small table',
      'claimJobsQuery, beginning many',
      'claimJobsQuery, aging',
      'claimJobsQuery, among',
      'claimJobsQuery, held by lock',
      'fireSchedulesQuery',
      'fireSchedulesQuery, of groups',
      'findJobQuery',
      'findJobsQuery',
      'completeOneJobQuery',
      'completeOneJobQuery, as text',
      'completeOneJobQuery, outcome, as text',
      'completeOneJobQuery, of groups',
      'finishJobsQuery',
      'finishJobsQuery, outcomes',
      'finishJobsQuery, some outcomes',
      'finishJobsQuery, only in a transaction',
      'finishJobsQuery, waiting briefly',
      'finishJobsQuery, of free rows',
      'finishJobsQuery, of groups',
      'finishJobsQuery, of groups, only in a transaction',
      'finishJobsQuery, of groups that stop',
      'cancelJobsQuery',
      'cancelJobsQuery, of groups, forced',
      'cancelJobQuery, of groups',
      'insertTrailingJobsQuery',
      'insertTrailingJobsQuery, of groups, waking',
      'insertWaitingJobsQuery, debouncing, waking',
      'insertWaitingJobsQuery, replacing, of groups',
      'insertWaitingJobsQuery, replacing, keeping',
      'listJobsQuery',
      'listJobsQuery, live',
      'listJobsQuery, finished',
      'listJobsQuery, searched',
      'listJobsQuery, searched, finished',
      'redriveJobsQuery',
      'redriveJobsQuery, filtered',
      'redriveJobsQuery, a batch of some',
      'redriveJobsQuery, a batch of cancelled ones',
      'redriveJobsQuery, of groups',
      'redriveJobsQuery, of groups, filtered',
      'redriveJobsQuery, waking',
      'findEndedJobsQuery',
      'browseJobsQuery',
      'browseJobsQuery, live, by everything',
      'browseJobsQuery, of a key',
      'browseJobsQuery, of a key among the newest',
      'browseJobsQuery, of a group',
      'browseJobsQuery, of ended jobs of a group',
      'browseJobsQuery, retrying',
      'browseByRunAtQuery',
      'showJobQuery',
      'showJobQuery, of queues',
      'groupErrorsQuery',
      'groupErrorsQuery, of queues',
      'findCauseQuery',
      'findCauseQuery, of queues',
    ]);
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
