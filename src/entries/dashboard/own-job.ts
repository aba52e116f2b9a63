import { type ShownJob, showJob } from '../../internal.ts';
import type { Visit } from './visit.ts';

/** A job in their scope, without its values. */
export async function ownJob({ settings, granted }: Visit, text: string): Promise<ShownJob | undefined> {
  const id = jobId(text);
  if (id === undefined) return undefined;
  return await showJob(settings.db, settings.queue.tables, { id, scope: granted.scope, cut: 0 });
}

/** A job's id as a URL or a form has it; `undefined` for anything else. */
export function jobId(text: string): number | undefined {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(id) && id > 0 ? id : undefined;
}
