import type { Sql } from 'postgres';
import { inTurns, missed, withSites } from '../../harness/bench.ts';
import { Child } from '../../harness/child.ts';
import { figure, times } from '../../harness/ratios.ts';
import { print, type Report } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { median } from '../../median.ts';
import type { Scenario } from '../../scenario.ts';
import { withoutResults } from '../../systems/drizzle-queue/system.ts';
import type { TimeClaimsRequest, TimedClaims } from './time-claims.ts';

const LIMITS = [1, 200];

/** What waits beside the jobs that the worker claims. */
interface Backlog {
  readonly name: string;
  /** What its jobs are, as SQL over the number `i`: queue, kind, priority and when they are due. */
  readonly parts: readonly { queue: string; kind: string; priority: string; runAt: string }[];
}

const DUE = `now() - interval '1 hour' + i * interval '1 microsecond'`;
const BACKLOGS: readonly Backlog[] = [
  { name: 'nothing else', parts: [] },
  {
    name: '1 million scheduled for tomorrow, 1 million due',
    parts: [
      {
        queue: 'bench',
        kind: 'bench',
        priority: 'i % 10',
        runAt: `now() + interval '1 day' + i * interval '1 millisecond'`,
      },
      { queue: 'bench', kind: 'bench', priority: '5', runAt: DUE },
    ],
  },
  {
    name: '1 million due of a queue that it does not serve',
    parts: [{ queue: 'other', kind: 'bench', priority: '5', runAt: DUE }],
  },
  {
    name: '1 million due of a kind that it has no handler for',
    parts: [{ queue: 'bench', kind: 'other', priority: '5', runAt: DUE }],
  },
];

interface Row {
  readonly backlog: string;
  readonly limit: number;
  readonly claimMs: number;
  readonly sweepMs: number;
}

/** What a claim costs, whatever else waits. */
export const scheduled: Scenario = async (options) => {
  const { quick } = options;
  const jobs = options.jobs ?? (quick ? 20_000 : 1_000_000);
  const runs = options.runs ?? (quick ? 1 : 3);
  const claims = quick ? 10 : 30;
  const taken = await withSites(async (sites) => {
    const opened: { backlog: Backlog; site: Site }[] = [];
    for (const backlog of BACKLOGS) {
      console.error(`scheduled: filling, ${backlog.name} …`);
      opened.push({ backlog, site: await fill(sites, backlog, jobs, claims * runs) });
    }
    const cells = opened.flatMap((each) => LIMITS.map((limit) => ({ ...each, limit })));
    const taken = await inTurns(
      'scheduled',
      runs,
      cells,
      ({ backlog, limit }) => `${backlog.name}, claims of ${limit}`,
      ({ site, limit }) => timeInChild({ url: site.url, claims, limit }),
    );
    for (const { site } of opened) await site.close();
    return taken;
  });
  const rows = taken.map(
    ({ of, values }): Row => ({
      backlog: of.backlog.name,
      limit: of.limit,
      claimMs: median(values.map(({ claimMs }) => claimMs)),
      sweepMs: median(values.map(({ sweepMs }) => sweepMs)),
    }),
  );
  const report = reportOf(rows, runs);
  print(report);
  return {
    scenario: 'scheduled',
    jobs,
    runs,
    rows,
    missed: missed(
      'scheduled',
      rows.slice(LIMITS.length).map((row) => ({
        what: `a claim of ${row.limit} beside ${row.backlog}, by one without`,
        reached: row.claimMs / base(rows, row).claimMs,
        atMost: 1.2,
      })),
    ),
    report,
  };
};

async function fill(sites: Sites, { parts }: Backlog, jobs: number, claims: number): Promise<Site> {
  const site = await Site.open(sites, withoutResults);
  // Enough for every claim that is timed, and due after the million that wait as well.
  const own = LIMITS.reduce((sum, limit) => sum + limit * (claims + 10) * 2, 0);
  for (const part of parts) await insert(site.sql, part, jobs);
  await insert(site.sql, { queue: 'bench', kind: 'bench', priority: '5', runAt: 'now()' }, own);
  await site.sql`vacuum (analyze)`;
  await site.sql`checkpoint`;
  return site;
}

async function insert(
  sql: Sql,
  { queue, kind, priority, runAt }: Backlog['parts'][number],
  count: number,
): Promise<void> {
  await sql.unsafe(`
    insert into queue_jobs (queue, kind, payload, max_attempts, priority, run_at)
    select '${queue}', '${kind}', jsonb_build_object('n', i), 20, ${priority}, ${runAt} from generate_series(1, ${count}) as i`);
}

async function timeInChild(request: TimeClaimsRequest): Promise<TimedClaims> {
  const child = await Child.start();
  try {
    // It is what `timeClaims` answers.
    return (await child.call('measure', 'claims', request)) as TimedClaims;
  } finally {
    await child.end();
  }
}

function base(rows: readonly Row[], { limit }: Row): Row {
  const found = rows.find((row) => row.limit === limit);
  if (found === undefined) throw new TypeError('Each limit is measured with each backlog');
  return found;
}

function reportOf(rows: readonly Row[], runs: number): Report {
  return {
    tables: [
      {
        title: `scheduled: how long a claim takes beside what it does not want; medians of ${runs}`,
        header: ['beside', 'claims', 'claim ms', '÷ alone', 'sweep ms', '÷ alone'],
        rows: rows.map((row) => [
          row.backlog,
          figure(row.limit),
          figure(row.claimMs, 2),
          times(row.claimMs, base(rows, row).claimMs),
          figure(row.sweepMs, 2),
          times(row.sweepMs, base(rows, row).sweepMs),
        ]),
      },
    ],
    charts: [],
    remarks: [
      'Timed in a process of its own, from the call to the answer, one claim after the other. A sweep is a claim that begins at the very start; it takes a few percent of the time at most.',
      SERVER_TEXT,
    ],
  };
}
