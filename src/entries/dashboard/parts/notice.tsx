import type { Visit } from '../visit.ts';

/** What actions say after they were done, by a code in the URL: no link can make a page say anything else. */
export const NOTICES = {
  cancelled: 'The job is cancelled.',
  requested: 'The worker that runs the job is told to stop.',
  locked: 'A transaction holds the job just now; nothing was done.',
  finished: 'The job had already finished.',
  'not-found': 'There is no such job.',
  'cancelled-many': '# jobs are cancelled, or told to stop.',
  'due-now': 'Due now: # jobs.',
  redriven: 'Put back, due now: # jobs.',
  duplicates: 'A live job has the unique key, so the job stays discarded.',
  none: 'No such job was there any more.',
  slow: 'Looking for the jobs takes too long: narrow the filter. Done with # jobs.',
  running: 'A worker holds the job already.',
  waiting: 'The job waits for something that only this can end.',
  paused: 'Paused. Running jobs go on; no other begins.',
  resumed: 'Resumed.',
  unchanged: 'It was so already.',
  ran: 'A job of the schedule is enqueued.',
  'ran-duplicate': 'A job of the schedule is live already, so none was enqueued.',
  limited: 'The limit is set. Workers heed it within seconds.',
  unlimited: 'The limit is as the code declares it.',
  unblocked: 'The group goes on.',
  'no-schedule': 'There is no such schedule any more.',
} as const;

/** What actions add to the URL of the page that they lead back to. */
export const SAID = ['done', 'n', 'left'] as const;

export type NoticeCode = keyof typeof NOTICES;

/** Says what was done. */
export function Notice({ visit: { query } }: { readonly visit: Visit }) {
  const code = query.get('done') ?? '';
  if (!isNotice(code)) return null;
  const [count, left] = ['n', 'left'].map((name) => numberOf(query.get(name)));
  const others = left === '0' ? '' : ` ${left} more could not be, or somebody was first.`;
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
