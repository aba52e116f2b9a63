import type { Visit } from '../visit.ts';

/** What actions say after they were done, by a code in the URL: no link can make a page say anything else. */
export const NOTICES = {
  cancelled: 'The job is cancelled.',
  requested: 'The worker that runs the job is told to stop.',
  locked: 'A transaction holds the job just now; nothing was done.',
  finished: 'The job had already finished.',
  'not-found': 'There is no such job.',
  redriven: 'Put back, due now: # jobs.',
  duplicates: 'A live job has the unique key, so the job stays discarded.',
  none: 'No such job was there any more.',
  more: 'Put back, due now: # jobs. There are more of them: press the button again.',
  paused: 'Paused. Running jobs go on; no other begins.',
  resumed: 'Resumed.',
  unchanged: 'It was so already.',
  ran: 'A job of the schedule is enqueued.',
  'ran-duplicate': 'A job of the schedule is live already, so none was enqueued.',
  unblocked: 'The group goes on.',
  'no-schedule': 'There is no such schedule any more.',
} as const;

export type NoticeCode = keyof typeof NOTICES;

/** Says what was done. */
export function Notice({ visit: { query } }: { readonly visit: Visit }) {
  const code = query.get('done') ?? '';
  if (!isNotice(code)) return null;
  const count = /^\d{1,9}$/.test(query.get('n') ?? '') ? String(query.get('n')) : '0';
  const text = NOTICES[code].replace('#', count).replace(' 1 jobs', ' 1 job');
  return (
    <p class="notice" role="status" id="notice">
      {text}
    </p>
  );
}

function isNotice(code: string): code is NoticeCode {
  return Object.hasOwn(NOTICES, code);
}
