import { COUNTING } from '../../harness/backends.ts';
import { chosen, inTurns, missed, type Wanted, withSites } from '../../harness/bench.ts';
import { print } from '../../harness/report.ts';
import type { Sites } from '../../harness/site.ts';
import { median } from '../../median.ts';
import type { Options } from '../../options.ts';
import type { Scenario } from '../../scenario.ts';
import { type Cell, CONCURRENCIES, cellsOf, LONG_AT_ONCE } from './cells.ts';
import { dbosDirect, type Form, openWorkflowQueued, ownQueued } from './forms.ts';
import { type FanForm, type FanLoad, fanForms, measureFan } from './measure-fan.ts';
import { measureRate, type Rate } from './measure-rate.ts';
import { measureReplay, measureWaiting, timeClaims, type Waiting } from './measure-waiting.ts';
import { withDatabase } from './open-database.ts';
import {
  type ClaimRow,
  type FanRow,
  type RateRow,
  type ReplayRow,
  reportOf,
  type WaitingRow,
} from './report.ts';

/** How many workflows wait: fewer of a peer that keeps them in its process, or takes long. */
const WAITING: readonly { readonly form: Form; readonly waiting: number }[] = [
  { form: ownQueued, waiting: 100_000 },
  { form: dbosDirect, waiting: 10_000 },
  { form: openWorkflowQueued, waiting: 2_000 },
];
/** One less than OpenWorkflow allows, which counts the wait, too. */
const REPLAYED = 999;
/** Children of one parent, or parents of one child. */
const FANNED = 10_000;

/** Steps, workflows, writes, waits and replays beside other engines of durable workflows. */
export const workflows: Scenario = async (options) => {
  const runs = options.runs ?? (options.quick ? 1 : 3);
  const forms = await fanForms();
  const measured = await withSites(async (sites) => {
    const rates = await measureRates(sites, options, runs);
    const waiting = await measureAllWaiting(sites, options, runs);
    const replays = await measureReplays(sites, options, runs);
    const fans = await measureFans(sites, forms, options, runs);
    return { rates, ...waiting, replays, fans };
  }, COUNTING);
  const report = reportOf(measured, chosen(forms, options), runs);
  print(report);
  return {
    scenario: 'workflows',
    runs,
    ...measured,
    missed: missed('workflows', wantedOf(measured)),
    report,
  };
};

async function measureRates(sites: Sites, options: Options, runs: number): Promise<RateRow[]> {
  const cells = cellsOf(options.quick).filter(({ form }) => chosen([form], options).length > 0);
  const nameOf = ({ form, part, load }: Cell) => `${form.name}, ${part}, ${load.inFlight} at once`;
  const taken = await inTurns('workflows', runs, cells, nameOf, ({ form, load }) =>
    measureRate(sites, form, load),
  );
  return taken.map(({ of: { part, form, load }, values }) => ({
    part,
    system: form.name,
    steps: load.steps,
    inFlight: load.inFlight,
    ...medianOfRates(values),
  }));
}

function medianOfRates(rates: readonly Rate[]): Rate {
  const of = (value: (rate: Rate) => number) => median(rates.map(value));
  return {
    workflows: of(({ workflows }) => workflows),
    perSecond: of(({ perSecond }) => perSecond),
    p50Ms: of(({ p50Ms }) => p50Ms),
    statementsPerStep: of(({ statementsPerStep }) => statementsPerStep),
    walBytesPerStep: of(({ walBytesPerStep }) => walBytesPerStep),
    cpuUsPerStep: of(({ cpuUsPerStep }) => cpuUsPerStep),
  };
}

/** Has workflows wait, and times claims of plain jobs beside those of ours. */
async function measureAllWaiting(
  sites: Sites,
  options: Options,
  runs: number,
): Promise<{ waiting: WaitingRow[]; claims: ClaimRow[] }> {
  const { quick } = options;
  const waiting: WaitingRow[] = [];
  const claims: ClaimRow[] = [];
  for (const { form, waiting: many } of WAITING) {
    if (chosen([form], options).length === 0) continue;
    console.error(`workflows: ${form.name}, waiting …`);
    const load = { waiting: quick ? 200 : many, signals: quick ? 10 : 200, concurrency: 100 };
    await withDatabase(sites, form, async (database) => {
      const measured: Waiting = await measureWaiting(database, form, load);
      waiting.push({ system: form.name, ...measured });
      if (form === ownQueued)
        claims.push(...(await timeClaimsBeside(sites, database, quick ? 10 : 100, runs)));
    });
  }
  return { waiting, claims };
}

async function timeClaimsBeside(
  sites: Sites,
  beside: Parameters<typeof timeClaims>[0],
  claims: number,
  runs: number,
): Promise<ClaimRow[]> {
  return await withDatabase(sites, ownQueued, async (alone) => {
    const databases = [
      { name: 'alone', database: alone },
      { name: 'beside those that wait', database: beside },
    ];
    const taken = await inTurns(
      'workflows',
      runs,
      databases,
      ({ name }) => `claims ${name}`,
      ({ database }) => timeClaims(database, claims),
    );
    return taken.flatMap(({ of: { name }, values }) =>
      (values[0] ?? []).map(({ limit }, at): ClaimRow => {
        const each = values.flatMap((timed) => timed[at] ?? []);
        return {
          beside: name,
          limit,
          claimMs: median(each.map(({ claimMs }) => claimMs)),
          sweepMs: median(each.map(({ sweepMs }) => sweepMs)),
        };
      }),
    );
  });
}

