import { h } from '../html.ts';
import type { Visit } from '../visit.ts';

/** What actions say after they were done, by a code in the URL: no link can make a page say anything else. */
export const NOTICES = {
  cancelled: 'The job is cancelled.',
  requested: 'The worker that runs the job is told to stop.',
  locked: 'Another transaction has locked the job; nothing was done. Try again.',
  finished: 'The job had already finished.',
  'not-found': 'The job was not found.',
  'cancelled-many': '# jobs are cancelled, or told to stop.',
  'due-now': 'Due now: # jobs.',
  redriven: 'Put back, due now: # jobs.',
  duplicates: 'A live job has the unique key, so the job stays discarded.',
  none: 'None of these jobs is left.',
  'not-discarded': 'The job is not discarded any more; nothing was done.',
  slow: 'The search took too long: narrow the filter. Done with # jobs.',
  running: 'A worker already holds the job.',
  waiting: 'The job waits for something else and cannot be made due by hand.',
  paused: 'Paused. Running jobs continue; no other job starts.',
  resumed: 'Resumed.',
  unchanged: 'Nothing to change: it was already so.',
  ran: 'A job of the schedule is enqueued.',
  'ran-duplicate': 'A job of the schedule is still live, so none was enqueued.',
  limited: 'The limit is set. Workers apply it within seconds.',
  unlimited: 'The limit is reset to the one declared in code.',
  unblocked: 'The group is unblocked.',
  'flow-cancelled': 'The flow is cancelled: its jobs end within seconds.',
  'flow-redriven': 'Put back in their order: # jobs.',
  'no-schedule': 'The schedule no longer exists.',
  forked: 'This is the new job. Steps taken over: #.',
  'no-payload': 'The payload of the job is not kept; nothing was done.',
  'no-step': 'The job has no such step: it may have been redriven meanwhile. Nothing was done.',
} as const;

/** What actions add to the URL of the page that they lead back to. */
export const SAID = ['done', 'n', 'left'] as const;

export type NoticeCode = keyof typeof NOTICES;

/** Says what was done. */
export function Notice({ visit: { query } }: { readonly visit: Visit }) {
  const code = query.get('done') ?? '';
  if (!isNotice(code)) return null;
  const [count, left] = ['n', 'left'].map((name) => numberOf(query.get(name)));
  const others =
    left === '0'
      ? ''
      : ` ${left} skipped: the action does not apply, another user was faster, or the database refused it.`;
  const text = `${NOTICES[code].replace('#', String(count))}${others}`.replace(/\b1 jobs( are)?/, (_, are) =>
    are === undefined ? '1 job' : '1 job is',
  );
  return (
    <p class="notice" role="status" id="notice">
      {text}
    </p>
  );
}

function isNotice(code: string): code is NoticeCode {
  return Object.hasOwn(NOTICES, code);
}

function numberOf(text: string | null): string {
  return text !== null && /^\d{1,9}$/.test(text) ? String(Number(text)) : '0';
}
