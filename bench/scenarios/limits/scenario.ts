import { chosen, inTurns, missed, type Wanted, withSites } from '../../harness/bench.ts';
import { Child } from '../../harness/child.ts';
import { drainFresh } from '../../harness/drain-jobs.ts';
import { figure } from '../../harness/ratios.ts';
import { print, type Report } from '../../harness/report.ts';
import { SERVER_TEXT } from '../../harness/server.ts';
import { Site, type Sites } from '../../harness/site.ts';
import { SMALL } from '../../harness/system.ts';
import { median } from '../../median.ts';
import type { Scenario } from '../../scenario.ts';
import { groupedQueue } from '../../systems/drizzle-queue/system.ts';
import {
  manyKeys,
  manyTenants,
  plain,
  tenTenants,
  twoPerKey,
  unreachedRate,
  type Variant,
} from '../control/variants.ts';
import { measureFirstJobs, TENANTS } from './first-job.ts';
import { measureSlotsInUse, PROCESSES, SLOTS } from './slots-in-use.ts';
import type { TimedGroupClaims } from './time-group-claims.ts';

/** How much is done; less where it is to be quick. */
interface Size {
  readonly jobs: number;
  readonly limitMs: number;
  readonly groups: number;
  readonly claims: number;
  readonly visits: number;
  readonly forMs: number;
}

const FULL: Size = {
  jobs: 100_000,
  limitMs: 60_000,
  groups: 300_000,
  claims: 150,
  visits: 20,
  forMs: 30_000,
};
const QUICK: Size = { jobs: 2_000, limitMs: 10_000, groups: 20_000, claims: 10, visits: 2, forMs: 2_000 };

/** Something that is measured in each run, and what is asked of it. */
interface Goal {
  readonly name: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  /** Whether what is measured is divided by the rate of plain jobs in the same run. */
  readonly isRate?: boolean;
  measure(sites: Sites, size: Size): Promise<Measured>;
}

interface Measured {
  readonly value: number;
  /** In words, what else was seen. */
  readonly beside?: string;
}

function drainOf({ name, system }: Variant, atLeast?: number): Goal {
  return {
    name: atLeast === undefined ? name : `${name} ÷ plain`,
    ...(atLeast !== undefined && { atLeast }),
    isRate: true,
    measure: async (sites, { jobs, limitMs }) => {
      const { jobsPerSecond } = await drainFresh(sites, system, { jobs, payloadBytes: SMALL, limitMs });
      return { value: jobsPerSecond, beside: `${figure(jobsPerSecond)} jobs/s` };
    },
  };
}

/** A round of the tenants. */
function firstJobBeside(jobMs: number): Goal {
  return {
    name: `jobs that began before the first of another tenant, jobs of ${figure(jobMs)} ms`,
    atMost: TENANTS,
    measure: async (sites, { visits }) => {
      const { others, most, waitMs } = await measureFirstJobs(sites, { jobMs, visits });
      return { value: others, beside: `${most} at most; ${figure(waitMs)} ms` };
    },
  };
}

function slotsInUse(jobMs: number): Goal {
  return {
    name: `slots in use, ${PROCESSES} processes, a limit of ${SLOTS}, jobs of ${figure(jobMs)} ms`,
    atLeast: 0.95,
    async measure(sites, { forMs }) {
      const value = await measureSlotsInUse(sites, { jobMs, forMs });
      return { value, beside: figure(value, 3) };
    },
  };
}

