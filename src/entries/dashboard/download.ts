import type { Executor } from '../../index.ts';
import { type JsonText, type ShownJob, showJob } from '../../internal.ts';
import { stepIn } from './form-fields.ts';
import { within } from './looks.ts';
import { turnsOf } from './turns.ts';
import { revealed, type Visit, workflowsOf } from './visit.ts';

/** The largest value to download. */
const MAX_VALUE = 100_000_000;
const DOWNLOAD_MS = 30_000;

/** A value of a job, or the output of one of its steps by the name of that. */
export interface Downloaded {
  readonly field: string;
  readonly step: string | undefined;
}

/**
 * A whole value of a job, as `show` shows it; `undefined` where there is none, or it is hidden. It is not
 * kept, and takes its turn as searches do.
 */
export async function download(
  visit: Visit,
  id: number | undefined,
  { field, step }: Downloaded,
): Promise<Response | undefined> {
  const { viewer, settings, granted } = visit;
  const { db, queue } = settings;
  if (id === undefined) return undefined;
  const look = async (tx: Executor) => {
    const cut = field === 'step' ? 1 : MAX_VALUE;
    const job = await showJob(tx, queue.tables, { id, scope: granted.scope, cut });
    if (job === undefined) return undefined;
    return { job, value: isField(field) ? job[`${field}Text`] : await outputOf(visit, tx, job, step) };
  };
  const found = await turnsOf(db).take(viewer, () => within(db, queue.tables, DOWNLOAD_MS, look));
  const { job, value } = found ?? {};
  if (job === undefined || value === undefined || value === null) return undefined;
  const cut = value.length > MAX_VALUE;
  const shown = revealed(visit, job, isField(field) ? field : 'output', { text: value.text, cut, step });
  if (shown === null) return undefined;
  return new Response(shown, {
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'content-disposition': `attachment; filename="job-${job.id}-${field}.json"`,
      'cache-control': 'no-store',
    },
  });
}

async function outputOf(
  visit: Visit,
  db: Executor,
  { id, queue }: ShownJob,
  step: string | undefined,
): Promise<JsonText | null | undefined> {
  const name = stepIn(step);
  if (name === undefined) return undefined;
  const found = await workflowsOf(visit)?.shown(db, { id, queue, name, cut: MAX_VALUE, limit: 1 });
  return found?.steps[0]?.outputText;
}

const FIELDS = ['payload', 'output', 'metadata', 'progress'] as const;

function isField(field: string): field is (typeof FIELDS)[number] {
  return FIELDS.some((each) => each === field);
}