async function measureReplays(sites: Sites, options: Options, runs: number): Promise<ReplayRow[]> {
  const steps = options.quick ? 50 : REPLAYED;
  const forms = chosen(
    WAITING.map(({ form }) => form),
    options,
  );
  const taken = await inTurns(
    'workflows',
    runs,
    forms,
    ({ name }) => `${name}, replay`,
    (form) => measureReplay(sites, form, steps, options.quick ? 1 : 3),
  );
  return taken.map(({ of, values }) => ({
    system: of.name,
    steps,
    inFunctionMs: median(values.map(({ inFunctionMs }) => inFunctionMs)),
    inAllMs: median(values.map(({ inAllMs }) => inAllMs)),
  }));
}

async function measureFans(
  sites: Sites,
  forms: readonly FanForm[],
  options: Options,
  runs: number,
): Promise<FanRow[]> {
  const many = options.quick ? 50 : FANNED;
  const loads: FanLoad[] = [
    { parents: 1, children: many },
    { parents: many, children: 1 },
  ];
  const cells = chosen(forms, options).flatMap((form) => loads.map((load) => ({ form, load })));
  const taken = await inTurns(
    'workflows',
    runs,
    cells,
    ({ form, load }) => `${form.name}, ${load.parents} × ${load.children}`,
    ({ form, load }) => measureFan(sites, form, load),
  );
  return taken.map(({ of: { form, load }, values }) => ({
    system: form.name,
    ...load,
    putMs: median(values.map(({ putMs }) => putMs)),
    allMs: median(values.map(({ allMs }) => allMs)),
  }));
}

interface Measured {
  readonly rates: readonly RateRow[];
  readonly waiting: readonly WaitingRow[];
  readonly claims: readonly ClaimRow[];
  readonly replays: readonly ReplayRow[];
  readonly fans: readonly FanRow[];
}

function wantedOf({ rates, waiting, claims, replays, fans }: Measured): Wanted[] {
  const own = <T extends { readonly system: string }>({ system }: T) => system.startsWith('drizzle-queue');
  const bestOf = (part: Cell['part'], inFlight: number, isOne: (row: RateRow) => boolean) =>
    Math.max(
      ...rates
        .filter((row) => row.part === part && row.inFlight === inFlight && isOne(row))
        .map(({ perSecond }) => perSecond),
    );
  const isDbos = ({ system }: RateRow) => system.startsWith('DBOS');
  const isQueued = ({ system }: RateRow) => system.includes('queued');
  const fastest = (parents: number, isOne: (row: FanRow) => boolean) =>
    Math.min(
      ...fans
        .filter((row) => row.parents === parents && isOne(row) && Number.isFinite(row.allMs))
        .map(({ allMs }) => allMs),
    );
  return [
    ...LONG_AT_ONCE.map((inFlight) => ({
      what: `steps of ${inFlight} workflows at once ÷ DBOS direct`,
      reached: bestOf('step', inFlight, own) / bestOf('step', inFlight, isDbos),
      atLeast: 3,
    })),
    ...CONCURRENCIES.flatMap((inFlight) => [
      {
        what: `5 steps, ${inFlight} at once, started, ÷ DBOS direct`,
        reached:
          bestOf('workflow', inFlight, (row) => own(row) && !isQueued(row)) /
          bestOf('workflow', inFlight, (row) => isDbos(row) && !isQueued(row)),
        atLeast: 3,
      },
      {
        what: `5 steps, ${inFlight} at once, queued, ÷ the better of DBOS direct and queued`,
        reached:
          bestOf('workflow', inFlight, (row) => own(row) && isQueued(row)) /
          bestOf('workflow', inFlight, isDbos),
        atLeast: 3,
      },
    ]),
    ...[1, 50].map((inFlight) => ({
      what: `steps with an order, ${inFlight} at once, ÷ the drizzle datasource of DBOS`,
      reached: bestOf('order', inFlight, own) / bestOf('order', inFlight, isDbos),
      atLeast: 2,
    })),
    ...claims
      .filter(({ beside }) => beside !== 'alone')
      .map(({ limit, claimMs }) => ({
        what: `a claim of ${limit} beside those that wait ÷ alone`,
        reached:
          claimMs /
          (claims.find((row) => row.limit === limit && row.beside === 'alone')?.claimMs ?? Number.NaN),
        atMost: 1.1,
      })),
    ...waiting.filter(own).flatMap(({ p99Ms, heapBytesEach }) => [
      { what: 'p99 ms from the commit of a signal', reached: p99Ms, atMost: 25 },
      // Less than a number takes: what is measured is the noise of the heap.
      { what: 'bytes of the heap for each job that waits', reached: heapBytesEach, atMost: 8 },
    ]),
    ...replays.filter(own).map(({ inFunctionMs, steps }) => ({
      what: `ms to replay ${steps} steps`,
      reached: inFunctionMs,
      atMost: 25,
    })),
    ...[...new Set(fans.map(({ parents }) => parents))].map((parents) => ({
      what: `${parents} parents after their children ÷ the best peer`,
      reached: fastest(parents, (row) => !own(row)) / fastest(parents, own),
      atLeast: 3,
    })),
  ];
}
