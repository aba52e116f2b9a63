import { showJob } from '../../core/queries/operate/show-job.ts';
import { within } from './looks.ts';
import { turnsOf } from './turns.ts';
import { revealed, type Visit } from './visit.ts';

/** The largest value to download. */
const MAX_VALUE = 100_000_000;
const DOWNLOAD_MS = 30_000;

/**
 * A whole value of a job, as `show` shows it; `undefined` where there is none, or it is hidden. It is not
 * kept, and takes its turn as searches do.
 */
export async function download(
  visit: Visit,
  id: number | undefined,
  field: string,
): Promise<Response | undefined> {
  const { viewer, settings, granted } = visit;
  const { db, queue } = settings;
  if (id === undefined || !isField(field)) return undefined;
  const show = { id, scope: granted.scope, cut: MAX_VALUE };
  const job = await turnsOf(db).take(viewer, () =>
    within(db, queue.tables, DOWNLOAD_MS, (tx) => showJob(tx, queue.tables, show)),
  );
  const value = job?.[`${field}Text`];
  if (job === undefined || value === undefined || value === null) return undefined;
  const shown = revealed(visit, job, field, { text: value.text, cut: value.length > MAX_VALUE });
  if (shown === null) return undefined;
  return new Response(shown, {
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'content-disposition': `attachment; filename="job-${job.id}-${field}.json"`,
      'cache-control': 'no-store',
    },
  });
}

const FIELDS = ['payload', 'output', 'metadata', 'progress'] as const;

function isField(field: string): field is (typeof FIELDS)[number] {
  return FIELDS.some((each) => each === field);
}
