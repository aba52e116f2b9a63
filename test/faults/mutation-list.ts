/** The library, broken in one place after the other: see `mutations.ts`. */

export interface Edit {
  readonly file: string;
  readonly text: string;
  readonly by: string;
}

export interface Mutation {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** The file in `test`, without its ending, and the name of the test that must fail. */
  readonly test: readonly [file: string, name: string];
}

const HELD = 'src/core/sql/fence.ts';
const CLAIM = 'src/core/sql/claim-statement.ts';
const GROUPS = 'src/features/limits/sql/groups-in-turn.ts';
const OVERLOOKED = 'src/core/queries/claim/find-overlooked.ts';

export const mutations: readonly Mutation[] = [
  {
    name: 'settling asks neither for the holder nor for the fence',
    edits: [
      {
        file: HELD,
        text: `and j.worker_id is not distinct from \${workerId}::int8 and ((j.id, j.fence) in (select id, fence from i)) is true`,
        by: `and (\${workerId}::int8 is null or true)`,
      },
      {
        file: HELD,
        text: `and j.worker_id is not distinct from \${workerId}::int8 and j.fence = \${fence}::int8`,
        by: `and (\${workerId}::int8 is null or \${fence}::int8 is null or true)`,
      },
      { file: 'src/core/queries/settle/reschedule-jobs.ts', text: 'and i.fence = j.fence', by: '' },
      { file: 'src/core/queries/settle/finish-jobs.ts', text: 'and i.fence = f.fence', by: '' },
    ],
    test: ['faults/frozen', 'the sleeper comes back'],
  },
  {
    name: 'settling asks for the holder, and not for the fence',
    edits: [
      { file: HELD, text: 'and ((j.id, j.fence) in (select id, fence from i)) is true', by: '' },
      { file: HELD, text: `and j.fence = \${fence}::int8`, by: `and (\${fence}::int8 is null or true)` },
      { file: 'src/core/queries/settle/reschedule-jobs.ts', text: 'and i.fence = j.fence', by: '' },
      { file: 'src/core/queries/settle/finish-jobs.ts', text: 'and i.fence = f.fence', by: '' },
    ],
    // The holder alone keeps the books right under faults; the fence tells apart two attempts of one worker.
    test: ['worker/attempt/settle', 'a lost attempt that ends together'],
  },
  {
    name: 'a worker is declared gone without confirmation',
    edits: [
      {
        file: 'src/core/worker/presence/suspicion.ts',
        text: "sinceMs + (why === 'lost' ? confirmedMs : 0)",
        by: "sinceMs + (why === 'lost' ? 0 * confirmedMs : 0)",
      },
    ],
    test: ['faults/network', 'drops all connections'],
  },
  {
    name: 'no sweep takes the jobs of a worker that is gone',
    edits: [
      { file: OVERLOOKED, text: `else j.worker_id <>`, by: 'else false and j.worker_id <>' },
      { file: CLAIM, text: 'const held = fromGoneWorkers', by: 'const held = fromGoneWorkers && !among' },
    ],
    test: ['faults/kill', 'SIGKILL of one of four'],
  },
  {
    name: 'a sweep takes the jobs of any other worker',
    edits: [
      {
        file: OVERLOOKED,
        text: `and (j.worker_id in (select w.id from \${queueWorkers} as w)) is false`,
        by: '',
      },
      { file: CLAIM, text: `and j.worker_id not in (select w.id from \${queueWorkers} as w)`, by: '' },
    ],
    test: ['faults/connections', 'of the connections that hold the locks'],
  },
  {
    name: 'a worker that comes back judges also what it has claimed since it asked',
    edits: [
      {
        file: 'src/core/worker/claim/holdings.ts',
        text: 'attempts.endLost(unfinished, await findHeldJobs(db, tables, holder, jobs));',
        by: 'const found = await findHeldJobs(db, tables, holder, jobs);\nattempts.endLost(attempts.unfinished, found);',
      },
    ],
    test: ['faults/returns', 'until declared gone'],
  },
  {
    name: 'settling waits for rows that a transaction of the app has locked',
    edits: [{ file: 'src/core/sql/row-locks.ts', text: "'100ms'", by: "'60s'" }],
    test: ['faults/row-locks', 'rows locked by transactions'],
  },
  {
    name: 'a batch that is refused for a bad row is repeated as it is',
    edits: [
      {
        file: 'src/core/worker/base/refusal.ts',
        text: 'return ABOUT_THE_SERVER.test(sqlState) && !OF_THE_STATEMENT.test(sqlState);',
        by: 'return !/^(22|23|54)/.test(sqlState);',
      },
    ],
    test: ['faults/bad-rows', 'refused by a trigger'],
  },
  {
    name: 'a claim begins everything, also what waits behind a running job on its last attempt',
    edits: [
      {
        file: 'src/core/worker/claim/claims.ts',
        text: 'bands: sent, limit, beginning, without }',
        by: 'bands: sent, limit, beginning: undefined, without }',
      },
    ],
    test: ['faults/last-attempts', 'while all jobs have one attempt'],
  },
  {
    name: 'a tick that another worker has fired is fired again',
    edits: [
      {
        file: 'src/features/schedules/queries/fire-schedules.ts',
        text: 'and s.revision = i.revision',
        by: '',
      },
    ],
    test: ['faults/schedules', 'each tick fires once'],
  },
  {
    name: 'a claim takes a group although another statement has changed it since it looked',
    edits: [{ file: GROUPS, text: 'and g.turn = s.turn', by: 'and (true or g.turn = s.turn)' }],
    test: ['queries/group-races', 'is left to the next claim'],
  },
  {
    name: 'a claim of groups does not count what others hold',
    edits: [
      {
        file: GROUPS,
        text: `count(*) filter (where j.worker_id in (select w.id from \${queueWorkers} as w)) as held`,
        by: 'count(*) * 0 as held',
      },
    ],
    test: ['queries/group-races', 'never hold more of a group than its limit'],
  },
  {
    name: 'a claim of groups leaves no holds',
    edits: [
      {
        file: 'src/features/limits/sql/jobs-of-groups.ts',
        text: 'when c.standing is null then',
        by: "when true then '{}' when c.standing is null then",
      },
    ],
    test: ['queries/group-races', 'never hold more of a group than its limit'],
  },
  {
    name: 'a start uses up nothing of the rate of its group',
    edits: [
      {
        file: 'src/features/limits/sql/jobs-of-groups.ts',
        text: 'sql`coalesce(c.taken_cost, 0)`)} end`',
        by: 'sql`0`)} end`',
      },
    ],
    test: ['queries/claim-grouped-jobs', 'what claims before have started counts'],
  },
  {
    name: 'a job of a group with a rate begins however late',
    edits: [
      {
        file: 'src/core/worker/begin/too-late.ts',
        text: 'performance.now() >= beginTime.untilMs',
        by: 'performance.now() < 0',
      },
    ],
    test: ['limits/rated-groups', 'declared, though the slot was taken'],
  },
  {
    name: 'a job of a group with a rate counts as if it began with its claim',
    edits: [
      {
        file: 'src/features/limits/sql/groups-in-turn.ts',
        text: 'rateWindow(sql`l.rate_used`, ratePerMs, within)',
        by: 'rateWindow(sql`l.rate_used`, ratePerMs, sql`0`)',
      },
    ],
    test: ['limits/rated-groups', 'a job counts for as long as it may begin'],
  },
  {
    name: 'claims of groups do not look at those of the dead',
    edits: [
      {
        file: 'src/features/limits/queries/note-groups.ts',
        text: 'and j.worker_id is not null and',
        by: 'and j.worker_id is null and',
      },
    ],
    test: ['faults/groups', 'of which nobody else knows'],
  },
  {
    name: 'workers lease a slot more than their code declares',
    edits: [
      {
        file: 'src/features/limits/queries/take-lease.ts',
        text: '.declared}::int4) as max',
        by: '.declared}::int4 + 1) as max',
      },
    ],
    test: ['faults/rolling-limits', 'what each declares holds'],
  },
  {
    name: 'a worker goes on behind a job of a group that it has lost',
    edits: [
      {
        file: 'src/core/worker/begin/attempts.ts',
        text: 'if (!this.#runs.goesOnAfter(conclusion)) this.#giveBack(this.#waiting.takeBehind(attempt, wentOn));',
        by: 'if (!wentOn && !this.#runs.goesOnAfter(conclusion)) this.#giveBack(this.#waiting.takeBehind(attempt, wentOn));',
      },
      {
        file: 'src/core/worker/begin/waiting.ts',
        text: 'return lost.flatMap((attempt) => (waited.has(attempt) ? runs.end(attempt) : runs.cut(attempt)));',
        by: 'return lost.flatMap((attempt) => (waited.has(attempt) ? runs.end(attempt) : []));',
      },
    ],
    test: ['faults/groups', 'begins nothing behind a job that it has lost'],
  },
  {
    name: 'what has been due for longest is not claimed first',
    edits: [
      {
        file: 'src/core/worker/claim/aged-bands.ts',
        text: 'for (const part of oldParts(floorsMs, afterMs, oldMs)) add(part);',
        by: '',
      },
    ],
    test: ['worker/claim/aging', "'ten' each priority begins"],
  },
  {
    name: 'a wake-up during the hold does not keep a job from being parked',
    edits: [{ file: 'src/core/queries/settle/park-jobs.ts', text: 'j.run_at > j.claimed_at or', by: '' }],
    test: ['model/job-lives', 'whatever happens to them'],
  },
  {
    name: 'a parked job that is due again is not put before its time',
    edits: [
      {
        file: 'src/features/workflows/queries/unpark-jobs.ts',
        text: ': sql`least(j.run_at, now.at)`',
        by: ': sql`greatest(j.run_at, now.at)`',
      },
    ],
    test: ['model/job-lives', 'whatever happens to them'],
  },
];

/** A text as it stands in a source, however its lines are broken there. */
export function pattern(text: string): RegExp {
  const words = text.split(/\s+/).map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(words.join('\\s+'));
}
