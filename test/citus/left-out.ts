/** Tests that are not run on a cluster, and why. `npm run test:citus` prints those of a slice at its end. */
export interface LeftOut {
  readonly reason: string;
  /** Files, or a `describe` or a test in one: `file > describe > test`. */
  readonly tests: readonly string[];
}

export const LEFT_OUT: readonly LeftOut[] = [
  {
    reason:
      'Citus refuses the claims of groups, so no worker of such a queue starts there, and no job is enqueued into one',
    tests: [
      'test/queue/cancel-many.test.ts > of a group: one that held up those behind it lets them go on',
      'test/queue/check.test.ts > upkeep > jobs in groups that workers of these limits do not see',
      'test/queue/groups.test.ts',
      'test/queue/key-rules.test.ts > replace > in a queue with groups notes the new group and the new time',
      'test/queue/key-rules.test.ts > throttle > in a queue with groups',
      'test/queue/own-columns-of-groups.test.ts',
      'test/queue/run-now.test.ts > a job of a group',
      'test/worker/groups.test.ts',
      'test/worker/group-corners.test.ts',
      'test/worker/group-promises.test.ts > a row that was inserted by hand, without a note, is found',
      'test/worker/group-promises.test.ts > once a queue has groups no longer, the statement of the guide lets its jobs run',
      'test/worker/completed-by-handler.test.ts',
      'test/worker/claim/group-claims.test.ts',
      'test/worker/claim/refused-claims.test.ts > a row that refuses its claim, in a group',
      'test/worker/upkeep/groups.test.ts',
      ...[
        'that of a kind that has used up a rate, in a queue with groups',
        'that of a kind at its limit; jobs of {}',
        "that of a kind at its limit; jobs of { group: 'a' }",
        'that of a kind without a handler',
        'that of a kind at its limit, in several groups',
      ].map(
        (name) => `test/worker/backlogs.test.ts > a backlog that may not run is in nobody’s way > ${name}`,
      ),
      'test/worker/backlogs.test.ts > a kind with a limit that has no jobs leaves the claims of a queue with groups large',
      'test/worker/backlogs.test.ts > an idle queue with limits of groups is not claimed from when its worker looks at limits',
    ],
  },
  {
    reason:
      'Citus refuses a throttle that is trailing; test/queue/key-rules-on-citus.test.ts has what is said then',
    tests: [
      'test/queue/key-rules.test.ts > throttle > trailing, the last that was refused is the job of the next window',
    ],
  },
  {
    reason: 'There a worker asks for each queue by itself, and as often as one that does not listen',
    tests: [
      ...[
        'that listens asks about once a second, for 1 queues',
        'that listens asks about once a second, for 50 queues',
        'that polls asks every pollIntervalMs, once for all its queues',
      ].map((name) => `test/worker/claim/watch.test.ts > an idle worker > ${name}`),
      'test/worker/claim/many-queues.test.ts',
      'test/worker/backlogs.test.ts > a backlog that may not run is in nobody’s way > and costs its worker a few statements a second',
      'test/worker/upkeep/firing.test.ts > a worker whose queue has no schedules asks nothing, and one with distant ones waits for them',
      'test/worker/upkeep/cancel.test.ts > a worker without running jobs asks for pauses alone, seldom when it listens',
    ],
  },
  {
    reason: 'There live jobs are counted exactly or not at all, and the size of the tables is not asked for',
    tests: [
      'test/queue/stats/uncounted.test.ts',
      'test/queue/stats/stats.test.ts > its cost > is that of what it reads, however long it has waited: few jobs are counted again within seconds',
    ],
  },
  {
    reason: 'Citus refuses what the test does to a distributed table',
    tests: [
      'test/queue/check.test.ts > columns > queue_jobs has no queue',
      'test/queue/check.test.ts > columns > queue_results has no queue',
      'test/queue/check.test.ts > columns > alter column id drop identity',
      'test/queue/check.test.ts > upkeep > ids on a node of Citus that JavaScript cannot hold',
      'test/worker/nodes-of-citus.test.ts > a worker does not start, and says why, > through a node whose ids JavaScript cannot hold; and no job is enqueued there',
    ],
  },
  {
    reason: 'The test sets up the tables of its queues by itself, and does not distribute them',
    tests: ['test/queue/other-tables.test.ts'],
  },
  {
    reason: 'The test makes a server look like Citus, and this is one',
    tests: ['test/queue/key-rules-on-citus.test.ts > another refusal passes unchanged'],
  },
  {
    reason:
      'Each node takes its snapshot of a transaction when it is first asked, here after the change of another',
    tests: [
      'test/worker/attempt/complete.test.ts > complete(tx) > is called again after its own statement was refused by the database',
    ],
  },
  {
    reason: 'The test counts by a sequence, and each node counts for itself',
    tests: [
      'test/worker/attempt/bad-rows.test.ts > a row that the database refuses > keeps no stop waiting, and nothing is written after it; a hundred of them lead to no warning of Node.js',
    ],
  },
  {
    reason: 'There the insert and the look for the job that stands are two steps, so the answer has its id',
    tests: [
      'test/queue/enqueue-query.test.ts > a duplicate of a job that was not yet committed when it began has none',
    ],
  },
];

export const SEPARATOR = ' > ';

/** The files that are left out wholly. */
export function filesLeftOut(): string[] {
  return LEFT_OUT.flatMap(({ tests }) => tests.filter((name) => !name.includes(SEPARATOR)));
}

/** Why a test is left out; `undefined`: it is run. @param path of its file, then the names that lead to it */
export function leftOut(
  path: readonly string[],
): { readonly reason: string; readonly by: string } | undefined {
  const places = path.map((_, index) => path.slice(0, index + 1).join(SEPARATOR));
  for (const { reason, tests } of LEFT_OUT) {
    const by = tests.find((name) => places.includes(name));
    if (by !== undefined) return { reason, by };
  }
  return undefined;
}