const GROUPS = groupedQueue('rows of groups', { groups: {} }, 'i::text');
const largeClaims: Goal = {
  name: '300,000 rows of groups: the slowest claim ÷ the median',
  atMost: 3,
  async measure(sites, { groups, claims, limitMs }) {
    const site = await Site.open(sites, GROUPS);
    try {
      await site.fill({ from: 0, count: groups, payloadBytes: SMALL });
      // As claims have left them that have met each group once.
      await site.sql`delete from queue_notes`;
      await site.sql`
        insert into queue_groups (queue, group_key, turn, ready_at, held)
        select 'bench', i::text, i + 1, '-infinity', '{}' from generate_series(0, ${groups - 1}::int4) as i`;
      await site.sql`vacuum (analyze)`;
      await site.sql`checkpoint`;
      const child = await Child.start();
      try {
        const request = { url: site.url, claims, limitMs };
        // It is what `timeGroupClaims` answers.
        const timed = (await child.call('measure', 'groupClaims', request)) as TimedGroupClaims;
        const { medianMs, slowestMs } = timed;
        return {
          value: slowestMs / medianMs,
          beside: `${figure(slowestMs, 1)} and ${figure(medianMs, 1)} ms, ${figure(timed.claims)} claims`,
        };
      } finally {
        await child.end();
      }
    } finally {
      await site.close();
    }
  },
};

const PLAIN = drainOf(plain);
const GOALS: readonly Goal[] = [
  PLAIN,
  drainOf(tenTenants, 0.6),
  drainOf(manyTenants, 0.4),
  drainOf(manyKeys, 0.4),
  drainOf(unreachedRate, 0.9),
  drainOf(twoPerKey, 0.4),
  largeClaims,
  ...[1, 50, 1_000].map(firstJobBeside),
  ...[1_000, 100].map(slotsInUse),
];

interface Row extends Wanted {
  readonly beside: string;
}

/** What limits, shares and orders ask of themselves, beside plain jobs in turns. */
export const limits: Scenario = async (options) => {
  const size = {
    ...(options.quick ? QUICK : FULL),
    ...(options.jobs !== undefined && { jobs: options.jobs }),
  };
  const runs = options.runs ?? (options.quick ? 1 : 3);
  const goals = chosen(GOALS, options);
  // Without it there are no parts of its rate.
  const measured = goals.includes(PLAIN) || !goals.some(({ isRate }) => isRate) ? goals : [PLAIN, ...goals];
  const taken = await withSites((sites) =>
    inTurns(
      'limits',
      runs,
      measured,
      ({ name }) => name,
      (goal) => goal.measure(sites, size),
    ),
  );
  const plainRates = taken.find(({ of }) => of === PLAIN)?.values ?? [];
  const rows = taken.map(({ of, values }): Row => {
    const { name, atLeast, atMost, isRate } = of;
    // Each by that of its run.
    const reached = values.map(({ value }, run) =>
      isRate ? value / (plainRates[run]?.value ?? Number.NaN) : value,
    );
    return {
      what: name,
      reached: median(reached),
      ...(atLeast !== undefined && { atLeast }),
      ...(atMost !== undefined && { atMost }),
      beside: values.map(({ beside = '' }) => beside).join(' | '),
    };
  });
  const report = reportOf(rows, size, runs);
  print(report);
  return { scenario: 'limits', ...size, runs, rows, missed: missed('limits', rows), report };
};

function reportOf(rows: readonly Row[], { jobs, groups, claims, visits }: Size, runs: number): Report {
  return {
    tables: [
      {
        title: `limits: what was wanted, and what was reached; medians of ${runs}`,
        header: ['', 'wanted', 'reached', 'each run'],
        rows: rows.map(({ what, reached, atLeast, atMost, beside }) => [
          what,
          atLeast === undefined ? (atMost === undefined ? '–' : `≤ ${atMost}`) : `≥ ${atLeast}`,
          figure(reached, reached < 100 ? 2 : 0),
          beside.replaceAll(' | ', ' / '),
        ]),
      },
    ],
    charts: [],
    remarks: [
      `Rates are of ${figure(jobs)} no-op jobs and one worker process, each divided by that of plain jobs in the same run.`,
      `Claims: of ${figure(groups)} groups with a job each, of 50 to 200 jobs, at least ${figure(claims)} of them, while a worker is found dead.`,
      `The first job of another tenant: ${visits} times, beside ${TENANTS} tenants whose jobs wait and one worker with five slots. A round of the tenants is wanted; beside it stand the most, and the median wait.`,
      'Slots in use: by the times at which jobs began, and their length.',
      SERVER_TEXT,
    ],
  };
}
