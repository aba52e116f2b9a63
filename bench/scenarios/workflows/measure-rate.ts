import { nowMs } from '../../child/counter.ts';
import type { Shape } from '../../child/workflows.ts';
import { countFootprint } from '../../harness/footprint.ts';
import type { Sites } from '../../harness/site.ts';
import { median } from '../../median.ts';
import { EngineChild } from './engine-child.ts';
import type { Form } from './forms.ts';
import { type OpenDatabase, withDatabase } from './open-database.ts';

export interface Load {
  readonly shape: Shape;
  /** Of each workflow. */
  readonly steps: number;
  /** How many workflows there are. */
  readonly workflows: number;
  /** How many run at once. */
  readonly inFlight: number;
  /** No more are started after this time; what was done until then is the figure. */
  readonly limitMs: number;
}

/** What workflows have cost, of which so many a second were done. */
export interface Rate {
  readonly workflows: number;
  readonly perSecond: number;
  /** How long one took from its start to its recorded end; NaN where it waited in a queue. */
  readonly p50Ms: number;
  readonly statementsPerStep: number;
  readonly walBytesPerStep: number;
  /** Processor time of the process. */
  readonly cpuUsPerStep: number;
}

/** As many again are done before, for code to get warm. */
const WARM_UP_SHARE = 0.1;
/** What is queued has no warm-up, so it has so many times the time. */
const QUEUED_LIMIT = 3;

/** Measures one form with workflows that run from their beginning to their end. */
export async function measureRate(sites: Sites, form: Form, load: Load): Promise<Rate> {
  return await withDatabase(sites, form, (database) =>
    form.mode === 'started' ? measureStarted(database, form, load) : measureQueued(database, form, load),
  );
}

async function measureStarted({ url, sql }: OpenDatabase, form: Form, load: Load): Promise<Rate> {
  const { shape, steps, workflows, inFlight, limitMs } = load;
  const { engine, options } = form;
  const child = await EngineChild.open({ engine, options, url, concurrency: inFlight, works: true });
  const warmUp = Math.max(inFlight, Math.ceil(workflows * WARM_UP_SHARE));
  await child.do('run', { shape, steps, from: 0, count: warmUp, inFlight, limitMs });
  await sql`checkpoint /* bench */`;
  const count = await countFootprint(sql, 'none');
  const startCpuMs = await child.cpuMs();
  const startMs = nowMs();
  const tookMs = await child.do('run', { shape, steps, from: warmUp, count: workflows, inFlight, limitMs });
  const seconds = (nowMs() - startMs) / 1_000;
  const cpuMs = (await child.cpuMs()) - startCpuMs;
  const { walBytes, statements } = await count();
  await child.end();
  const done = tookMs.length * steps;
  return {
    workflows: tookMs.length,
    perSecond: tookMs.length / seconds,
    p50Ms: median(tookMs),
    statementsPerStep: statements / done,
    walBytesPerStep: walBytes / done,
    cpuUsPerStep: (cpuMs * 1_000) / done,
  };
}

async function measureQueued({ url, sql }: OpenDatabase, form: Form, load: Load): Promise<Rate> {
  const { shape, steps, workflows, inFlight, limitMs } = load;
  const { engine, options } = form;
  const filler = await EngineChild.open({ engine, options, url, concurrency: 1, works: false });
  await filler.do('put', { shape, steps, from: 0, count: workflows });
  await filler.end();
  await sql`vacuum (analyze) /* bench */`;
  await sql`checkpoint /* bench */`;
  const count = await countFootprint(sql, 'none');
  const child = await EngineChild.open({ engine, options, url, concurrency: inFlight, works: true });
  const ended = await child.do('ended', { count: workflows, limitMs: limitMs * QUEUED_LIMIT });
  let { lastMs } = ended;
  if (ended.count >= workflows) {
    while (await form.anyLeft(sql)) await new Promise((resolve) => setTimeout(resolve, 2));
    lastMs = nowMs();
  }
  const cpuMs = await child.cpuMs();
  const { walBytes, statements } = await count();
  await child.end();
  const done = ended.count * steps;
  return {
    workflows: ended.count,
    perSecond: ended.count === 0 ? 0 : (ended.count * 1_000) / (lastMs - ended.firstMs),
    p50Ms: Number.NaN,
    statementsPerStep: statements / done,
    walBytesPerStep: walBytes / done,
    cpuUsPerStep: (cpuMs * 1_000) / done,
  };
}
